//! Clients of the official SDKs and of FastMCP, which take every step of the plan.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;
use toolwarden_testkit::{Registry, installed};

use super::compare::differences;
use super::servers::{Servers, fixtures};
use crate::real::program::printed;

/// A client, and the modes in which it connects.
struct Client {
    registry: Registry,
    packages: &'static [&'static str],
    script: &'static str,
    /// A mode, and the version that comes of it at the gateway.
    modes: &'static [(&'static str, &'static str)],
}

/// Both eras of a client that speaks both.
const BOTH: &[(&str, &str)] = &[("legacy", "2025-11-25"), ("auto", "2026-07-28")];
const HANDSHAKE: &[(&str, &str)] = &[("legacy", "2025-11-25")];

fn command(client: &Client, programs: &Path, spec: &Value) -> Command {
    let script = fixtures().join(client.script);
    let mut command = match client.registry {
        Registry::PyPi => Command::new(programs.join("python")),
        Registry::Npm => Command::new("node"),
    };
    command.arg(script);
    if matches!(client.registry, Registry::Npm) {
        command.arg(programs.ancestors().nth(2).unwrap());
    }
    command.arg(spec.to_string());
    command
}

async fn check(client: &Client) {
    let Some(programs) = installed(client.registry, client.packages) else {
        return;
    };
    let Some(servers) = Servers::installed().await else {
        return;
    };
    let names: Vec<&str> = servers.by_name.iter().map(|(name, _)| *name).collect();
    let mut faults = Vec::new();
    for (mode, version) in client.modes {
        let server = |name: &str, prefix: &str| json!({"name": name, "prefix": prefix, "steps": servers.steps(name)});
        let alone = servers.by_name.iter();
        let alone =
            alone.map(|(name, connect)| json!({"connect": connect, "servers": [server(name, "")]}));
        let spec = json!({"mode": mode, "connections": alone.collect::<Vec<_>>()});
        servers.reset();
        let direct = printed(&mut command(client, &programs, &spec)).await;

        servers.reset();
        let gateway = servers.gateway().await;
        let behind = names.iter().map(|name| server(name, &format!("{name}__")));
        let behind: Vec<Value> = behind.collect();
        let connection = json!({"connect": {"url": gateway.url}, "servers": behind});
        let spec = json!({"mode": mode, "connections": [connection]});
        let through = printed(&mut command(client, &programs, &spec)).await;
        gateway.stop().await;

        let (direct, through) = (direct.as_array().unwrap(), &through[0]);
        assert_eq!(through["version"], *version, "{mode}");
        let found = differences(&names, direct, through);
        faults.extend(found.into_iter().map(|it| format!("{mode} {it}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_2_3_0() {
    check(&Client {
        registry: Registry::PyPi,
        packages: &["mcp==2.3.0"],
        script: "python_2.py",
        modes: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_4_1_2() {
    check(&Client {
        registry: Registry::PyPi,
        packages: &["fastmcp==4.1.2"],
        script: "fastmcp_4.py",
        modes: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_2_4_0() {
    check(&Client {
        registry: Registry::Npm,
        packages: &["@modelcontextprotocol/client@2.4.0"],
        script: "typescript_2.mjs",
        modes: BOTH,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_1_32_2() {
    check(&Client {
        registry: Registry::Npm,
        packages: &["@modelcontextprotocol/sdk@1.32.2"],
        script: "typescript_1.mjs",
        modes: HANDSHAKE,
    })
    .await;
}
