//! Baselines, checks, approvals and lock files as a user meets them.

use serde_json::Value;

use super::sandbox::Sandbox;

const ONE: &str = r#"[
  {"name": "click", "description": "Click an element", "inputSchema": {"type": "object", "properties": {"ref": {"type": "string"}}, "required": ["ref"]}},
  {"name": "wait", "description": "Wait for a while", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "integer"}}}}
]"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", ONE);
    sandbox.write(
        "breaking.json",
        &ONE.replace(
            r#""required": ["ref"]"#,
            r#""required": ["ref", "element"]"#,
        ),
    );
    sandbox.write(
        "wording.json",
        &ONE.replace("Wait for a while", "Wait a little"),
    );
    sandbox
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

#[test]
fn red_exactly_when_it_should_be() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["baseline", "one.json"]);
    sandbox.watch_to(0, &["check", "one.json"]);
    sandbox.watch_to(1, &["check", "breaking.json"]);
    sandbox.watch_to(1, &["check", "wording.json"]);
    sandbox.watch_to(0, &["check", "wording.json", "--allow", "text"]);
    sandbox.watch_to(1, &["check", "wording.json", "--fail-on", "any"]);
    sandbox.watch_to(
        0,
        &[
            "check",
            "wording.json",
            "--fail-on",
            "any",
            "--allow",
            "text",
        ],
    );
    sandbox.watch_to(1, &["check", "wording.json", "--fail-on", "widened,text"]);
    sandbox.watch_to(0, &["check", "breaking.json", "--fail-on", "none"]);
    sandbox.watch_to(0, &["check", "breaking.json", "--exit-zero"]);
}

#[test]
fn frozen_pins_nothing() {
    let sandbox = sandbox();
    let said = sandbox.watch_to(2, &["check", "--frozen", "one.json"]);
    assert!(said.err.contains("nothing is pinned"), "{}", said.err);
    assert!(!sandbox.path("data").exists(), "not even a store");
    sandbox.write(
        "other.json",
        &ONE.replace("\"name\": \"", "\"name\": \"other_"),
    );
    sandbox.watch_to(0, &["baseline", "other.json"]);
    // A list with pins is compared with them as a whole, and a check never pins what it does not know.
    for _ in 0..2 {
        let said = sandbox.watch_to(1, &["check", "--frozen", "one.json"]);
        assert!(
            said.out
                .contains("`other_click` was probably renamed to `click` (similarity 92 %)"),
            "{}",
            said.out
        );
    }
    let open = ["baseline", "--server", "s", "--open", "other.json"];
    sandbox.watch_to(0, &open);
    let said = sandbox.watch_to(2, &["check", "--server", "s", "--frozen", "one.json"]);
    let expected = "`click` of server `s` and 1 other tool: not pinned";
    assert!(said.err.contains(expected), "{}", said.err);
}

#[test]
fn every_format_of_a_report_is_well_formed() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["baseline", "one.json"]);
    let report = |format: &str| {
        sandbox
            .watch_to(1, &["check", "breaking.json", "--format", format])
            .out
    };
    let document = json(&report("json"));
    assert_eq!(document["schema"], "toolwarden/watch/check/v1");
    assert_eq!(document["servers"][0]["tools"][0]["class"], "breaking");
    assert_eq!(
        document["servers"][0]["tools"][0]["input"]["declared"]["witness"]["value"],
        json(r#"{"ref": ""}"#)
    );
    assert_eq!(json(&report("sarif"))["version"], "2.1.0");
    assert!(report("junit").starts_with("<?xml"));
    assert!(report("github").starts_with("::error file=breaking.json,line=2,"));
    assert!(report("markdown").contains("| "));
}

#[test]
fn an_approval_is_remembered_with_who_and_why() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["baseline", "one.json", "--version", "1"]);
    sandbox.watch_to(1, &["check", "breaking.json", "--version", "2"]);
    let waiting = json(&sandbox.watch_to(0, &["approve", "--format", "json"]).out);
    assert_eq!(waiting["waiting"][0]["tool"], "click");
    let id = waiting["waiting"][0]["changes"][0]["id"].as_str().unwrap();
    let said = sandbox.watch_to(2, &["approve", "--tool", "clik"]);
    assert!(said.err.contains("did you mean `click`?"), "{}", said.err);
    sandbox.watch_to(
        0,
        &["approve", id, "--reason", "agents send it", "--by", "grace"],
    );
    sandbox.watch_to(0, &["check", "breaking.json"]);
    let history = json(
        &sandbox
            .watch_to(0, &["history", "click", "--format", "json"])
            .out,
    );
    let last = &history["baselines"][1];
    assert_eq!(
        (&last["origin"], &last["version"]),
        (&"approved".into(), &"2".into())
    );
    assert_eq!(
        (&last["approved"]["by"], &last["approved"]["why"]),
        (&"grace".into(), &"agents send it".into())
    );
    assert_eq!(history["alerts"][0]["status"], "approved");
    sandbox.watch_to(0, &["diff", "@pinned", "breaking.json"]);
    sandbox.watch_to(1, &["diff", "@1", "@pinned"]);
    let said = sandbox.watch_to(2, &["diff", "@9", "@pinned"]);
    assert!(said.err.contains("as version `9`"), "{}", said.err);
}

#[test]
fn alerts_are_found_by_what_they_are() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["baseline", "one.json"]);
    sandbox.watch_to(1, &["check", "breaking.json"]);
    sandbox.watch_to(1, &["check", "wording.json", "--fail-on", "any"]);
    let count = |args: &[&str]| {
        let said = sandbox.watch_to(0, &[&["alerts", "--format", "json"][..], args].concat());
        json(&said.out)["alerts"].as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["--severity", "high"]), 1);
    assert_eq!(count(&["--severity", "medium,high"]), 2);
    assert_eq!(count(&["--tool", "wait"]), 1);
    assert_eq!(
        count(&["--status", "closed"]),
        1,
        "the first one is closed: the tool matches its pin"
    );
    assert_eq!(count(&["--since", "1h"]), 2);
    assert_eq!(count(&["--since", "2999-01-01"]), 0);
    sandbox.watch_to(2, &["alerts", "--since", "soon"]);
}

#[test]
fn a_lock_file_is_all_a_check_needs() {
    let sandbox = sandbox();
    sandbox.watch_to(0, &["lock", "one.json"]);
    let first = sandbox.read("toolwarden.lock");
    sandbox.watch_to(0, &["lock", "one.json"]);
    assert_eq!(
        sandbox.read("toolwarden.lock"),
        first,
        "writing it again changes nothing"
    );
    sandbox.watch_to(0, &["check", "--lock", "toolwarden.lock", "one.json"]);
    sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "breaking.json"]);
    assert!(!sandbox.path("data").exists(), "no store was made");
    let more = ONE.replace("[\n", "[\n  {\"name\": \"upload\", \"description\": \"Send a file\", \"inputSchema\": {\"type\": \"object\"}},\n");
    sandbox.write("more.json", &more);
    let said = sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "more.json"]);
    assert!(said.out.contains("the tool is new"), "{}", said.out);
    sandbox.write(
        "fewer.json",
        &format!("[{}", ONE.split(",\n").nth(1).unwrap()),
    );
    let said = sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "fewer.json"]);
    assert!(said.out.contains("the tool is gone"), "{}", said.out);
    let said = sandbox.watch_to(
        2,
        &[
            "check",
            "--lock",
            "toolwarden.lock",
            "--server",
            "other",
            "one.json",
        ],
    );
    let unknown = "toolwarden.lock has no server `other`; it has `local`";
    assert!(said.err.contains(unknown), "{}", said.err);
    sandbox.watch_to(1, &["diff", "toolwarden.lock", "breaking.json"]);
    sandbox.write(
        "toolwarden.lock",
        &first.replacen("\n}\n", "\n<<<<<<< HEAD\n}\n", 1),
    );
    let said = sandbox.watch_to(2, &["check", "--lock", "toolwarden.lock", "one.json"]);
    assert!(
        said.err.contains("merge conflict at line 4"),
        "{}",
        said.err
    );
    let said = sandbox.watch_to(2, &["lock", "one.json"]);
    assert!(
        said.err.contains("merge conflict"),
        "a broken lock file is not overwritten: {}",
        said.err
    );
    let said = sandbox.watch_to(2, &["check", "--lock", "missing.lock", "one.json"]);
    assert!(said.err.contains("toolwarden watch lock"), "{}", said.err);
}

#[test]
fn a_store_becomes_a_lock_file() {
    let sandbox = sandbox();
    sandbox.watch_to(
        0,
        &[
            "baseline", "one.json", "--server", "browser", "--why", "first",
        ],
    );
    sandbox.watch_to(0, &["lock", "--from-store"]);
    let lock = sandbox.read("toolwarden.lock");
    assert!(
        lock.contains("\"by\": \"ada\"") && lock.contains("\"why\": \"first\""),
        "{lock}"
    );
    sandbox.watch_to(
        0,
        &[
            "check",
            "--lock",
            "toolwarden.lock",
            "--server",
            "browser",
            "one.json",
        ],
    );
}

#[test]
fn a_store_that_is_none_is_refused_with_a_remedy() {
    let sandbox = sandbox();
    sandbox.write("notes.db", "my only copy");
    let said = sandbox.watch_to(3, &["baseline", "one.json", "--store", "notes.db"]);
    assert!(
        said.err.contains("is not a store of toolwarden") && said.err.contains("--store"),
        "{}",
        said.err
    );
    assert_eq!(sandbox.read("notes.db"), "my only copy");
}

#[test]
fn responses_are_read_in_every_shape() {
    let sandbox = sandbox();
    let many = |result: &str, count: usize| format!("{result}\n").repeat(count);
    let good = r#"{"degrees": 21, "place": {"name": "Oslo"}}"#;
    sandbox.write("good/click.jsonl", &many(good, 120));
    sandbox.write(
        "named.jsonl",
        &many(&format!(r#"{{"tool": "click", "result": {good}}}"#), 60),
    );
    sandbox.write("list.json", &format!("[{}]", vec![good; 60].join(",")));
    sandbox.write(
        "bad.jsonl",
        &many(
            r#"{"tool": "click", "result": {"degrees": "21", "place": "Oslo"}}"#,
            40,
        ),
    );
    sandbox.write("text.jsonl", &many(r#"{"tool": "click", "result": {"content": [{"type": "text", "text": "boom"}], "isError": true}}"#, 40));
    sandbox.watch_to(0, &["baseline", "one.json", "--responses", "good"]);
    sandbox.watch_to(0, &["check", "one.json", "--responses", "named.jsonl"]);
    sandbox.watch_to(
        0,
        &[
            "check",
            "one.json",
            "--tool",
            "click",
            "--responses",
            "list.json",
        ],
    );
    let said = sandbox.watch_to(
        1,
        &[
            "check",
            "one.json",
            "--responses",
            "bad.jsonl",
            "--format",
            "json",
        ],
    );
    let tool = &json(&said.out)["servers"][0]["tools"][0];
    assert_eq!(
        (&tool["change_type"], &tool["class"]),
        (&"response_change".into(), &"breaking".into())
    );
    let paths: Vec<&str> = tool["results"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/degrees", "/place"]);
    assert!(
        tool["results"]["limits"][0]
            .as_str()
            .unwrap()
            .contains("may still be in")
    );
    sandbox.watch_to(1, &["check", "one.json", "--responses", "text.jsonl"]);
    let said = sandbox.watch_to(
        1,
        &[
            "check",
            "one.json",
            "--responses",
            "text.jsonl",
            "--fail-on",
            "any",
        ],
    );
    assert!(said.out.contains("error"), "{}", said.out);
    let said = sandbox.watch_to(2, &["check", "one.json", "--responses", "list.json"]);
    assert!(said.err.contains("names no tool"), "{}", said.err);
    let said = sandbox.watch_to(
        1,
        &[
            "check",
            "breaking.json",
            "--responses",
            "bad.jsonl",
            "--format",
            "json",
        ],
    );
    assert_eq!(
        json(&said.out)["servers"][0]["tools"][0]["change_type"],
        "behavior_change"
    );
    assert!(
        !sandbox
            .watch_to(0, &["show", "click", "--format", "json"])
            .out
            .contains("Oslo"),
        "no values are kept"
    );
}

#[test]
fn two_files_with_one_name_are_no_server() {
    let sandbox = sandbox();
    let said = sandbox.watch_to(2, &["baseline", "one.json", "wording.json"]);
    assert!(said.err.contains("--per-file"), "{}", said.err);
    sandbox.watch_to(0, &["baseline", "--per-file", "one.json", "wording.json"]);
    let list = json(&sandbox.watch_to(0, &["list", "--format", "json"]).out);
    let servers: Vec<&str> = list["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["server"].as_str().unwrap())
        .collect();
    assert_eq!(servers, ["one", "wording"]);
    let said = sandbox.watch_to(2, &["show", "click"]);
    assert!(said.err.contains("--server"), "{}", said.err);
    sandbox.watch_to(2, &["check"]);
}
