use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use crate::sandbox::{CommandOutput, Sandbox, command_output};

fn messages() -> String {
    let face = json!({"name": "test", "version": "1"});
    let refund = json!({"order_id": "A-1001", "amount": 5, "reason": "late"});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": face}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "refund_order", "arguments": refund}}),
    ];
    messages.iter().map(|it| format!("{it}\n")).collect()
}

/// What a wrapped server answers to the messages, by id, and what is said besides.
fn wrap(sandbox: &Sandbox, args: &[&str]) -> (Vec<Value>, CommandOutput) {
    let mut child = sandbox
        .command()
        .arg("wrap")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A command that refuses its arguments does not read.
    let _unread = input.write_all(messages().as_bytes());
    drop(input);
    let said = command_output(child.wait_with_output().unwrap());
    // Nothing but the protocol is on standard output.
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut answers: Vec<Value> = lines.filter(|it| it.get("id").is_some()).collect();
    answers.sort_by_key(|it| it["id"].as_i64());
    (answers, said)
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_that_drifts_is_withheld_until_it_is_approved() {
    let sandbox = Sandbox::new();
    let program = cargo_bin!("toolwarden").to_str().unwrap();
    let plain = ["--name", "shop", "--", program, "__demo-server"];
    let drifted = [
        "--name",
        "shop",
        "--",
        program,
        "__demo-server",
        "--drifted",
    ];

    let (answers, said) = wrap(&sandbox, &plain);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(
        said.out.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,"),
        "{said:?}"
    );
    let all = [
        "search_orders",
        "refund_order",
        "export_report",
        "cancel_order",
        "draft_reply",
        "list_folders",
        "echo",
    ];
    assert_eq!(names(&answers[1]), all);
    let refunded = json!({"order_id": "A-1001", "refunded": 5, "status": "refunded"});
    assert_eq!(answers[2]["result"]["structuredContent"], refunded);

    let (answers, said) = wrap(&sandbox, &drifted);
    assert_eq!(said.code, 0, "{said:?}");
    let store = sandbox.path("data/toolwarden/wrap/shop.db");
    let store = store.to_str().unwrap();
    let remedy = format!("`toolwarden watch approve --store '{store}' --server shop`");
    assert!(said.err.contains(&remedy), "{said:?}");
    assert!(!names(&answers[1]).contains(&"refund_order"));
    let denial = &answers[2]["result"]["_meta"]["toolwarden/denial"];
    assert_eq!(denial["code"], "quarantined", "{answers:?}");

    sandbox.watch_to(
        0,
        &["approve", "--store", store, "--server", "shop", "--all"],
    );
    let (answers, said) = wrap(&sandbox, &drifted);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(names(&answers[1]), all);
    assert_eq!(answers[2]["result"]["structuredContent"], refunded);
}

#[test]
fn a_policy_decides_in_the_name_of_the_principal() {
    let sandbox = Sandbox::new();
    let program = cargo_bin!("toolwarden").to_str().unwrap();
    sandbox.write(
        "policy.yaml",
        "tools: {refund_order: {groups: [money]}}\nprincipals: {\"*\": {groups: [default]}}\n",
    );
    let args = [
        "--policy",
        "policy.yaml",
        "--principal",
        "eve",
        "--store",
        "own.db",
    ];
    let (answers, said) = wrap(
        &sandbox,
        &[&args[..], &["--", program, "__demo-server"]].concat(),
    );
    assert_eq!(said.code, 0, "{said:?}");
    let denial = &answers[2]["result"]["_meta"]["toolwarden/denial"];
    assert_eq!(denial["code"], "filtered_by_group", "{answers:?}");
    let list = ["audit", "list", "--store", "own.db", "--denied"];
    let listed = sandbox.command().args(list).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("eve") && listed.contains("refund_order"),
        "{listed}"
    );
}

#[test]
fn a_server_of_the_settings_is_wrapped_by_its_name() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &super::shop_settings(""));
    let (answers, said) = wrap(&sandbox, &["--config", "toolwarden.yaml", "--name", "shop"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(names(&answers[1]).len(), 7);
    assert!(sandbox.path("toolwarden.db").exists());
}

#[test]
fn mistakes_are_printed_on_standard_error() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &super::shop_settings(""));
    for (args, text) in [
        (vec![], "error: no server to wrap\n"),
        (vec!["--url", "mcp.example"], "error: `mcp.example` "),
        (
            vec!["--name", "a b", "--url", "http://127.0.0.1:1/mcp"],
            "error: `a b` cannot be the name of a server\n",
        ),
        (
            vec!["--config", "toolwarden.yaml", "--name", "shap"],
            "error: toolwarden.yaml has no server `shap`, did you mean `shop`?\n",
        ),
        (
            vec!["--policy", "gone.yaml", "--", "true"],
            "error: cannot read gone.yaml\n",
        ),
    ] {
        let (answers, said) = wrap(&sandbox, &args);
        assert_eq!(
            (said.code, answers),
            (2, Vec::new()),
            "{args:?}: {}",
            said.err
        );
        assert!(said.err.starts_with(text), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_server_that_cannot_be_started_is_an_answer() {
    let sandbox = Sandbox::new();
    let (answers, said) = wrap(&sandbox, &["--", "./no-such-program"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(answers[0]["error"]["code"], -32011, "{answers:?}");
    assert!(
        answers[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no-such-program")
    );
}

/// A desktop client shows what its servers write there.
#[test]
fn server_stderr_is_passed_through() {
    let sandbox = Sandbox::new();
    let program = cargo_bin!("toolwarden").to_str().unwrap();
    let script = format!("echo hello from the server >&2; exec '{program}' __demo-server");
    let (answers, said) = wrap(&sandbox, &["--name", "shop", "--", "sh", "-c", &script]);
    assert_eq!(names(&answers[1]).len(), 7);
    assert_eq!(said.err, "hello from the server\n");
    let (_, said) = wrap(&sandbox, &["--name", "x", "--", "./no-such-program"]);
    assert!(said.err.contains("no-such-program"), "{}", said.err);
    let header = ["--header", "A: b", "--", "cat"];
    let (_, said) = wrap(&sandbox, &header);
    assert_eq!(said.code, 2, "{}", said.err);
}
