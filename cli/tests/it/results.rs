//! Results of tools: few of them, and fixtures.

use super::sandbox::{CommandOutput, Sandbox};

const ORDER: &str = r#"{"id": 7, "status": "open", "owner": {"login": "ada"}}"#;

fn pinned(results: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "order.json",
        r#"{"name": "order", "inputSchema": {"type": "object"}}"#,
    );
    sandbox.write("before.jsonl", &results.join("\n"));
    let args = ["baseline", "order.json", "--responses", "before.jsonl"];
    sandbox.watch_to(0, &args);
    sandbox
}

fn check(sandbox: &Sandbox, code: i32, results: &[&str], more: &[&str]) -> CommandOutput {
    sandbox.write("now.jsonl", &results.join("\n"));
    let args = ["check", "order.json", "--responses", "now.jsonl"];
    sandbox.watch_to(code, &[&args[..], more].concat())
}

#[test]
fn too_few_results_are_not_measured_in_every_format() {
    let other = r#"{"id": "7", "status": "open", "owner": null}"#;
    for result in [ORDER, other] {
        let sandbox = pinned(&[ORDER]);
        let text = check(&sandbox, 3, &[result], &[]).out;
        assert!(
            text.contains(
                "1 results against 1 in the baseline cannot be told from chance; 9 against 9 can"
            ),
            "{text}"
        );
        assert!(text.contains("results not measured of 1 tool"), "{text}");
        for (format, mark) in [
            ("json", "\"measured\": false"),
            ("sarif", "\"ruleId\": \"drift/not-measured\""),
            (
                "junit",
                "<skipped message=\"results not measured: 1 results against 1",
            ),
            (
                "github",
                "::warning file=order.json,line=1,col=1,title=drift not-measured::order: ",
            ),
            (
                "markdown",
                "**results not measured**: order: 1 results against 1",
            ),
        ] {
            let told = check(&sandbox, 3, &[result], &["--format", format]).out;
            assert!(told.contains(mark), "{format}: {told}");
        }
        let alerts = sandbox.watch_to(0, &["alerts"]).out;
        assert!(!alerts.contains("breaking"), "{alerts}");
    }
}

#[test]
fn unchanged_tools_with_one_result_each_never_break() {
    let results = [
        r#"{"id": 1, "parent": null, "total": 3}"#,
        r#"{"id": 2, "parent": {"id": 1}, "total": "3 EUR"}"#,
        r#"{"id": 3, "parent": {"id": 2}, "total": 1.5, "note": "x"}"#,
        r#"{"id": 4, "parent": null, "total": "2 EUR", "note": null}"#,
    ];
    for before in results {
        for after in results {
            check(&pinned(&[before]), 3, &[after], &["--fail-on", "any"]);
        }
    }
}

#[test]
fn other_members_altogether_are_drift_with_few_results() {
    for count in [1, 5] {
        let sandbox = pinned(&vec![ORDER; count]);
        let said = check(&sandbox, 1, &vec![r#"{"error": "gone"}"#; count], &[]);
        assert!(said.out.starts_with("BREAKING order"), "{}", said.out);
        assert!(
            said.out.contains("every member was replaced"),
            "{}",
            said.out
        );
    }
}

#[test]
fn fixtures_are_compared_exactly() {
    let sandbox = pinned(&[ORDER]);
    let same = check(&sandbox, 0, &[ORDER], &["--fixtures"]);
    assert!(
        same.out.starts_with("no drift: 1 tool unchanged"),
        "{}",
        same.out
    );
    for (now, expected) in [
        (
            r#"{"id": "7", "status": "open", "owner": {"login": "ada"}}"#,
            "`/id`: new type string",
        ),
        (
            r#"{"id": 7, "status": "open", "owner": {}}"#,
            "`/owner/login`: share of results with this member",
        ),
    ] {
        let said = check(&sandbox, 1, &[now], &["--fixtures"]);
        assert!(said.out.contains(expected), "{}", said.out);
        let waits = sandbox.watch_to(0, &["approve"]).out;
        assert!(waits.contains(expected), "{waits}");
    }
    let none = sandbox.watch_to(2, &["check", "order.json", "--fixtures"]);
    assert!(
        none.err.contains("--fixtures needs results"),
        "{}",
        none.err
    );
    sandbox.watch_to(0, &["approve", "--all", "--why", "the id is a text now"]);
    let now = r#"{"id": 7, "status": "open", "owner": {}}"#;
    check(&sandbox, 0, &[now], &["--fixtures"]);
}

#[test]
fn a_lock_file_without_results_measures_none() {
    let sandbox = pinned(&[ORDER]);
    sandbox.watch_to(0, &["lock", "order.json"]);
    check(&sandbox, 3, &[ORDER], &["--lock", "toolwarden.lock"]);
}
