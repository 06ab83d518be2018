//! The contract layer between agents, models and tools, as a library.
//!
//! Each module is a feature. Choose what you need:
//!
//! | feature | module | what it does | what it builds |
//! |---|---|---|---|
//! | `canon` | `canon` | reads tool definitions of every provider, converts and lints them | pure Rust, no I/O |
//! | `drift` | `drift` | tells what changed between two definitions, and what it means | pure Rust, no I/O |
//! | `guard` | `guard` | decides calls by a policy, with sessions, rate limits and a log in memory | no SQLite, no HTTP |
//! | `store` | `guard::audit` | keeps the log of the guard on disk, hash-chained | SQLite |
//! | `watch` | `watch` | compares tools with pins in a store or a lock file | SQLite, the MCP client |
//! | `probe` | `probe` | sends tools and cases to models, and compares their replies | the HTTP client |
//! | `gateway` | `gateway` | serves MCP between agents and servers, with all of the above | everything |
//!
//! The default is `canon`, `drift` and `guard`. A program that only authorizes calls depends on
//!
//! ```toml
//! toolwarden = { version = "0.1", default-features = false, features = ["guard"] }
//! ```
//!
//! # Guard a function
//!
//! ```
//! # #[cfg(feature = "guard")] {
//! use std::path::Path;
//! use toolwarden::guard::{AuditLog, Clock, InterceptError, Interceptor, LiveGuard, LoadedPolicy};
//!
//! let policy = b"tools: {add: {rate_limit: 100, input_schema: {required: [a, b]}}}";
//! let policy = LoadedPolicy::of_text(policy, Path::new("policy"), Path::new("."))?;
//! let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default())?;
//!
//! let add = |a: i64, b: i64| a.checked_add(b).ok_or("too large");
//! let add = Interceptor::new(guard).wrap("add", "agent-1", add).parameters(["a", "b"]);
//! assert_eq!(add.call((2, 3))?, 5);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Compare two definitions
//!
//! ```
//! # #[cfg(feature = "drift")] {
//! use serde_json::json;
//! use toolwarden::drift::{ChangeClass, FacetLayout, ObservedDefinition, Options, compare};
//!
//! let old = json!({"name": "refund", "inputSchema": {"type": "object", "properties": {"amount": {"type": "number"}}}});
//! let new = json!({"name": "refund", "inputSchema": {"type": "object", "properties": {"amount": {"type": "integer"}}}});
//! let layout = FacetLayout::mcp();
//! let side = |definition| ObservedDefinition { name: "refund", definition, layout: &layout };
//! let drift = compare(&side(&old), &side(&new), &Options::default(), &[]);
//! assert_eq!(drift.class(), Some(ChangeClass::Breaking));
//! # }
//! ```
//!
//! The programs in `examples/` of the repository use this crate only: `canonicalize`, `compare`, `guard_function` and
//! `embed_gateway`.

#[cfg(feature = "canon")]
pub mod canon;
#[cfg(feature = "drift")]
pub mod drift;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "guard")]
pub mod guard;
#[cfg(feature = "probe")]
pub mod probe;
#[cfg(feature = "watch")]
pub mod watch;

pub use toolwarden_model::{Definition, Fingerprint, Format, Tool, json};
