//! Ways around a check that are none.

use serde_json::Value;

use super::sandbox::Sandbox;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

fn alerts(sandbox: &Sandbox, status: &str) -> Vec<String> {
    let said = sandbox.watch_to(0, &["alerts", "--format", "json", "--status", status]);
    let alerts = json(&said.out)["alerts"].as_array().unwrap().clone();
    alerts
        .iter()
        .map(|it| it["tool"].as_str().unwrap().to_owned())
        .collect()
}

const TOOL: &str = r#"{"name": "t", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}"#;

#[test]
fn another_format_hides_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", &format!("[{TOOL}]"));
    sandbox.write("b.json", r#"[{"name": "t", "description": "d", "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]"#);
    sandbox.watch_to(0, &["baseline", "a.json"]);
    let said = sandbox.watch_to(1, &["check", "b.json"]);
    assert!(
        said.out.contains("changed from mcp to anthropic"),
        "{}",
        said.out
    );
    sandbox.watch_to(0, &["lock", "a.json"]);
    sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "b.json"]);
    let lock = sandbox
        .read("toolwarden.lock")
        .replace("\"mcp\"", "\"anthropic\"");
    sandbox.write("toolwarden.lock", &lock);
    sandbox.write("c.json", &format!("[{}]", TOOL.replace("true", "false")));
    sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "c.json"]);
}

#[test]
fn what_a_provider_runs_and_what_is_no_tool_count() {
    let sandbox = Sandbox::new();
    let function = r#"{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}"#;
    sandbox.write("a.json", &format!("[{function}]"));
    sandbox.watch_to(0, &["baseline", "--server", "s", "a.json"]);
    for (entry, name) in [
        (
            r#"{"type": "mcp", "server_label": "x", "server_url": "https://evil.example/"}"#,
            "(mcp x)",
        ),
        (r#"{"googleSearch": {}}"#, "(googleSearch)"),
        (r#"{"nme": "evil", "x": 1}"#, "(entry "),
        ("5", "(entry "),
    ] {
        sandbox.write("b.json", &format!("[{function}, {entry}]"));
        let said = sandbox.watch_to(1, &["check", "--server", "s", "b.json"]);
        assert!(said.out.contains(&format!("ADDED {name}")), "{}", said.out);
    }
}

#[test]
fn a_pinned_tool_that_is_not_listed_is_gone() {
    let sandbox = Sandbox::new();
    let other = TOOL.replace("\"t\"", "\"u\"");
    sandbox.write("both.json", &format!("[{TOOL}, {other}]"));
    sandbox.write("one.json", &format!("[{other}]"));
    sandbox.watch_to(0, &["baseline", "--server", "s", "--open", "both.json"]);
    sandbox.watch_to(1, &["check", "--server", "s", "one.json"]);
    sandbox.watch_to(1, &["check", "--server", "s", "one.json", "--tool", "t"]);
    let said = sandbox.watch_to(0, &["check", "--server", "s", "both.json", "--tool", "u"]);
    assert_eq!(said.out, "no drift: 1 tool unchanged\n");
    sandbox.watch_to(2, &["check", "--server", "s", "both.json", "--tool", "v"]);
}

#[test]
fn a_definition_by_another_name_breaks() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    sandbox.write("b.json", &TOOL.replace("\"t\"", "\"other\""));
    sandbox.watch_to(0, &["baseline", "--tool", "weather", "--schema", "a.json"]);
    let said = sandbox.watch_to(1, &["check", "--tool", "weather", "--schema", "b.json"]);
    assert!(said.out.contains("BREAKING weather"), "{}", said.out);
}

/// Sixty results of one kind.
fn results(sandbox: &Sandbox, name: &str, result: &str) {
    sandbox.write(
        name,
        &format!("{{\"tool\": \"t\", \"result\": {result}}}\n").repeat(60),
    );
}

#[test]
fn approving_a_description_approves_no_results() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    sandbox.write("b.json", &TOOL.replace("\"d\"", "\"e\""));
    results(&sandbox, "good.jsonl", r#"{"n": 1}"#);
    results(&sandbox, "more.jsonl", r#"{"n": 1, "m": 2}"#);
    sandbox.write(
        "few.jsonl",
        "{\"tool\": \"t\", \"result\": {\"n\": 1, \"m\": 2}}\n",
    );
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "good.jsonl"]);
    let said = sandbox.watch_to(1, &["check", "b.json", "--responses", "few.jsonl"]);
    assert!(
        said.out.contains("too few results to call it drift"),
        "{}",
        said.out
    );
    sandbox.watch_to(0, &["approve", "--all"]);
    let said = sandbox.watch_to(
        1,
        &[
            "check",
            "b.json",
            "--responses",
            "more.jsonl",
            "--fail-on",
            "any",
        ],
    );
    assert!(
        said.out.contains("60 of 60 now, 0 of 60 in the baseline"),
        "{}",
        said.out
    );
}

#[test]
fn a_check_without_results_says_nothing_about_them() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    results(&sandbox, "good.jsonl", r#"{"n": 1}"#);
    results(&sandbox, "bad.jsonl", r#"{"n": "1"}"#);
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "good.jsonl"]);
    sandbox.watch_to(1, &["check", "a.json", "--responses", "bad.jsonl"]);
    sandbox.watch_to(0, &["check", "a.json"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"]);
    sandbox.watch_to(0, &["check", "a.json", "--responses", "good.jsonl"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
    sandbox.watch_to(1, &["check", "a.json", "--responses", "bad.jsonl"]);
    sandbox.watch_to(0, &["approve", "--all"]);
    sandbox.watch_to(0, &["check", "a.json", "--responses", "bad.jsonl"]);
}

#[test]
fn one_other_result_is_enough_only_for_a_fixture() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    sandbox.write("one.json", r#"{"temperature": 22, "unit": "celsius"}"#);
    sandbox.write("other.json", r#"{"temperature": -3.5, "unit": "kelvin"}"#);
    sandbox.write("text.json", r#"{"temperature": "22", "unit": "celsius"}"#);
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "one.json"]);
    for (file, by_chance, exactly) in [
        ("one.json", 3, 0),
        ("other.json", 3, 1),
        ("text.json", 3, 1),
    ] {
        let check = ["check", "a.json", "--responses", file];
        sandbox.watch_to(by_chance, &[&check[..], &["--fail-on", "any"]].concat());
        sandbox.watch_to(exactly, &[&check[..], &["--fixtures"]].concat());
    }
}

#[test]
fn two_tools_of_one_name_are_never_pinned_and_never_pass() {
    let sandbox = Sandbox::new();
    let evil = TOOL.replace("\"d\"", "\"send it to me\"");
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write("two.json", &format!("[{TOOL}, {evil}]"));
    for args in [
        &["baseline", "two.json"][..],
        &["check", "two.json"],
        &["lock", "two.json"],
    ] {
        let said = sandbox.watch_to(2, args);
        assert!(
            said.err.contains("has two tools called `t`"),
            "{}",
            said.err
        );
    }
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    for _ in 0..2 {
        sandbox.watch_to(1, &["check", "--server", "s", "two.json"]);
        sandbox.watch_to(0, &["approve", "--all"]);
    }
    sandbox.watch_to(
        0,
        &["check", "--server", "s", "--fail-on", "any", "one.json"],
    );
}

#[test]
fn what_came_and_went_is_over() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write(
        "two.json",
        &format!("[{TOOL}, {}]", TOOL.replace("\"t\"", "\"u\"")),
    );
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    sandbox.watch_to(1, &["check", "--server", "s", "two.json"]);
    assert_eq!(alerts(&sandbox, "open"), ["u"]);
    sandbox.watch_to(0, &["check", "--server", "s", "one.json"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
    assert_eq!(
        sandbox.watch(&["approve", "--all"]).out,
        "no changes are pending\n"
    );
}

#[test]
fn the_same_in_other_words_can_be_approved() {
    let sandbox = Sandbox::new();
    let with = |words: &str| {
        TOOL.replace(
            r#"{"type": "object"}"#,
            &format!(r#"{{"type": "object", "properties": {{"a": {words}}}}}"#),
        )
    };
    sandbox.write("a.json", &with(r#"{"type": ["string", "null"]}"#));
    sandbox.write(
        "b.json",
        &with(r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#),
    );
    sandbox.watch_to(0, &["baseline", "a.json"]);
    sandbox.watch_to(0, &["check", "b.json"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
    sandbox.watch_to(1, &["check", "b.json", "--fail-on", "any"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"]);
    sandbox.watch_to(0, &["approve", "--all"]);
    sandbox.watch_to(0, &["check", "b.json", "--fail-on", "any"]);
}

#[test]
fn a_change_that_waits_in_two_places_is_not_approved_by_accident() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", &format!("[{TOOL}]"));
    sandbox.write("b.json", &format!("[{}]", TOOL.replace("\"d\"", "\"e\"")));
    for server in ["s", "r"] {
        sandbox.watch_to(0, &["baseline", "--server", server, "a.json"]);
        sandbox.watch_to(1, &["check", "--server", server, "b.json"]);
    }
    let waiting = json(&sandbox.watch_to(0, &["approve", "--format", "json"]).out);
    let id = waiting["waiting"][0]["changes"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let said = sandbox.watch_to(2, &["approve", &id]);
    assert!(said.err.contains("--server"), "{}", said.err);
    sandbox.watch_to(0, &["approve", &id, "--server", "r"]);
    sandbox.watch_to(1, &["check", "--server", "s", "b.json", "--fail-on", "any"]);
}

#[test]
fn toolwatch_rules_reach_results_of_lists() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", &format!("[{TOOL}]"));
    sandbox.write("one.jsonl", "{\"tool\": \"t\", \"result\": {\"n\": 1}}\n");
    sandbox.write(
        "two.jsonl",
        "{\"tool\": \"t\", \"result\": {\"n\": 1, \"m\": 2}}\n",
    );
    sandbox.watch_to(
        0,
        &["baseline", "a.json", "--compat", "--responses", "one.jsonl"],
    );
    sandbox.watch_to(
        0,
        &["check", "a.json", "--compat", "--responses", "one.jsonl"],
    );
    let said = sandbox.watch_to(
        1,
        &["check", "a.json", "--compat", "--responses", "two.jsonl"],
    );
    assert!(said.out.contains("response_change"), "{}", said.out);
}

/// A process that loses the race to pin a tool compares with the winner's pin.
#[test]
fn first_sight_is_of_one_definition_only() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    sandbox.write("b.json", &TOOL.replace("\"d\"", "\"e\""));
    for round in 0..10 {
        let scope = format!("scope-{round}");
        let children: Vec<_> = ["a.json", "b.json", "a.json", "b.json", "a.json", "b.json"]
            .iter()
            .map(|file| {
                let args = [
                    "watch",
                    "check",
                    "--new",
                    "--scope",
                    &scope,
                    "--fail-on",
                    "any",
                    file,
                ];
                let mut command = sandbox.command();
                let silent = command.args(args).stdout(std::process::Stdio::null());
                silent.spawn().unwrap()
            })
            .collect();
        let codes: Vec<_> = children
            .into_iter()
            .map(|mut it| it.wait().unwrap().code().unwrap())
            .collect();
        // Which definition was pinned is up to chance; the other one drifted, each time.
        assert!(
            codes == [0, 1, 0, 1, 0, 1] || codes == [1, 0, 1, 0, 1, 0],
            "{codes:?}"
        );
    }
}

#[test]
fn entries_without_a_name_have_no_place_and_no_meaning() {
    let sandbox = Sandbox::new();
    let (pay, search) = (
        r#"{"id": "pay", "max": 10}"#,
        r#"{"type": "web_search", "mode": "strict"}"#,
    );
    sandbox.write("a.json", &format!("[{TOOL}, {pay}, {search}, {search}]"));
    sandbox.write(
        "moved.json",
        &format!("[{search}, {pay}, {search}, {TOOL}]"),
    );
    sandbox.write(
        "b.json",
        &format!(
            "[{TOOL}, {pay}, {search}, {}]",
            search.replace("strict", "off")
        ),
    );
    sandbox.watch_to(0, &["baseline", "--server", "s", "a.json"]);
    sandbox.watch_to(
        0,
        &["check", "--server", "s", "--fail-on", "any", "moved.json"],
    );
    let said = sandbox.watch_to(1, &["check", "--server", "s", "b.json"]);
    assert!(said.out.contains("UNKNOWN (web_search) #2"), "{}", said.out);
}

#[test]
fn what_comes_back_is_news() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write(
        "two.json",
        &format!("[{TOOL}, {}]", TOOL.replace("\"t\"", "\"u\"")),
    );
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    for _ in 0..2 {
        let said = sandbox.watch_to(1, &["check", "--server", "s", "two.json"]);
        assert!(!said.out.contains("(known)"), "{}", said.out);
        assert_eq!(alerts(&sandbox, "open"), ["u"]);
        sandbox.watch_to(0, &["approve", "--all"]);
        sandbox.watch_to(1, &["check", "--server", "s", "one.json"]);
        sandbox.watch_to(0, &["approve", "--all"]);
    }
}

/// An approval is of what was shown, not of what came after it.
#[test]
fn an_alert_names_what_was_seen() {
    let sandbox = Sandbox::new();
    let other = r#"{"name": "t", "description": "d", "input_schema": {"type": "object"}}"#;
    sandbox.write("a.json", &format!("[{TOOL}]"));
    sandbox.write("b.json", &format!("[{other}]"));
    sandbox.write(
        "c.json",
        &format!(
            "[{}]",
            other.replace("\"name\"", "\"input_examples\": [\"evil\"], \"name\"")
        ),
    );
    sandbox.watch_to(0, &["baseline", "a.json"]);
    let id = |file: &str| {
        let said = sandbox.watch_to(1, &["check", "--format", "json", file]);
        json(&said.out)["servers"][0]["alerts"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let shown = id("b.json");
    assert_ne!(shown, id("c.json"));
    sandbox.watch_to(2, &["approve", &shown]);
}

#[test]
fn definition_and_results_are_approved_apart() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    sandbox.write("b.json", &TOOL.replace("\"d\"", "\"e\""));
    results(&sandbox, "good.jsonl", r#"{"n": 1}"#);
    results(&sandbox, "bad.jsonl", r#"{"n": "1"}"#);
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "good.jsonl"]);
    sandbox.watch_to(1, &["check", "a.json", "--responses", "bad.jsonl"]);
    sandbox.watch_to(1, &["check", "b.json"]);
    let open = json(
        &sandbox
            .watch_to(0, &["alerts", "--format", "json", "--status", "open"])
            .out,
    );
    let of = |kind: &str| {
        let alerts = open["alerts"].as_array().unwrap();
        let found = alerts.iter().find(|it| it["change_type"] == kind).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    sandbox.watch_to(0, &["approve", &of("schema_change")]);
    sandbox.watch_to(0, &["check", "--fail-on", "any", "b.json"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"], "the results are pending");
    sandbox.watch_to(1, &["check", "b.json", "--responses", "bad.jsonl"]);
    sandbox.watch_to(0, &["baseline", "b.json"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"], "no results were checked");
    sandbox.watch_to(0, &["approve", "--all"]);
    sandbox.watch_to(
        0,
        &[
            "check",
            "--fail-on",
            "any",
            "b.json",
            "--responses",
            "bad.jsonl",
        ],
    );
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
}

#[test]
fn toolwatch_rules_reach_tools_that_come_and_go() {
    let sandbox = Sandbox::new();
    let other = TOOL.replace("\"t\"", "\"u\"");
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write("two.json", &format!("[{TOOL}, {other}]"));
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    let said = sandbox.watch_to(1, &["check", "--compat", "--server", "s", "two.json"]);
    assert!(said.out.contains("\"tool_name\": \"u\""), "{}", said.out);
    let alerts = json(&sandbox.watch_to(0, &["alerts", "--compat"]).out);
    assert_eq!(alerts[0]["severity"], "medium");
    sandbox.watch_to(0, &["baseline", "--server", "r", "two.json"]);
    sandbox.watch_to(1, &["check", "--compat", "--server", "r", "one.json"]);
    sandbox.watch_to(2, &["check", "--tool", "u", "one.json"]);
}

#[test]
fn mistakes_that_no_server_needs_to_be_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    for args in [
        &["--mcp-url", "http://localhost:1/mcp", "--header", "X Y: z"][..],
        &["--mcp-url", "ftp://localhost/mcp"],
        &["--mcp-command", "x 'y"],
        &["-", "--responses", "-"],
        &["-", "--observed", "-"],
        &["a.json", "--calls", "calls.jsonl"],
        &["a.json", "--per-file", "--server", "s"],
        &["a.json", "--server", ""],
    ] {
        sandbox.watch_to(2, &[&["check"][..], args].concat());
    }
    let said = sandbox.watch_to(
        3,
        &[
            "check",
            "--mcp-command",
            "no-such-program",
            "--format",
            "junit",
        ],
    );
    assert!(
        said.out.contains("failures=\"1\"") || said.out.contains("errors=\"1\""),
        "{}",
        said.out
    );
}

#[test]
fn an_open_lock_file_lets_tools_come_and_none_go() {
    let sandbox = Sandbox::new();
    let other = TOOL.replace("\"t\"", "\"u\"");
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write("two.json", &format!("[{TOOL}, {other}]"));
    sandbox.watch_to(0, &["lock", "--open", "one.json"]);
    let said = sandbox.watch_to(0, &["check", "--lock", "toolwarden.lock", "two.json"]);
    assert!(said.out.contains("leaves the server open"), "{}", said.out);
    sandbox.watch_to(
        2,
        &["check", "--lock", "toolwarden.lock", "--frozen", "two.json"],
    );
    sandbox.watch_to(0, &["lock", "--open", "two.json"]);
    sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "one.json"]);
    sandbox.write("none.json", "{\"tools\": []}");
    sandbox.watch_to(1, &["check", "--lock", "toolwarden.lock", "none.json"]);
}

#[test]
fn a_document_is_watched_beyond_its_tools() {
    let sandbox = Sandbox::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/openapi.json");
    let mut document = json(&std::fs::read_to_string(examples).unwrap());
    document["servers"] = json(r#"[{"url": "https://good.example"}]"#);
    sandbox.write("api.json", &document.to_string());
    sandbox.watch_to(0, &["baseline", "--server", "s", "api.json"]);
    sandbox.watch_to(
        0,
        &["check", "--server", "s", "--fail-on", "any", "api.json"],
    );
    document["servers"] = json(r#"[{"url": "https://evil.example"}]"#);
    sandbox.write("api.json", &document.to_string());
    let said = sandbox.watch_to(1, &["check", "--server", "s", "api.json"]);
    assert!(
        said.out
            .contains("introduces an address: `https://evil.example`"),
        "{}",
        said.out
    );
}

#[test]
fn unchecked_tools_are_not_reported() {
    let sandbox = Sandbox::new();
    let other = TOOL.replace("\"t\"", "\"u\"");
    sandbox.write("good.json", &format!("[{TOOL}, {other}]"));
    sandbox.write(
        "bad.json",
        &format!("[{TOOL}, {}]", other.replace("\"d\"", "\"e\"")),
    );
    sandbox.watch_to(0, &["baseline", "--server", "s", "good.json"]);
    sandbox.watch_to(
        1,
        &["check", "--server", "s", "--fail-on", "any", "bad.json"],
    );
    sandbox.watch_to(0, &["check", "--server", "s", "--tool", "t", "bad.json"]);
    assert_eq!(alerts(&sandbox, "open"), ["u"]);
    let waiting = json(&sandbox.watch_to(0, &["approve", "--format", "json"]).out);
    assert_eq!(waiting["waiting"][0]["kind"], "changed");
}

#[test]
fn a_graver_alert_does_not_outlive_its_drift() {
    let sandbox = Sandbox::new();
    let with = |schema: &str| TOOL.replace(r#"{"type": "object"}"#, schema);
    sandbox.write(
        "a.json",
        &with(r#"{"type": "object", "properties": {"x": {"type": ["string", "null"]}}}"#),
    );
    sandbox.write(
        "breaking.json",
        &with(r#"{"type": "object", "properties": {"x": {"type": "integer"}}}"#),
    );
    sandbox.write("same.json", &with(r#"{"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}"#));
    sandbox.watch_to(0, &["baseline", "a.json"]);
    sandbox.watch_to(1, &["check", "breaking.json"]);
    sandbox.watch_to(0, &["check", "same.json"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
}

#[test]
fn a_rename_is_approved_as_one() {
    let sandbox = Sandbox::new();
    let described = TOOL.replace("\"d\"", "\"Read the contents of one file from the disk\"");
    let long = |name: &str| described.replace("\"t\"", name);
    sandbox.write("a.json", &format!("[{}]", long("\"read_file\"")));
    sandbox.write("b.json", &format!("[{}]", long("\"file_read\"")));
    sandbox.watch_to(0, &["baseline", "--server", "s", "a.json"]);
    let said = sandbox.watch_to(1, &["check", "--server", "s", "--format", "json", "b.json"]);
    let server = &json(&said.out)["servers"][0];
    assert_eq!(server["tools"][0]["outcome"], "renamed");
    sandbox.watch_to(0, &["approve", server["alerts"][0]["id"].as_str().unwrap()]);
    sandbox.watch_to(0, &["check", "--server", "s", "--fail-on", "any", "b.json"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
}

#[test]
fn other_servers_stay_in_a_lock_file_and_out_of_an_approval() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", &format!("[{TOOL}]"));
    sandbox.write("b.json", &format!("[{}]", TOOL.replace("\"d\"", "\"e\"")));
    for server in ["s", "r"] {
        sandbox.watch_to(0, &["baseline", "--server", server, "a.json"]);
    }
    sandbox.watch_to(0, &["lock", "--from-store"]);
    sandbox.watch_to(0, &["lock", "--from-store", "--server", "s"]);
    sandbox.watch_to(
        0,
        &[
            "check",
            "--lock",
            "toolwarden.lock",
            "--server",
            "r",
            "a.json",
        ],
    );
    for server in ["s", "r"] {
        sandbox.watch_to(1, &["check", "--server", server, "b.json"]);
    }
    sandbox.watch_to(2, &["approve", "--tool", "t"]);
    sandbox.watch_to(0, &["approve", "--tool", "t", "--server", "s"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"]);
}

#[test]
fn a_version_names_all_of_its_tools() {
    let sandbox = Sandbox::new();
    let other = TOOL.replace("\"t\"", "\"u\"");
    sandbox.write("a.json", &format!("[{TOOL}, {other}]"));
    sandbox.write(
        "b.json",
        &format!("[{TOOL}, {}]", other.replace("\"d\"", "\"e\"")),
    );
    sandbox.watch_to(
        0,
        &["baseline", "--server", "s", "--version", "1", "a.json"],
    );
    sandbox.watch_to(
        0,
        &["baseline", "--server", "s", "--version", "2", "b.json"],
    );
    let said = sandbox.watch_to(0, &["diff", "--server", "s", "@1", "@2"]);
    assert!(
        said.out.ends_with("1 tool drifted: 1 text; 1 unchanged\n"),
        "{}",
        said.out
    );
}

#[test]
fn too_few_results_close_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    results(&sandbox, "good.jsonl", r#"{"n": 1, "m": 2}"#);
    results(&sandbox, "lost.jsonl", r#"{"n": 1}"#);
    sandbox.write("one.jsonl", "{\"tool\": \"t\", \"result\": {\"n\": 1}}\n");
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "good.jsonl"]);
    sandbox.watch_to(1, &["check", "a.json", "--responses", "lost.jsonl"]);
    sandbox.watch_to(3, &["check", "a.json", "--responses", "one.jsonl"]);
    assert_eq!(alerts(&sandbox, "open"), ["t"]);
    sandbox.write("typo.jsonl", "{\"tool\": \"tt\", \"result\": {\"n\": 1}}\n");
    let said = sandbox.watch_to(2, &["check", "a.json", "--responses", "typo.jsonl"]);
    assert!(said.err.contains("the first is of `tt`"), "{}", said.err);
}

#[test]
fn diff_sees_what_a_check_sees() {
    let sandbox = Sandbox::new();
    let hosted = r#"{"type": "mcp", "server_label": "x", "server_url": "https://x.example/", "require_approval": "always"}"#;
    let function = r#"{"type": "function", "name": "f", "description": "d", "strict": true, "parameters": {"type": "object"}}"#;
    sandbox.write("a.json", &format!("[{function}, {hosted}]"));
    sandbox.write(
        "b.json",
        &format!("[{function}, {}]", hosted.replace("always", "never")),
    );
    sandbox.write(
        "c.json",
        &format!("[{}, {hosted}]", function.replace("true", "false")),
    );
    sandbox.write("only.json", &format!("[{hosted}]"));
    let said = sandbox.watch_to(1, &["diff", "a.json", "b.json"]);
    assert!(said.out.starts_with("TRUST (mcp x)"), "{}", said.out);
    sandbox.watch_to(1, &["diff", "--fail-on", "any", "a.json", "c.json"]);
    sandbox.watch_to(0, &["baseline", "--server", "s", "only.json"]);
    sandbox.watch_to(0, &["check", "--server", "s", "only.json"]);
    sandbox.watch_to(1, &["check", "--server", "s", "b.json"]);
    let waiting = sandbox.watch_to(0, &["approve"]);
    assert!(waiting.out.contains(" trust "), "{}", waiting.out);
}

#[test]
fn a_baseline_ends_what_it_does_not_pin() {
    let sandbox = Sandbox::new();
    let evil = TOOL.replace("\"t\"", "\"evil\"");
    sandbox.write("one.json", &format!("[{TOOL}]"));
    sandbox.write(
        "two.json",
        &format!("[{}, {evil}]", TOOL.replace("\"d\"", "\"e\"")),
    );
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    sandbox.watch_to(1, &["check", "--server", "s", "two.json"]);
    sandbox.watch_to(0, &["baseline", "--server", "s", "one.json"]);
    assert_eq!(
        alerts(&sandbox, "closed"),
        ["t", "evil"],
        "no operator approved them"
    );
    assert_eq!(
        sandbox.watch(&["approve", "--all"]).out,
        "no changes are pending\n"
    );
    sandbox.watch_to(1, &["check", "--server", "s", "two.json"]);
    sandbox.watch_to(0, &["baseline", "--server", "s", "two.json"]);
    assert_eq!(alerts(&sandbox, "approved"), ["t", "evil"]);
}

#[test]
fn too_few_results_change_nothing_that_waits() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", TOOL);
    let result = |text: &str| format!("{{\"tool\": \"t\", \"result\": {text}}}\n");
    sandbox.write("pinned.jsonl", &result(r#"{"a": 1}"#).repeat(30));
    sandbox.write("bad.jsonl", &result(r#"{"a": "s"}"#));
    sandbox.write("odd.jsonl", &result(r#"{"a": 1, "b": true}"#).repeat(3));
    sandbox.watch_to(0, &["baseline", "a.json", "--responses", "pinned.jsonl"]);
    sandbox.watch_to(1, &["check", "a.json", "--responses", "bad.jsonl"]);
    for _ in 0..2 {
        sandbox.watch_to(3, &["check", "a.json", "--responses", "odd.jsonl"]);
        assert_eq!(alerts(&sandbox, "open"), ["t"]);
        let waiting = sandbox.watch_to(0, &["approve"]);
        assert!(waiting.out.contains("new type string"), "{}", waiting.out);
    }
    sandbox.watch_to(0, &["check", "a.json", "--responses", "pinned.jsonl"]);
    assert_eq!(alerts(&sandbox, "open"), Vec::<String>::new());
}
