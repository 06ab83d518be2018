//! The gateway is transparent: agents meet servers as they would without it, and no other agent.

mod children;
mod eras;
mod extensions;
mod resources;
mod variants;
mod waiting;

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A server on standard streams that is described by a file.
pub(crate) struct Peer {
    name: &'static str,
    folder: TempDir,
}

impl Peer {
    pub(crate) fn new(name: &'static str, described: Value) -> Self {
        let peer = Self {
            name,
            folder: TempDir::new().unwrap(),
        };
        peer.describe(described);
        peer
    }

    /// Replaces its description; it reads the file with every message.
    fn describe(&self, mut described: Value) {
        described["name"] = json!(self.name);
        described["log"] = json!(self.folder.path().join("log"));
        // A server that reads meanwhile sees the one or the other.
        let (next, path) = (self.folder.path().join("next"), self.path());
        std::fs::write(&next, described.to_string()).unwrap();
        std::fs::rename(next, path).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("peer.json")
    }

    /// Its entry in the settings.
    pub(crate) fn entry(&self) -> Value {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/servers/peer.py"
        );
        json!({"command": "python3", "args": [script, self.path()]})
    }

    /// What it was asked: one line for each message.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often it got a message.
    fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|it| it.trim_end() == line).count()
    }

    /// How many programs were started.
    pub(crate) fn starts(&self) -> usize {
        let log = self.log();
        log.iter().filter(|it| it.starts_with("start ")).count()
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Settings with these servers.
fn servers(peers: &[&Peer]) -> Value {
    let entries = peers
        .iter()
        .map(|peer| (peer.name.to_owned(), peer.entry()));
    json!({"servers": entries.collect::<serde_json::Map<_, _>>()})
}
