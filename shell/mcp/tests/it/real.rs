//! The client against published servers.

use std::path::Path;
use std::process::Command as Process;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_mcp::{Command, ConnectionLimits, Endpoint, EnvInheritance, Era, McpClient};

use crate::support::{HttpServer, fixture};
use toolwarden_testkit::{Registry, installed};

fn program(path: &Path, args: &[&str]) -> Endpoint {
    Endpoint::Command(Command {
        program: path.to_str().unwrap().to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        inherit: EnvInheritance::default(),
        directory: None,
        shows_errors: false,
    })
}

/// What a server must report, and one tool call with a part of its result.
struct Expected {
    name: &'static str,
    era: Era,
    version: &'static str,
    tool: &'static str,
    arguments: Value,
    part: &'static str,
}

async fn check(endpoint: &Endpoint, expected: Expected) -> Vec<Value> {
    let client = McpClient::connect(endpoint, &ConnectionLimits::default())
        .await
        .unwrap();
    let listing = client.list_tools().await.unwrap();
    let server = &listing.server;
    assert_eq!(
        (
            server.name.as_deref(),
            server.era,
            server.protocol_version.as_str()
        ),
        (Some(expected.name), expected.era, expected.version)
    );
    let tools: Vec<Value> = listing
        .tools
        .iter()
        .map(|tool| serde_json::from_str(tool.get()).unwrap())
        .collect();
    assert!(
        tools.iter().any(|tool| tool["name"] == expected.tool),
        "{tools:?}"
    );
    // Serializing the parsed definition gives the server's text back: no key is lost.
    for (tool, text) in tools.iter().zip(&listing.tools) {
        let compact = serde_json::to_string(tool).unwrap();
        assert_eq!(compact.replace(' ', ""), text.get().replace(' ', ""));
    }
    let result = client
        .call_tool(expected.tool, &expected.arguments)
        .await
        .unwrap();
    assert!(result.get().contains(expected.part), "{}", result.get());
    client.close().await;
    tools
}

fn everything(tool: &'static str) -> Expected {
    Expected {
        name: "example-servers/everything",
        era: Era::Handshake,
        version: "2025-06-18",
        tool,
        arguments: json!({"message": "grüße"}),
        part: "grüße",
    }
}

#[tokio::test]
async fn server_everything_2025_9_25() {
    let packages = [
        "@modelcontextprotocol/server-everything@2025.9.25",
        "@modelcontextprotocol/sdk@1.18.2",
    ];
    let Some(bin) = installed(Registry::Npm, &packages) else {
        return;
    };
    let endpoint = program(&bin.join("mcp-server-everything"), &["stdio"]);
    check(&endpoint, everything("echo")).await;
}

#[tokio::test]
async fn server_everything_2026_8_31() {
    let Some(bin) = installed(
        Registry::Npm,
        &["@modelcontextprotocol/server-everything@2026.8.31"],
    ) else {
        return;
    };
    let path = bin.join("mcp-server-everything");
    let expected = Expected {
        version: "2025-11-25",
        name: "mcp-servers/everything",
        ..everything("echo")
    };
    let tools = check(&program(&path, &["stdio"]), expected).await;
    assert!(
        tools.iter().any(|tool| tool.get("execution").is_some()),
        "no `execution` in {tools:?}"
    );

    let server = HttpServer::start(Process::new(&path).arg("streamableHttp"));
    let expected = Expected {
        version: "2025-11-25",
        name: "mcp-servers/everything",
        ..everything("echo")
    };
    check(&server.endpoint("/mcp"), expected).await;

    let server = HttpServer::start(Process::new(&path).arg("sse"));
    let expected = Expected {
        version: "2025-11-25",
        name: "mcp-servers/everything",
        ..everything("echo")
    };
    check(&server.endpoint("/sse"), expected).await;
}

#[tokio::test]
async fn server_memory() {
    for (version, protocol) in [("2025.8.4", "2024-11-05"), ("2026.8.31", "2025-11-25")] {
        let package = format!("@modelcontextprotocol/server-memory@{version}");
        let Some(bin) = installed(Registry::Npm, &[&package]) else {
            continue;
        };
        let expected = Expected {
            name: "memory-server",
            era: Era::Handshake,
            version: protocol,
            tool: "read_graph",
            arguments: json!({}),
            part: "entities",
        };
        check(&program(&bin.join("mcp-server-memory"), &[]), expected).await;
    }
}

#[tokio::test]
async fn server_time() {
    // The older one cannot be imported with today's SDKs.
    let old = [
        "mcp-server-time==2025.7.1",
        "mcp==1.10.1",
        "pydantic==2.11.7",
    ];
    let new = ["mcp-server-time==2026.10.19", "mcp==2.3.0"];
    for (packages, era, protocol) in [
        (&old[..], Era::Handshake, "2025-06-18"),
        (&new[..], Era::Stateless, "2026-07-28"),
    ] {
        let Some(bin) = installed(Registry::PyPi, packages) else {
            continue;
        };
        let expected = Expected {
            name: "mcp-time",
            era,
            version: protocol,
            tool: "get_current_time",
            arguments: json!({"timezone": "UTC"}),
            part: "UTC",
        };
        check(&program(&bin.join("mcp-server-time"), &[]), expected).await;
    }
}

#[tokio::test]
async fn python_sdk_2_3_0_in_the_stateless_era() {
    let Some(bin) = installed(Registry::PyPi, &["mcp==2.3.0"]) else {
        return;
    };
    let script = fixture("sdk_server.py");
    let script = script.to_str().unwrap();
    let expected = || Expected {
        name: "sdk-fixture",
        era: Era::Stateless,
        version: "2026-07-28",
        tool: "add",
        arguments: json!({"a": 40, "b": 2}),
        part: "42",
    };
    check(
        &program(&bin.join("python"), &[script, "stdio"]),
        expected(),
    )
    .await;
    for options in [&["http"][..], &["http", "json"], &["http", "stateless"]] {
        let server = HttpServer::start(Process::new(bin.join("python")).arg(script).args(options));
        check(&server.endpoint("/mcp"), expected()).await;
    }
}

#[tokio::test]
async fn typescript_sdk_2_4_0_in_the_stateless_era() {
    let packages = [
        "@modelcontextprotocol/server@2.4.0",
        "@modelcontextprotocol/node@2.1.2",
        "zod@4.2.0",
    ];
    let Some(bin) = installed(Registry::Npm, &packages) else {
        return;
    };
    let script = fixture("sdk_server.mjs");
    let script = script.to_str().unwrap();
    let project = bin.ancestors().nth(2).unwrap().to_owned();
    let project = project.to_str().unwrap();
    let expected = || Expected {
        name: "ts-fixture",
        era: Era::Stateless,
        version: "2026-07-28",
        tool: "add",
        arguments: json!({"a": 40, "b": 2}),
        part: "42",
    };
    let node = Path::new("node");
    check(&program(node, &[script, project, "stdio"]), expected()).await;
    for options in [&["http"][..], &["http", "strict"]] {
        let server = HttpServer::start(Process::new(node).args([script, project]).args(options));
        check(&server.endpoint("/mcp"), expected()).await;
    }
}

#[tokio::test]
async fn npx_and_what_it_starts_end() {
    let Some(bin) = installed(
        Registry::Npm,
        &["@modelcontextprotocol/server-everything@2026.8.31"],
    ) else {
        return;
    };
    let project = bin.ancestors().nth(2).unwrap().to_owned();
    let endpoint = Endpoint::Command(Command {
        program: "npx".to_owned(),
        args: ["--no-install", "mcp-server-everything", "stdio"]
            .map(str::to_owned)
            .to_vec(),
        env: vec![(
            "TOOLWARDEN_MARK".to_owned(),
            format!("npx-{}", std::process::id()),
        )],
        inherit: EnvInheritance::default(),
        directory: Some(project),
        shows_errors: false,
    });
    let mark = format!("TOOLWARDEN_MARK=npx-{}\0", std::process::id());
    let client = McpClient::connect(&endpoint, &ConnectionLimits::default())
        .await
        .unwrap();
    assert!(
        marked(&mark) >= 2,
        "npx starts the server as another process"
    );
    client.close().await;
    assert_eq!(marked(&mark), 0);
    let client = McpClient::connect(&endpoint, &ConnectionLimits::default())
        .await
        .unwrap();
    drop(client);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(marked(&mark), 0);
}

/// The number of processes with the mark in their environment.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments =
        processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    environments
        .filter(|environment| String::from_utf8_lossy(environment).contains(mark))
        .count()
}
