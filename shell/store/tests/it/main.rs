//! What the store promises, on real files.
#![expect(
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod baselines;
mod deliveries;
mod files;

use jiff::Timestamp;
use tempfile::TempDir;
use toolwarden_model::{Fingerprint, Format};
use toolwarden_store::{Approval, Kept, NewBaseline, OldHashes, Origin, ServerKey, Store};

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

fn kept(text: &str) -> Kept {
    Kept {
        fingerprint: Fingerprint::of_wire(text),
        format: Format::Mcp,
    }
}

fn new<'b>(
    tool: &'b str,
    text: &'b str,
    origin: Origin,
    approval: &'b Approval,
) -> NewBaseline<'b> {
    NewBaseline {
        tool,
        origin,
        definition: Some((kept(text), text)),
        shape: None,
        old: OldHashes::default(),
        version: "1.0",
        approval,
    }
}
