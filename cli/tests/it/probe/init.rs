//! `probe init`: suites from definitions, servers, lock files and recorded calls.

use super::ProbeSandbox;
use crate::sandbox::data;

const TOOLS: &str = r#"[
  {"name": "get_order", "description": "Get an order.", "inputSchema": {"type": "object",
    "properties": {"order_id": {"type": "string"}, "detail": {"enum": ["short", "full"]}}, "required": ["order_id"]}},
  {"name": "cancel_order", "description": "Cancel an order.", "inputSchema": {"type": "object",
    "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}
]"#;

/// The names of the cases of a suite, in order.
fn case_names(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|it| it.strip_prefix("  - name: "));
    lines.map(|it| it.trim_matches('"').to_owned()).collect()
}

#[test]
fn a_suite_of_definitions_runs_and_is_not_overwritten() {
    let probe = ProbeSandbox::new();
    probe.write("tools.json", TOOLS);
    let said = probe.run_to(
        0,
        &["init", "tools.json", "--name", "orders", "-o", "suite.yaml"],
    );
    assert_eq!(
        said.err,
        "10 cases for 2 tools; each repetition sends 11 requests to each provider in each mode\n"
    );
    let text = probe.read("suite.yaml");
    assert_eq!(
        case_names(&text),
        [
            "get_order/typical",
            "get_order/optional",
            "get_order/enum-detail",
            "get_order/parallel",
            "get_order/refusal",
            "cancel_order/typical",
            "cancel_order/parallel",
            "cancel_order/refusal",
            "get_order+cancel_order/two-tools",
            "get_order+cancel_order/multi-turn",
        ]
    );
    assert!(
        text.starts_with("# A suite for `toolwarden probe`, drafted from tools.json.\n"),
        "{text}"
    );
    // The fixture answers about the weather; the suite is read and run all the same.
    let snapshot = [
        "snapshot",
        "--provider",
        "deepseek",
        "--from-fixtures",
        "--suite",
        "suite.yaml",
        "-q",
    ];
    let said = probe.run_to(0, &snapshot);
    assert!(said.out.contains("\"suite\": \"orders\""), "{}", said.out);
    let said = probe.run_to(2, &["init", "tools.json", "-o", "suite.yaml"]);
    assert_eq!(
        said.err,
        "error: suite.yaml already exists\n  help: pass --force to replace it\n"
    );
    probe.run_to(
        0,
        &[
            "init",
            "tools.json",
            "-o",
            "suite.yaml",
            "--force",
            "--tool",
            "cancel_order",
        ],
    );
    assert!(!probe.read("suite.yaml").contains("get_order"));
}

#[test]
fn tools_come_from_a_lock_file_and_arguments_from_the_audit_log() {
    let probe = ProbeSandbox::new();
    probe.write("tools.json", TOOLS);
    let lock = probe
        .sandbox
        .command()
        .args(["watch", "lock", "tools.json"])
        .output()
        .unwrap();
    assert!(lock.status.success(), "{lock:?}");
    probe.write(
        "audit.jsonl",
        &[
            r#"{"seq":1,"kind":"decision","tool":"get_order","allowed":true,"body":{"arguments":{"order_id":"R-77"}}}"#,
            r#"{"seq":2,"kind":"decision","tool":"get_order","allowed":false,"body":{"arguments":{"order_id":"DENIED"}}}"#,
            r#"{"seq":3,"kind":"decision","tool":"cancel_order","allowed":true,"body":{"arguments":{"order_id":"[redacted]"}}}"#,
            r#"{"seq":4,"kind":"outcome","tool":"get_order","body":{}}"#,
            r#"{"tool":"cancel_order","arguments":{"order_id":"sk-1","api_key":"very-secret"}}"#,
        ]
        .join("\n"),
    );
    let said = probe.run_to(
        0,
        &[
            "init",
            "--lock",
            "toolwarden.lock",
            "--calls",
            "audit.jsonl",
        ],
    );
    assert!(said.out.contains("order_id \\\"R-77\\\""), "{}", said.out);
    for withheld in ["DENIED", "[redacted]", "very-secret", "sk-1"] {
        assert!(!said.out.contains(withheld), "{withheld}: {}", said.out);
    }
    assert!(
        said.err
            .starts_with("2 recorded calls hold redacted or shortened values and are not used\n"),
        "{}",
        said.err
    );
}

#[test]
fn recorded_calls_alone_give_tools_and_mistakes_are_named() {
    let probe = ProbeSandbox::new();
    probe.write(
        "calls.jsonl",
        "{\"tool\": \"pay\", \"arguments\": {\"amount\": 3}}\n",
    );
    let said = probe.run_to(0, &["init", "--calls", "calls.jsonl"]);
    assert!(
        said.out.contains("Inferred from 1 recorded calls"),
        "{}",
        said.out
    );
    assert_eq!(
        case_names(&said.out),
        [
            "pay/typical",
            "pay/parallel",
            "pay/refusal",
            "pay/multi-turn"
        ]
    );
    probe.write("bad.jsonl", "{\"tool\": \"pay\"}\n");
    let said = probe.run_to(2, &["init", "--calls", "bad.jsonl"]);
    assert!(said.err.starts_with("error: bad.jsonl:1"), "{}", said.err);
    probe.run_to(2, &["init"]);
    probe.run_to(2, &["init", "missing.json"]);
    probe.write("tools.json", TOOLS);
    let said = probe.run_to(2, &["init", "tools.json", "--tool", "get_ordre"]);
    assert!(
        said.err.contains("did you mean `get_order`?"),
        "{}",
        said.err
    );
}

#[test]
fn tools_come_from_a_live_server() {
    let probe = ProbeSandbox::new();
    probe.write("tools.json", TOOLS);
    let server = data("server/tools.py");
    let command = format!("python3 {server} {}", probe.path("").display());
    let said = probe.run_to(0, &["init", "--mcp-command", &command]);
    let from_file = probe.run_to(0, &["init", "tools.json"]);
    let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&said.out), body(&from_file.out));
    let said = probe.run(&["init", "--mcp-command", "false"]);
    assert_eq!(said.code, 3, "{said:#?}");
}
