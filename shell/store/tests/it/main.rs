//! The guarantees of the store, tested on real files.
#![expect(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not cover helpers outside test functions"
)]

mod baselines;
mod deliveries;
mod files;

use jiff::Timestamp;
use tempfile::TempDir;
use toolwarden_model::{Fingerprint, Format};
use toolwarden_store::{
    Approval, BaselineOrigin, NewBaseline, ServerKey, Store, StoredDefinition, ToolwatchHashes,
};

fn fresh() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("deep/store.db")).unwrap();
    (folder, store)
}

fn key() -> ServerKey {
    ServerKey {
        name: "browser".to_owned(),
        scope: "default".to_owned(),
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn approval() -> Approval {
    Approval {
        by: "ada".to_owned(),
        at: at("2026-11-16T10:00:00.125Z"),
        why: Some("reviewed".to_owned()),
    }
}

fn stored_definition(text: &str) -> StoredDefinition {
    StoredDefinition {
        fingerprint: Fingerprint::of_wire(text),
        format: Format::Mcp,
    }
}

fn new<'b>(
    tool: &'b str,
    text: &'b str,
    origin: BaselineOrigin,
    approval: &'b Approval,
) -> NewBaseline<'b> {
    NewBaseline {
        tool,
        origin,
        definition: Some((stored_definition(text), text)),
        shape: None,
        old: ToolwatchHashes::default(),
        version: "1.0",
        approval,
    }
}
