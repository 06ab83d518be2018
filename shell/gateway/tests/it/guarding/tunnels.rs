//! Requests that try to bypass the gates.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, identity, worked};
use crate::support::{Agent, TestGateway, shop_of};
use crate::transparent::Peer;

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_references_carry_nothing_past_the_gates() {
    for era in ERAS {
        let server = shop_of(era);
        let gateway = TestGateway::start(&json!({
            "servers": {"s": at_with(&server, json!({}))},
            "identity": identity(&["eve"]),
            "policy": {"tools": {}, "principals": {"eve": {"groups": []}}},
        }))
        .await;
        let eve = agent_of(era, &gateway.url, "eve", &[]).await;
        // Stateless requests repeat the name of a task in a header, which is checked before.
        if era == Era::Handshake {
            // No permitted call of this principal started the task.
            for method in ["tasks/get", "tasks/cancel"] {
                let answer = eve.ask(method, json!({"taskId": "s/other"})).await;
                let text = answer["error"]["message"].as_str().unwrap_or_default();
                assert_eq!(
                    text, "no task `s/other` is known",
                    "{era:?} {method}: {answer}"
                );
            }
            // A method that only looks like one of tasks is one of an extension, which no server declares.
            let answer = eve.ask("tasks/foo", json!({"taskId": "s/other"})).await;
            assert_eq!(answer["error"]["code"], -32601, "{era:?}: {answer}");
        }
        // The guard decides on what the server would read.
        for reference in [
            json!({"type": "ref/prompt", "name": "secret", "uri": "file:///public"}),
            json!({"type": "ref/resource", "name": "secret"}),
            json!({"type": "ref/prompt", "uri": "file:///public"}),
            json!({"name": "secret"}),
        ] {
            let params = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
            let answer = eve.ask("completion/complete", params).await;
            assert_eq!(
                answer["error"]["code"], -32602,
                "{era:?} {reference}: {answer}"
            );
        }
        let ambiguous = json!({"uri": "file:///public%3F/../secret"});
        let answer = eve.ask("resources/read", ambiguous).await;
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains("several addresses"), "{era:?}: {answer}");
        gateway.stop().await;
    }
}

/// A caller that may not use a server does not reach it, and over a shared connection no caller speaks for the
/// others.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_for_anything_does_not_reach_shared_servers() {
    let peer = Peer::new(
        "desk",
        json!({
            "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
            "greeting": {"handshake": {
                "instructions": "Only for those inside.",
                "capabilities": {"tools": {}, "logging": {}},
            }},
            "eras": "handshake",
        }),
    );
    let mut entry = peer.entry();
    entry["sessions"] = json!("shared");
    let gateway = TestGateway::start(&json!({
        "servers": {"desk": entry},
        "identity": identity(&["ada", "eve"]),
        "policy": {"tools": {}, "principals": {"ada": {"groups": ["*"]}, "eve": {"groups": []}}},
    }))
    .await;
    let connect_request = |agent: &Agent| agent.connect_request["instructions"].clone();
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    let eve = agent_of(Era::Handshake, &gateway.url, "eve", &[]).await;
    assert!(worked(&ada.call("desk__look", json!({})).await));
    assert!(
        connect_request(&ada)
            .as_str()
            .unwrap()
            .contains("Only for those")
    );
    assert_eq!(connect_request(&eve), Value::Null);
    eve.ask("logging/setLevel", json!({"level": "emergency"}))
        .await;
    eve.ask("tasks/list", json!({})).await;
    for agent in [&eve, &ada] {
        agent
            .notify("notifications/roots/list_changed", json!({}))
            .await;
    }
    // A request that the server answers after whatever came before.
    assert!(worked(&ada.call("desk__look", json!({})).await));
    let log = peer.log();
    for unheard in [
        "logging/setLevel",
        "tasks/list",
        "notifications/roots/list_changed",
    ] {
        assert!(!log.iter().any(|it| it.starts_with(unheard)), "{log:?}");
    }
    // The most verbose level wins.
    ada.ask("logging/setLevel", json!({"level": "info"})).await;
    assert!(
        peer.log()
            .iter()
            .any(|it| it.starts_with("logging/setLevel"))
    );
    gateway.stop().await;
}
