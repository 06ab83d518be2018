//! Programs are started when they are needed, and not for lists alone.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{Peer, servers, tool};
use crate::support::{Agent, TestGateway};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_only_list_start_no_program_of_their_own() {
    let peer = Peer::new(
        "peer",
        json!({"eras": "handshake", "tools": [tool("base", "Does.")]}),
    );
    let gateway = TestGateway::start(&servers(&[&peer])).await;
    let mut agents = Vec::new();
    for _ in 0..5 {
        let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert_eq!(agent.tools().await, ["peer__base"]);
        agents.push(agent);
    }
    assert_eq!(
        peer.starts(),
        2,
        "the gateway's own, and one for clients like these"
    );
    for agent in &agents {
        agent.call("peer__base", json!({})).await;
    }
    assert_eq!(peer.starts(), 7, "each that calls has its own");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_programs_than_allowed_are_refused_in_words() {
    let peer = Peer::new(
        "peer",
        json!({"eras": "handshake", "tools": [tool("base", "Does.")]}),
    );
    let mut settings = servers(&[&peer]);
    settings["servers"]["peer"]["max_links"] = json!(2);
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    // The idle one for lists makes room.
    let answer = agent.call("peer__base", json!({})).await;
    assert!(answer["result"]["isError"] != true, "{answer}");
    let upstream = gateway.gateway.upstreams().swap_remove(0);
    assert!(upstream.status().links <= 2);
    gateway.stop().await;
}
