//! Tasks of servers that use the same ids.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::guarding::{agent_of, identity, rows};
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
        agent.connect_request["capabilities"]["tasks"],
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

fn begin(arguments: &Value) -> Value {
    json!({"name": "a__work", "arguments": arguments, "task": {"ttl": 60000}})
}

/// Over a shared link, a server reports the tasks of all agents to every agent.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_other_principals_are_refused() {
    let mut shared = server("for ada");
    shared["sessions"] = json!("shared");
    let settings = json!({"servers": {"a": shared}, "identity": identity(&["ada", "ben"])});
    let gateway = TestGateway::start(&settings).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    let ben = agent_of(Era::Handshake, &gateway.url, "ben", &[]).await;
    ada.result("tools/call", begin(&json!({}))).await;
    assert!(ben.names("tasks/list", "tasks", "taskId").await.is_empty());
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = ben.ask(method, json!({"taskId": "a/1"})).await;
        let words = refused["error"]["message"].as_str().unwrap();
        assert_eq!(words, "no task `a/1` is known", "{method}");
    }
    let got = ada.result("tasks/get", json!({"taskId": "a/1"})).await;
    assert_eq!(got["status"], "working", "it was not cancelled");
    assert_eq!(ada.names("tasks/list", "tasks", "taskId").await, ["a/1"]);
    gateway.stop().await;
}

/// If each agent has its own link, servers may use the same id for the tasks of both.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_the_same_name_are_two() {
    let settings = json!({
        "servers": {"a": server("done")},
        "identity": identity(&["ada", "ben"]),
    });
    let gateway = TestGateway::start(&settings).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    let ben = agent_of(Era::Handshake, &gateway.url, "ben", &[]).await;
    for agent in [&ada, &ben] {
        agent.result("tools/call", begin(&json!({}))).await;
    }
    let task = json!({"taskId": "a/1"});
    ben.result("tasks/cancel", task.clone()).await;
    assert_eq!(
        ada.result("tasks/get", task.clone()).await["status"],
        "working"
    );
    assert_eq!(ben.result("tasks/get", task).await["status"], "cancelled");
    gateway.stop().await;
}

/// The result of a task passes the same checks as an immediate result.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_end_as_they_end() {
    let mut enforced = server("for ada");
    enforced["watch"] = json!({"output": "enforce"});
    let gateway = TestGateway::start(&json!({"servers": {"a": enforced}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let last = || rows(&gateway.gateway).last().unwrap().word();
    let task = json!({"taskId": "a/1"});

    agent
        .result("tools/call", begin(&json!({"status": "failed"})))
        .await;
    let got = agent.result("tasks/get", task.clone()).await;
    assert_eq!(got["status"], "failed");
    assert_eq!(last(), "outcome failed");

    let wrong = begin(&json!({"structured": {"n": "none"}}));
    agent.result("tools/call", wrong).await;
    for _ in 0..2 {
        let mut exchange = agent.begin("tasks/result", task.clone()).await;
        let answer = exchange.rest().await.pop().unwrap().to_string();
        assert!(
            answer.contains("withheld") && !answer.contains("for ada"),
            "{answer}"
        );
    }
    assert_eq!(last(), "outcome failed");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_are_as_promised_succeed() {
    let mut enforced = server("for ada");
    enforced["watch"] = json!({"output": "enforce"});
    let gateway = TestGateway::start(&json!({"servers": {"a": enforced}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let right = begin(&json!({"structured": {"n": 1}}));
    agent.result("tools/call", right).await;
    let mut exchange = agent.begin("tasks/result", json!({"taskId": "a/1"})).await;
    let answer = exchange.rest().await.pop().unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}));
    let last = rows(&gateway.gateway).pop().unwrap();
    assert_eq!(last.word(), "outcome succeeded");
    gateway.stop().await;
}
