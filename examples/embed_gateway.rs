//! Runs the gateway inside a program, before an MCP server, and uses it as an agent would:
//! `cargo run --package toolwarden-examples --bin embed_gateway -- http://localhost:8080/mcp`
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden::gateway::{
    ConnectionLimits, Endpoint, McpClient, RunningGateway, Settings, load_policy,
};

const SETTINGS: &str = "\
listen: {address: 127.0.0.1:0}
servers: {shop: {url: URL}}
prefix: never
identity: {anonymous: agent}
store: STORE
policy:
  tools: {cancel_order: {groups: [managers]}}
  principals: {agent: {groups: [default]}}
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: embed_gateway URL")?;
    let folder = tempfile::tempdir()?;
    let text = SETTINGS
        .replace("URL", &url)
        .replace("STORE", &folder.path().join("store.db").to_string_lossy());
    let path = Path::new("embed_gateway.yaml");
    let loaded = Settings::of_text(&text, path, &|_| None)?;
    let masked = loaded.masked();
    let policy = load_policy(&loaded.settings, path)?;
    let gateway = Arc::new(RunningGateway::start(loaded.settings, policy, masked).await?);
    let serving = Arc::clone(&gateway);
    let serving = tokio::spawn(async move { serving.serve(serving.router()).await });

    let endpoint = Endpoint::url(&format!("http://{}/mcp", gateway.address()))?;
    let agent = McpClient::connect(&endpoint, &ConnectionLimits::default()).await?;
    for tool in agent.list_tools().await?.tools {
        let tool: Value = serde_json::from_str(tool.get())?;
        println!("offered: {}", tool.get("name").unwrap_or(&Value::Null));
    }
    for (tool, arguments) in [
        ("search_orders", json!({"status": "open"})),
        ("cancel_order", json!({"id": "A-1"})),
    ] {
        let result = agent.call_tool(tool, &arguments).await?;
        let result: Value = serde_json::from_str(result.get())?;
        let denial = result.pointer("/_meta/toolwarden~1denial/code");
        println!(
            "{tool}: {}",
            denial.map_or("allowed".into(), Value::to_string)
        );
    }
    agent.close().await;
    gateway.shutdown().begin();
    serving.await?;
    Ok(())
}
