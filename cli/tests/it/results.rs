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
                "too few results to exclude chance: 1 against 1 in the baseline; 9 against 9 suffice"
            ),
            "{text}"
        );
        assert!(text.contains("results not measured of 1 tool"), "{text}");
        for (format, mark) in [
            ("json", "\"measured\": false"),
            ("sarif", "\"ruleId\": \"drift/not-measured\""),
            (
                "junit",
                "<skipped message=\"results not measured: too few results to exclude chance: 1 against 1",
            ),
            (
                "github",
                "::warning file=order.json,line=1,col=1,title=drift not-measured::order: ",
            ),
            (
                "markdown",
                "**results not measured**: order: too few results to exclude chance: 1 against 1",
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
fn every_difference_of_a_fixture_fails() {
    let text = |said: &str| format!(r#"{{"content": [{{"type": "text", "text": "{said}"}}]}}"#);
    let cases = [
        (
            text("12 degrees"),
            text("13 degrees"),
            "text: `the whole`: other content",
        ),
        (
            r#"{"list": [1, 2]}"#.to_owned(),
            r#"{"list": [1]}"#.to_owned(),
            "`/list`: share of lengths",
        ),
        (
            r#"{"price": 10.25}"#.to_owned(),
            r#"{"price": 10.75}"#.to_owned(),
            "`/price`: other content",
        ),
        (
            r#"{"status": "open"}"#.to_owned(),
            r#"{"status": "shut"}"#.to_owned(),
            "`/status`: new value",
        ),
    ];
    for (before, now, expected) in &cases {
        let sandbox = pinned(&[before]);
        check(&sandbox, 0, &[before], &["--fixtures"]);
        let said = check(&sandbox, 1, &[now], &["--fixtures"]);
        assert!(said.out.contains(expected), "{}", said.out);
    }
    let sandbox = pinned(&[ORDER, "{}"]);
    for results in [&[ORDER][..], &[ORDER, ORDER, "{}"]] {
        let said = check(&sandbox, 1, results, &["--fixtures"]);
        assert!(
            said.out.contains("the baseline has 2 fixtures"),
            "{}",
            said.out
        );
    }
}

#[test]
fn a_tool_without_its_fixture_fails() {
    let sandbox = Sandbox::new();
    let tool = |name: &str| format!(r#"{{"name": "{name}", "inputSchema": {{"type": "object"}}}}"#);
    sandbox.write(
        "tools.json",
        &format!("[{}, {}]", tool("order"), tool("price")),
    );
    let fixture = |name: &str| format!(r#"{{"tool": "{name}", "result": {ORDER}}}"#);
    sandbox.write(
        "both.jsonl",
        &format!("{}\n{}", fixture("order"), fixture("price")),
    );
    sandbox.write("one.jsonl", &fixture("order"));
    sandbox.watch_to(0, &["baseline", "tools.json", "--responses", "both.jsonl"]);
    let check = |code: i32, file: &str| {
        let args = ["check", "tools.json", "--fixtures", "--responses", file];
        sandbox.watch_to(code, &args).out
    };
    check(0, "both.jsonl");
    let said = check(1, "one.jsonl");
    assert!(
        said.contains("the baseline has 1 result of the tool, and this check has none"),
        "{said}"
    );
}

#[test]
fn answers_that_turned_into_nothing_fail() {
    let text = |said: &str| format!(r#"{{"content": [{{"type": "text", "text": "{said}"}}]}}"#);
    for (before, now) in [
        (
            r#"{"list": [1, 2]}"#.to_owned(),
            r#"{"list": []}"#.to_owned(),
        ),
        (r#"{"ok": true}"#.to_owned(), r#"{"ok": false}"#.to_owned()),
        (text("12 degrees and rain"), text("Error: unauthorized")),
        (text("[1, 2]"), text("[]")),
    ] {
        let sandbox = pinned(&[before.as_str(); 20]);
        check(&sandbox, 0, &[before.as_str(); 20], &[]);
        let said = check(&sandbox, 1, &[now.as_str(); 20], &[]);
        assert!(said.out.starts_with("BREAKING order"), "{}", said.out);
        let sandbox = pinned(&[before.as_str(); 3]);
        let said = check(&sandbox, 3, &[now.as_str(); 3], &[]);
        assert!(said.out.contains("9 against 9 suffice"), "{}", said.out);
    }
}

#[test]
fn a_lock_file_does_not_compare_fixtures_exactly() {
    let sandbox = pinned(&[ORDER]);
    let lock = ["lock", "order.json", "--responses", "before.jsonl"];
    sandbox.watch_to(0, &lock);
    let args = ["--lock", "toolwarden.lock", "--fixtures"];
    let said = check(&sandbox, 3, &[ORDER], &args);
    assert!(
        said.out.contains("cannot be compared exactly"),
        "{}",
        said.out
    );
}

#[test]
fn a_lock_file_without_results_measures_none() {
    let sandbox = pinned(&[ORDER]);
    sandbox.watch_to(0, &["lock", "order.json"]);
    check(&sandbox, 3, &[ORDER], &["--lock", "toolwarden.lock"]);
}
