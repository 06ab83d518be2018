//! Tasks of servers that call them the same.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway};

fn server(words: &str) -> Value {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/servers/tasks.py"
    );
    json!({"command": "python3", "args": [program, words]})
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_told_apart() {
    let servers = json!({"a": server("from a"), "b": server("from b")});
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(
        agent.opening["capabilities"]["tasks"],
        json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    );
    for name in ["a", "b"] {
        let params =
            json!({"name": format!("{name}__work"), "arguments": {}, "task": {"ttl": 60000}});
        let begun = agent.result("tools/call", params).await;
        assert_eq!(begun["task"]["taskId"], format!("{name}/1"), "{begun}");
    }
    let tasks = agent.names("tasks/list", "tasks", "taskId").await;
    assert_eq!(tasks, ["a/1", "b/1"]);
    let status = async |task: &str| {
        let got = agent.result("tasks/get", json!({"taskId": task})).await;
        assert_eq!(got["taskId"], task);
        got["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status("a/1").await, "working");
    let cancelled = agent.result("tasks/cancel", json!({"taskId": "a/1"})).await;
    assert_eq!(
        (&cancelled["taskId"], &cancelled["status"]),
        (&json!("a/1"), &json!("cancelled"))
    );
    assert_eq!(status("b/1").await, "working", "only one was cancelled");
    let mut exchange = agent.begin("tasks/result", json!({"taskId": "b/1"})).await;
    let all = exchange.rest().await;
    let result = &all.last().unwrap()["result"];
    assert_eq!(
        *result,
        json!({
            "content": [{"type": "text", "text": "from b"}],
            "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "b/1"}},
        })
    );
    if let [told, _] = all.as_slice() {
        assert_eq!(told["params"]["taskId"], "b/1", "{told}");
    }
    for task in ["1", "c/1", "a/2"] {
        let unknown = agent.ask("tasks/get", json!({"taskId": task})).await;
        assert!(unknown["error"]["code"].is_i64(), "{task}: {unknown}");
    }
    gateway.stop().await;
}
