//! Requests that would reach a server past the gates.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, identity};
use crate::support::{TestGateway, shop_of};

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
        // What is decided is what the server would read.
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
