//! Servers that are programs on standard streams.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_gateway::upstream::UpstreamHealth;
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, until, until_async};

fn program(mode: &str) -> Value {
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../mcp/tests/fixtures/stdio_server.py"
    );
    json!({"command": "python3", "args": [fixture, mode]})
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_both_eras_are_served() {
    let servers = json!({"old": program("handshake"), "new": program("stateless")});
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    for era in [Era::Handshake, Era::Stateless] {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let tools = agent.tools().await;
        for server in ["old", "new"] {
            let first = tools.iter().find(|it| it.starts_with(server));
            let tool = first.unwrap_or_else(|| panic!("{server} {tools:?}"));
            let answer = agent.call(tool, json!({})).await;
            assert!(
                answer["result"]["echo"]["name"].is_string(),
                "{era:?} {answer}"
            );
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_is_started_again() {
    let mut entry = program("handshake");
    entry["restart"] = json!({"first": "10ms", "most": "50ms"});
    let gateway = TestGateway::start(&json!({"servers": {"p": entry}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let tool = agent.tools().await.swap_remove(0);
    let answer = agent.call(&tool, json!({})).await;
    assert!(answer["result"]["echo"].is_object(), "{answer}");
    let upstream = gateway.gateway.upstreams().swap_remove(0);
    let pids = upstream.status().pids;
    assert_eq!(
        pids.len(),
        3,
        "the gateway's own, the one for lists, the agent's"
    );
    for pid in &pids {
        let killed = std::process::Command::new("kill")
            .arg("-9")
            .arg(pid.to_string())
            .status();
        assert!(killed.unwrap().success());
    }
    until_async("it answers again", async || {
        let answer = agent.call(&tool, json!({})).await;
        answer["result"]["echo"].is_object()
    })
    .await;
    let now = upstream.status().pids;
    assert!(now.iter().all(|pid| !pids.contains(pid)), "{now:?}");
    gateway.stop().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    for pid in now {
        let alive = std::path::Path::new(&format!("/proc/{pid}")).exists();
        assert!(!alive, "{pid} outlives the gateway");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_exist_is_told_apart() {
    let servers = json!({"none": {"command": "/nonexistent/server"}, "p": program("handshake")});
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert!(!agent.tools().await.is_empty());
    let none = gateway.gateway.upstreams().swap_remove(0);
    until("it is given up", || {
        none.status().health == UpstreamHealth::Failed
    })
    .await;
    gateway.stop().await;
}
