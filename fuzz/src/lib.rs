//! Fuzz targets: one function for each parser of outside data, and the property it must have on every input.
//!
//! `cargo fuzz` runs a target under libFuzzer (`fuzz_targets/`), and `tests/smoke.rs` runs all of them over their
//! seeds. A target returns if the property holds and panics if it does not.

mod credentials;
mod definitions;
mod documents;
mod files;
mod input;
mod json_text;
mod messages;
mod replies;
mod schemas;

use input::{assert_inside, parsed, text};

pub use credentials::{bearer_token, client_certificate};
pub use definitions::{recorded_call, result_shape, text_scan, tool_definitions, tool_document};
pub use documents::{
    client_file, condition, duration, policy, probe_suite, settings, watch_config, yaml_document,
};
pub use files::{lock_file, snapshot_file, toolwatch_file};
pub use json_text::{json, pointer, raw_object};
pub use messages::{
    event_stream, param_headers, retry_after, rpc_message, server_address, uri_template,
};
pub use replies::model_reply;
pub use schemas::{schema_comparison, schema_document};

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its function, of its binary in `fuzz_targets/`, and of its folder in `seeds/`.
    pub name: &'static str,
    /// Runs it on one input.
    pub run: fn(&[u8]),
    /// Whether published tool definitions are inputs too.
    pub reads_definitions: bool,
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        run,
        reads_definitions: false,
    }
}

impl Target {
    const fn with_definitions(self) -> Self {
        Self {
            reads_definitions: true,
            ..self
        }
    }
}

/// Every target, by name.
pub const TARGETS: &[Target] = &[
    target("bearer_token", bearer_token),
    target("client_certificate", client_certificate),
    target("client_file", client_file),
    target("condition", condition),
    target("duration", duration),
    target("event_stream", event_stream),
    target("json", json).with_definitions(),
    target("lock_file", lock_file),
    target("model_reply", model_reply),
    target("param_headers", param_headers),
    target("pointer", pointer),
    target("policy", policy),
    target("probe_suite", probe_suite),
    target("raw_object", raw_object).with_definitions(),
    target("recorded_call", recorded_call),
    target("result_shape", result_shape),
    target("retry_after", retry_after),
    target("rpc_message", rpc_message),
    target("schema_comparison", schema_comparison),
    target("schema_document", schema_document),
    target("server_address", server_address),
    target("settings", settings),
    target("snapshot_file", snapshot_file),
    target("text_scan", text_scan).with_definitions(),
    target("tool_definitions", tool_definitions).with_definitions(),
    target("tool_document", tool_document),
    target("toolwatch_file", toolwatch_file),
    target("uri_template", uri_template),
    target("watch_config", watch_config),
    target("yaml_document", yaml_document),
];
