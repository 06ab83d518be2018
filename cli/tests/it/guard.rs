//! The guard commands where things go wrong.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

const POLICY: &str = "
tools:
  search: {}
  pay: {input_schema: {properties: {amount: {maximum: 100}}}}
  secret: {required_permissions: [top]}
";

struct PolicyFolder(TempDir);

impl PolicyFolder {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy.yaml"), policy).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, args: &[&str], input: &str) -> (i32, String, String) {
        let mut child = Command::new(cargo_bin!("toolwarden"))
            .args(args)
            .current_dir(self.path())
            .env("TOOLWARDEN_STORE", "store.db")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that refuses its arguments does not read its input.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    fn check(&self, input: &str) -> (i32, String, String) {
        self.run(&["guard", "check", "--call", "-"], input)
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_not_decided() {
    let place = PolicyFolder::new(POLICY);
    for (call, told) in [
        (
            r#"{"tool":"secret","kind":"x","seq":1}"#,
            "a record of the log is not a call to decide",
        ),
        (
            r#"{"tool":"pay","arguments":"{\"amount\":999,\"amount\":5}"}"#,
            "`amount` is given twice",
        ),
        (
            r#"{"tool":"pay","arguments":{"amount":999,"amount":5}}"#,
            "`arguments/amount` is given twice",
        ),
        (
            r#"{"params":{"name":"search"},"function":{"name":"secret"}}"#,
            "several of params and function",
        ),
        (
            r#"{"tool":"pay","params":[{"amount":999}]}"#,
            "`params` has to be an object, not an array",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"name":"search"}}"#,
            "the method \"resources/read\" is not a tool call",
        ),
        (
            r#"{"tool":"search","name":"secret"}"#,
            "`tool` is given twice",
        ),
        (
            r#"{"tool":"search","grop":["a"]}"#,
            "unknown key `grop`, did you mean `group`?",
        ),
        (
            r#"{"tool":"search","group":"a"}"#,
            "`group` has to be a list of texts, not a string",
        ),
        (r#"{"principal":"a"}"#, "the call names no `tool`"),
        ("[1]", "a call is an object, not an array"),
        (r#"{"tool": "#, "not JSON: unexpected end of the text"),
        ("", "no call in -"),
    ] {
        let (code, out, err) = place.check(call);
        assert_eq!((code, out.as_str()), (2, ""), "{call}");
        assert!(err.contains(told), "{call}: {err}");
    }
}

#[test]
fn help_fits_what_is_wrong_with_the_text_of_a_policy() {
    let quotes = "  help: quote names that begin with `*`, `&`, `!` or `@`\n";
    for (policy, told, help) in [
        (
            "groups: *",
            "1:9: while scanning an anchor or alias, did not find expected alphabetic or numeric character",
            quotes,
        ),
        (
            "groups: *all",
            "1:9: while parsing node, found unknown anchor",
            quotes,
        ),
        ("groups: !all x", "1:9: unknown tag `!all`", quotes),
        (
            "# nothing",
            "1:1: the document is empty",
            "  help: check that this is the intended file\n",
        ),
        (
            "tools: {}\n---\ntools: {}",
            "2:1: a second document; keep one document per file",
            "  help: a line `---` begins another document\n",
        ),
        (
            "tools: {}\ntools: {}",
            "2:1: key `tools` is given twice",
            "  help: keep one of the two\n",
        ),
        ("tools: .inf", "1:8: a number must be finite", ""),
    ] {
        let (code, out, err) = PolicyFolder::new(policy).check("");
        assert_eq!((code, out.as_str()), (2, ""), "{policy}");
        assert_eq!(err, format!("error: policy.yaml:{told}\n{help}"));
    }
}

#[test]
fn calls_of_protocols_and_providers_are_understood() {
    let place = PolicyFolder::new(POLICY);
    for call in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"amount":5}}}"#,
        r#"{"type":"function_call","call_id":"c","name":"pay","arguments":"{\"amount\":5}","status":"completed"}"#,
        r#"{"id":"c","type":"function","function":{"name":"pay","arguments":"{\"amount\":5}"}}"#,
        r#"{"toolUse":{"toolUseId":"t","name":"pay","input":{"amount":5}}}"#,
        r#"{"connector_name":"pay","source_agent":"a","input_data":{"amount":5}}"#,
        "{\n  \"tool\": \"pay\",\n  \"arguments\": {\"amount\": 5}\n}\n",
    ] {
        let (code, out, err) = place.check(call);
        assert_eq!((code, err.as_str()), (0, ""), "{call}");
        assert!(out.starts_with("allow  pay"), "{call}: {out}");
    }
}

#[test]
fn decisions_come_line_by_line_with_their_place() {
    let place = PolicyFolder::new(POLICY);
    let calls = "{\"tool\":\"search\"}\n\n{\"tool\":\n\"pay\",\"arguments\":{\"amount\":500}}\n{\"tool\":\"secret\"}";
    let (code, out, _) = place.run(
        &["guard", "check", "--call", "-", "--format", "jsonl"],
        calls,
    );
    assert_eq!(code, 1);
    let told: Vec<(u64, String)> = out
        .lines()
        .map(|line| {
            let decision: Value = serde_json::from_str(line).unwrap();
            let code = decision["code"].as_str().unwrap().to_owned();
            (decision["line"].as_u64().unwrap(), code)
        })
        .collect();
    let expected = [
        (1, "allowed"),
        (3, "invalid_input"),
        (5, "missing_permissions"),
    ];
    assert_eq!(told, expected.map(|(line, code)| (line, code.to_owned())));
}

#[test]
fn policy_mistakes_are_reported_with_their_position() {
    let place =
        PolicyFolder::new("tools:\n  t:\n    rate_limit: unlimted\n    required_permissions:\n");
    let (code, _, err) = place.check(r#"{"tool":"t"}"#);
    assert_eq!(code, 2);
    assert!(err.contains("policy.yaml:3:5: /tools/t/rate_limit: unknown word `unlimted`, did you mean `unlimited`?"), "{err}");
    assert!(
        err.contains(
            "policy.yaml:4:5: /tools/t/required_permissions: `required_permissions` has no value"
        ),
        "{err}"
    );
    let place = PolicyFolder::new("tools: [\n");
    let (code, _, err) = place.check(r#"{"tool":"t"}"#);
    assert_eq!(code, 2);
    assert!(!err.contains("cause"), "the cause is reported once: {err}");
}

#[test]
fn a_drawing_is_what_its_name_says() {
    let place = PolicyFolder::new("tools: {t: {state: end, available_in_states: [undefined]}}");
    let draw = |name: &str| place.run(&["guard", "graph", "--output", name], "");
    for (name, begins) in [
        ("a.svg", "<svg "),
        ("a.gv", "digraph "),
        ("a.mmd", "flowchart "),
    ] {
        assert_eq!(draw(name).0, 0, "{name}");
        let drawn = std::fs::read_to_string(place.path().join(name)).unwrap();
        assert!(drawn.starts_with(begins), "{drawn}");
    }
    let (code, _, err) = draw("a.png");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("cannot write a graph as `.png`"), "{err}");
    assert!(!place.path().join("a.png").exists());
}

#[test]
fn a_lint_that_fails_fails_in_every_format() {
    let nobody = "tools: {a: {group: [x]}}\n";
    let warned = "tools: {a: {input_schema: {properites: {}}}}\nprincipals: {'*': {}}\n";
    let broken = "tools: {a: {grup: [x]}}\n";
    for (policy, status, failures) in [(nobody, 1, 1), (warned, 1, 1), (broken, 2, 1)] {
        let place = PolicyFolder::new(policy);
        let lint = |format| place.run(&["guard", "lint", "--format", format], "");
        let (code, junit, _) = lint("junit");
        let told = junit.matches("<failure ").count();
        let counted = format!("failures=\"{told}\"");
        assert_eq!((code, told), (status, failures), "{junit}");
        assert!(junit.contains(&counted), "{junit}");
        for (format, marks) in [
            ("json", ["\"level\": \"error\"", "\"level\": \"warning\""]),
            ("sarif", ["\"level\": \"error\"", "\"level\": \"warning\""]),
            ("github", ["::error ", "::warning "]),
            ("markdown", ["| error |", "| warning |"]),
        ] {
            let (code, told, _) = lint(format);
            assert_eq!(code, status, "{format}");
            assert!(marks.iter().any(|it| told.contains(it)), "{format}: {told}");
        }
    }
}

#[test]
fn a_state_that_is_spelled_out_means_the_same_everywhere() {
    let place = PolicyFolder::new("tools: {send: {available_in_states: [approved]}}");
    for (state, code) in [("approved", 0), ("", 1), ("other", 1)] {
        for command in ["check", "explain"] {
            let args = [
                "guard",
                command,
                "--tool",
                "send",
                "--principal",
                "p",
                "--state",
                state,
            ];
            assert_eq!(place.run(&args, "").0, code, "{command} {state:?}");
        }
        let (_, out, _) = place.run(
            &["guard", "available", "--principal", "p", "--state", state],
            "",
        );
        assert_eq!(out.starts_with("yes"), code == 0, "{out}");
    }
    // A client's own word is another matter.
    assert_eq!(place.check(r#"{"tool":"send","state":"approved"}"#).0, 1);
}

#[test]
fn removed_log_is_reported() {
    let place = PolicyFolder::new(POLICY);
    let record = ["guard", "check", "--call", "-", "--record"];
    assert_eq!(place.run(&record, r#"{"tool":"search"}"#).0, 0);
    std::fs::write(place.path().join("store.db"), "").unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        // They exist only while a process uses the store.
        drop(std::fs::remove_file(place.path().join(name)));
    }
    let (code, _, err) = place.run(&["audit", "verify"], "");
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("is not a store of toolwarden"), "{err}");
    assert_eq!(
        std::fs::metadata(place.path().join("store.db"))
            .unwrap()
            .len(),
        0,
        "left alone"
    );
}

#[test]
fn what_was_recorded_is_decided_again_as_it_was() {
    let place = PolicyFolder::new(
        "
tools:
  look: {state: seen, available_in_states: [undefined]}
  act: {available_in_states: [seen], input_schema: {properties: {token: {maxLength: 3}}}}
  hush: {group: night}
groups: {night: {when: 'request.hour > 20'}}
principals: {'*': {groups: ['*']}}
",
    );
    let calls = [
        r#"{"tool":"look","session":"s","outcome":"success"}"#,
        r#"{"tool":"look","session":"t"}"#,
        r#"{"tool":"act","session":"t"}"#,
        r#"{"tool":"act","session":"s","arguments":{"token":"abc"}}"#,
        r#"{"tool":"hush","group":["night"],"attributes":{"hour":22}}"#,
        r#"{"tool":"look","session":"u","arguments":"\"bare\""}"#,
    ];
    let record = ["guard", "check", "--call", "-", "--record"];
    assert_eq!(place.run(&record, &calls.join("\n")).0, 1);
    let (_, export, _) = place.run(&["audit", "export", "--format", "ndjson"], "");
    let (code, out, _) = place.run(&["guard", "simulate", "-"], &export);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("0 decisions change\n2 cannot be told"),
        "{out}"
    );
    // The end of the log alone begins in the middle of a session.
    let tail: String = export
        .lines()
        .skip(5)
        .map(|line| format!("{line}\n"))
        .collect();
    let (code, out, _) = place.run(&["guard", "simulate", "-"], &tail);
    assert_eq!(code, 0, "{out}");
}
