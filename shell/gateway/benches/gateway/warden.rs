//! The gateway with everything on: a key for the caller, groups, a state, a permission, limits, the
//! schema of the arguments, the log, and the shapes of results.

use std::path::Path;

use serde_json::{Value, json};
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_settings::Settings;

use super::part::announce;

/// The key of the only caller.
pub(crate) const KEY: &str = "a-key-of-the-benchmark-only";
/// The prefix of tool names.
pub(crate) const PREFIX: &str = "bench__";

/// How the gateway is set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// The server behind it; none for a gateway without any.
    pub(crate) server: Option<&'a str>,
    /// When a record counts as written.
    pub(crate) durability: &'a str,
    /// Whether conversations have their own connections.
    pub(crate) sessions: &'a str,
}

impl Setup<'_> {
    /// Writes the settings into a folder.
    pub(crate) fn write(&self, folder: &Path) {
        let often = json!({"limit": 1_000_000, "window": "1s", "scope": "agent"});
        let servers = self.server.map(|url| {
            json!({"bench": {
                "url": url,
                "sessions": self.sessions,
                "concurrency": 1024,
                "max_links": 1024,
                "tool_defaults": {
                    "group": ["bench/echo"],
                    "available_in_states": ["undefined"],
                    "required_permissions": ["echo:call"],
                    "rate_limit": often,
                },
            }})
        });
        let settings = json!({
            "listen": "127.0.0.1:0",
            "store": "store.db",
            "identity": {"api_keys": [{"principal": "caller", "key": KEY}]},
            "servers": servers.unwrap_or_else(|| json!({})),
            "watch": {"shapes": true},
            "policy": {
                "version": 1,
                "groups": {"bench": {"description": "What is measured"}},
                "roles": {"client": {"groups": ["bench"], "permissions": ["echo:*"]}},
                "principals": {"caller": {"roles": ["client"]}},
                "audit": {"durability": self.durability},
            },
        });
        std::fs::write(folder.join("toolwarden.yaml"), settings.to_string()).unwrap();
    }
}

/// Runs the gateway of a folder until the process ends.
pub(crate) async fn serve(folder: &Path) {
    let path = folder.join("toolwarden.yaml");
    let settings = Settings::read(&path).unwrap().settings;
    let policy = load_policy(&settings, &path).unwrap();
    let running = RunningGateway::start(settings, policy, Value::Null)
        .await
        .unwrap();
    announce(running.address());
    let router = running.router();
    running.serve(router).await;
}
