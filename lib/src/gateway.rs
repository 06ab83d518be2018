//! The MCP gateway, inside your own program.
//!
//! [`Settings`] say which servers are behind it and who may call; [`RunningGateway::start`] checks them and binds the
//! address, and [`RunningGateway::serve`] serves until [`RunningGateway::shutdown`] begins. The program
//! `examples/embed_gateway.rs` is complete.
//!
//! ```no_run
//! use std::path::Path;
//! use toolwarden::gateway::{RunningGateway, Settings, load_policy};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let path = Path::new("toolwarden.yaml");
//! let loaded = Settings::read(path)?;
//! let masked = loaded.masked();
//! let policy = load_policy(&loaded.settings, path)?;
//! let gateway = RunningGateway::start(loaded.settings, policy, masked).await?;
//! gateway.serve(gateway.router()).await;
//! # Ok(())
//! # }
//! ```

pub use toolwarden_gateway::Gateway;
pub use toolwarden_gateway::listener::{ServeSummary, Shutdown};
pub use toolwarden_gateway::runtime::{
    ReloadError, RunningGateway, SingleAgentGateway, StartError, load_policy,
};
pub use toolwarden_mcp::{
    Command, ConnectionLimits, Endpoint, InvalidEndpoint, McpClient, McpError, ServerUrl, ToolList,
};
pub use toolwarden_settings::{
    AlertTarget, IdentitySettings, ListenSettings, LoadedSettings, PolicySource, PrefixMode,
    ServerSettings, Settings, SettingsError, TlsSettings, TrustMode, WatchSettings, schema,
};
