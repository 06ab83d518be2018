//! What a person approves with the command while a gateway uses the same store.

use std::time::Duration;

use serde_json::{Value, json};

use super::callers::{AnsweredCalls, POLICY, records, require_records};
use super::{ServedGateway, shop_settings};
use crate::sandbox::{Sandbox, data};

fn tools(description: &str) -> String {
    let schema = json!({"type": "object", "properties": {"ref": {"type": "string"}}});
    json!([{"name": "click", "description": description, "inputSchema": schema}]).to_string()
}

#[test]
fn approvals_are_recorded_while_a_gateway_writes() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    sandbox.write("one.json", &tools("Click."));
    sandbox.write("two.json", &tools("Click twice."));
    let served = ServedGateway::start(&sandbox, &[]);
    let answered = AnsweredCalls::default();
    let store = ["--store", "toolwarden.db"];
    let watch = |args: &[&str]| sandbox.watch(&[args, &store[..]].concat());
    answered.while_calling(&served, || {
        let why = ["--why", "reviewed", "--by", "grace"];
        let pinned = watch(&[&["baseline", "one.json"], &why[..]].concat());
        assert_eq!(pinned.code, 0, "{pinned:?}");
        // What is pinned already is not pinned again.
        let again = watch(&[&["baseline", "one.json"], &why[..]].concat());
        assert_eq!(again.code, 0, "{again:?}");
        watch(&["check", "two.json"]);
        let approved = watch(&[
            "approve",
            "--tool",
            "click",
            "--why",
            "agreed with browser team",
        ]);
        assert_eq!(approved.code, 0, "{approved:?}");
        let imported = watch(&["import", &data("toolwatch/old")]);
        assert_eq!(imported.code, 0, "{imported:?}");
        let wrong = watch(&["approve", "--tool", "clik", "--why", "mistyped"]);
        assert_eq!(wrong.code, 2, "{wrong:?}");
    });
    let done: Vec<Value> = records(&sandbox, "toolwarden.db")
        .into_iter()
        .filter(|record| record["kind"] == "administration")
        .map(|mut record| {
            let id = record["body"].as_object_mut().unwrap().remove("id");
            assert_eq!(id.unwrap().as_str().unwrap().len(), 26);
            json!([record["code"], record["principal"], record["body"]])
        })
        .collect();
    let pinned = json!({"pinned": {"server": "local", "scope": "default", "tools": ["click"],
        "retired": [], "sealed": true}, "reason": "reviewed"});
    let approved = json!({"approved": {"server": "local", "tool": "click", "approved": "tool"},
        "reason": "agreed with browser team"});
    assert_eq!(done[0], json!(["pinned", "grace", pinned]));
    assert_eq!(done[1], json!(["approved", "ada", approved]));
    assert_eq!(
        (&done[2][0], &done[2][1]),
        (&"imported".into(), &"ada".into())
    );
    assert_eq!(done.len(), 3, "{done:#?}");

    let before = answered.so_far().len();
    answered.while_calling(&served, || std::thread::sleep(Duration::from_millis(300)));
    let answered = answered.so_far();
    assert!(answered.len() > before, "the gateway goes on");
    require_records(&sandbox, "toolwarden.db", &answered);
}
