//! Answers about tasks, which 2025-11-25 has in the core of the protocol.

use serde_json::{Value, json};

use super::{Revision, Sheet, assert_valid};
use crate::support::TestGateway;

fn server(watch: &str) -> Value {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/servers/tasks.py"
    );
    json!({"command": "python3", "args": [program, "done"], "watch": {"output": watch}})
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_valid() {
    let Some(revision) = Revision::read("2025-11-25") else {
        return;
    };
    let servers = json!({"servers": {"a": server("report"), "b": server("enforce")}});
    let gateway = TestGateway::start(&servers).await;
    let agent = revision.agent(&gateway.url, &[]).await;
    let mut sheet = Sheet::new(&revision);
    sheet
        .ask(&agent, "before any", "tasks/list", json!({}))
        .await;
    for (name, arguments) in [("a", json!({})), ("b", json!({"structured": {"n": "x"}}))] {
        let params = json!({"name": format!("{name}__work"), "arguments": arguments,
            "task": {"ttl": 60000}});
        let begun = sheet.ask(&agent, name, "tools/call", params).await;
        assert_eq!(begun["result"]["task"]["taskId"], format!("{name}/1"));
    }
    let all = sheet
        .ask(&agent, "two tasks", "tasks/list", json!({}))
        .await;
    assert_eq!(all["result"]["tasks"].as_array().unwrap().len(), 2, "{all}");
    for method in ["tasks/get", "tasks/cancel"] {
        let task = json!({"taskId": "a/1"});
        let answer = sheet.ask(&agent, method, method, task).await;
        assert!(answer["result"].is_object(), "{answer}");
        let unknown = json!({"taskId": "a/2"});
        let answer = sheet.ask(&agent, method, method, unknown).await;
        assert!(answer["error"].is_object(), "{answer}");
    }
    // The result of `b` is withheld: it breaks its output schema.
    let params = json!({"taskId": "b/1"});
    let mut all = agent.begin("tasks/result", params).await.rest().await;
    let withheld = all.pop().unwrap();
    let denial = &withheld["result"]["_meta"]["toolwarden/denial"]["code"];
    assert_eq!(denial, "invalid_output", "{withheld}");
    sheet.answer("withheld", "tools/call", &withheld);
    for message in &all {
        sheet.unprompted("task status", message);
    }
    assert_valid(&sheet.faults);
    gateway.stop().await;
}
