use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::hostile;
use crate::support::{Agent, TestGateway, until_async};

/// The names of the variables that a server sees.
async fn variables(server: Value) -> Vec<String> {
    let gateway = TestGateway::start(&json!({"servers": {"bad": server}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("it is listed", async || !agent.tools().await.is_empty()).await;
    let result = agent
        .result("tools/call", json!({"name": "bad__env", "arguments": {}}))
        .await;
    let text = result["content"][0]["text"].as_str().unwrap();
    let names = serde_json::from_str(text).unwrap();
    gateway.stop().await;
    names
}

/// A server sees its own variables and what programs need to run, and no other variable of the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_no_foreign_variables() {
    // Cargo sets this one for every test, as an operator would set the token of another server.
    const FOREIGN: &str = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(FOREIGN).is_some());
    let mut server = hostile();
    server["env"] = json!({"OWN_TOKEN": "secret"});
    let names = variables(server.clone()).await;
    let has = |names: &[String], name: &str| names.iter().any(|it| it == name);
    assert!(has(&names, "PATH") && has(&names, "OWN_TOKEN"), "{names:?}");
    assert!(!has(&names, FOREIGN), "{names:?}");
    server["inherit_env"] = json!([FOREIGN]);
    assert!(has(&variables(server.clone()).await, FOREIGN));
    server["inherit_env"] = json!(["*"]);
    assert!(has(&variables(server).await, "CARGO_PKG_NAME"));
}
