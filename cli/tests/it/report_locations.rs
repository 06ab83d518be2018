//! Reports for CI point to lines of the repository, and say what their rules are about.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sandbox::{Sandbox, data};

/// A live server whose tools a test can change.
struct LiveServer {
    sandbox: Sandbox,
    command: String,
}

impl LiveServer {
    fn new(tools: &Value) -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("tools.json", &tools.to_string());
        let folder = sandbox.path("").display().to_string();
        let command = format!("python3 {} {folder}", data("server/tools.py"));
        Self { sandbox, command }
    }

    fn lock(&self) {
        let args = ["lock", "--server", "shop", "--mcp-command", &self.command];
        self.sandbox.watch_to(0, &args);
    }

    fn check(&self, code: i32, more: &[&str]) -> String {
        let args = ["check", "--server", "shop", "--mcp-command", &self.command];
        self.sandbox.watch_to(code, &[&args[..], more].concat()).out
    }
}

fn tool(name: &str, argument: &str) -> Value {
    json!({"name": name, "description": name, "inputSchema": {
        "type": "object", "properties": {argument: {"type": "string"}}, "required": [argument],
        "additionalProperties": false,
    }})
}

/// A server that lost one tool, changed one and has a new one.
fn drifted() -> LiveServer {
    let live = LiveServer::new(&json!([tool("buy", "sku"), tool("price", "sku")]));
    live.lock();
    let tools = json!([tool("price", "product"), tool("exec_shell", "command")]);
    live.sandbox.write("tools.json", &tools.to_string());
    live
}

/// The line of the lock file that has a text.
fn line_of(lock: &str, text: &str) -> u64 {
    let index = lock.lines().position(|line| line.contains(text));
    u64::try_from(index.unwrap() + 1).unwrap()
}

#[test]
fn findings_about_live_servers_stand_in_the_lock_file() {
    let live = drifted();
    let lock = live.sandbox.read("toolwarden.lock");
    let with = |format| live.check(1, &["--lock", "toolwarden.lock", "--format", format]);
    let expected = [
        ("buy", line_of(&lock, "\"tool\": \"buy\"")),
        ("price", line_of(&lock, "\"tool\": \"price\"")),
        // What is new has no line of its own: its server has.
        ("exec_shell", line_of(&lock, "\"server\": \"shop\"")),
    ];
    let github = with("github");
    for (tool, line) in expected {
        let place = format!("::error file=toolwarden.lock,line={line},col=1,title=drift ");
        let told = |it: &&str| it.starts_with(&place) && it.contains(&format!("::{tool}: "));
        assert!(github.lines().any(|it| told(&it)), "{tool}: {github}");
    }
    let sarif: Value = serde_json::from_str(&with("sarif")).unwrap();
    for (tool, line) in expected {
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        let place = json!({"artifactLocation": {"uri": "toolwarden.lock"},
            "region": {"startLine": line, "startColumn": 1}});
        let of_tool = |it: &&Value| it["properties"]["tool"] == tool;
        assert!(results.iter().any(|it| of_tool(&it)), "{tool}");
        for result in results.iter().filter(of_tool) {
            assert_eq!(result["locations"][0]["physicalLocation"], place, "{tool}");
        }
    }
    assert!(with("text").contains("price toolwarden.lock:"));
}

#[test]
fn a_live_server_without_a_lock_file_has_no_line_but_that_of_its_configuration() {
    let live = LiveServer::new(&json!([tool("price", "sku")]));
    live.check(0, &[]);
    let tools = json!([tool("price", "product")]).to_string();
    live.sandbox.write("tools.json", &tools);
    let github = live.check(1, &["--format", "github"]);
    assert!(github.starts_with("::error title=drift "), "{github}");
    let sarif: Value = serde_json::from_str(&live.check(1, &["--format", "sarif"])).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0];
    assert!(location.get("physicalLocation").is_none());
    assert_eq!(location["logicalLocations"][0]["name"], "price");

    let mut words = live.command.split(' ');
    let config = json!({"mcpServers": {"shop": {
        "command": words.next().unwrap(), "args": words.collect::<Vec<_>>(),
    }, "gone": {"command": "/nonexistent/server"}}});
    let config = serde_json::to_string_pretty(&config).unwrap();
    live.sandbox.write(".mcp.json", &config);
    let args = ["check", "--config", ".mcp.json", "--format", "github"];
    let github = live.sandbox.watch_to(1, &args).out;
    for name in ["\"shop\"", "\"gone\""] {
        let place = format!("::error file=.mcp.json,line={},", line_of(&config, name));
        assert!(github.contains(&place), "{name}: {github}");
    }
}

#[test]
fn a_tool_that_is_gone_from_a_file_stands_in_the_lock_file() {
    let sandbox = Sandbox::new();
    let both = json!([tool("buy", "sku"), tool("price", "sku")]).to_string();
    sandbox.write("tools.json", &both);
    sandbox.watch_to(0, &["lock", "tools.json"]);
    sandbox.write("tools.json", &json!([tool("price", "sku")]).to_string());
    let args = ["check", "--lock", "toolwarden.lock", "tools.json"];
    let github = sandbox.watch_to(1, &[&args[..], &["--format", "github"]].concat());
    let line = line_of(&sandbox.read("toolwarden.lock"), "\"tool\": \"buy\"");
    let expected =
        format!("::error file=toolwarden.lock,line={line},col=1,title=drift removed::buy: ");
    assert!(github.out.starts_with(&expected), "{}", github.out);
    let diff = sandbox.watch_to(
        1,
        &[
            "diff",
            "toolwarden.lock",
            "tools.json",
            "--format",
            "github",
        ],
    );
    assert!(diff.out.starts_with(&expected), "{}", diff.out);
}

/// What the schema of SARIF 2.1.0 demands of what is written here.
fn check_sarif(sarif: &Value) {
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: Vec<&str> = rules.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            let text = rule[text]["text"].as_str().unwrap();
            assert!(text.len() > 10 && text.ends_with('.'), "{rule}");
        }
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["error", "warning", "note"].contains(&level));
    }
    let mut fingerprints = BTreeSet::new();
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(ids[index], result["ruleId"]);
        assert!(result["message"]["text"].is_string());
        let fingerprint = result["partialFingerprints"]["toolwarden/v1"].as_str();
        assert!(fingerprints.insert(fingerprint.unwrap()), "{result}");
        let location = &result["locations"][0];
        assert!(location["logicalLocations"][0]["name"].is_string());
        if let Some(place) = location.get("physicalLocation") {
            assert!(
                !place["artifactLocation"]["uri"]
                    .as_str()
                    .unwrap()
                    .is_empty()
            );
            assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
            assert!(place["region"]["startColumn"].as_u64().unwrap() >= 1);
        }
    }
}

#[test]
fn sarif_describes_its_rules_and_recognizes_its_findings() {
    let live = drifted();
    let checked = ["--lock", "toolwarden.lock", "--format", "sarif"];
    let first: Value = serde_json::from_str(&live.check(1, &checked)).unwrap();
    check_sarif(&first);
    let rules = first["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    let breaking = rules
        .iter()
        .find(|it| it["id"] == "drift/breaking")
        .unwrap();
    assert!(
        breaking["help"]["text"]
            .as_str()
            .unwrap()
            .contains("callers")
    );

    let root = env!("CARGO_MANIFEST_DIR").to_owned() + "/../examples";
    let sandbox = Sandbox::new();
    for name in [
        "browser-1.json",
        "browser-2.json",
        "poisoned.json",
        "price.json",
    ] {
        let text = std::fs::read_to_string(format!("{root}/{name}")).unwrap();
        sandbox.write(name, &text);
    }
    let fingerprints = |sarif: &Value| -> Vec<Value> {
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        results
            .iter()
            .map(|it| it["partialFingerprints"].clone())
            .collect()
    };
    let diff = |new: &str| -> Value {
        let args = ["diff", "browser-1.json", new, "--format", "sarif"];
        serde_json::from_str(&sandbox.watch_to(1, &args).out).unwrap()
    };
    let before = diff("browser-2.json");
    check_sarif(&before);
    // Lines move; findings stay the same.
    let moved = "\n\n\n".to_owned() + &sandbox.read("browser-2.json");
    sandbox.write("moved.json", &moved);
    let after = diff("moved.json");
    assert_eq!(fingerprints(&before), fingerprints(&after));
    assert_ne!(before["runs"][0]["results"], after["runs"][0]["results"]);

    for (args, code) in [
        (
            &["watch", "scan", "poisoned.json", "--format", "sarif"][..],
            1,
        ),
        (
            &[
                "canon",
                "lint",
                "--for",
                "openai-strict",
                "browser-1.json",
                "--format",
                "sarif",
            ],
            1,
        ),
    ] {
        let output = sandbox.command().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        check_sarif(&serde_json::from_slice(&output.stdout).unwrap());
    }
}

#[test]
fn markdown_is_a_table_of_changes_with_their_witness() {
    let live = drifted();
    let told = live.check(1, &["--lock", "toolwarden.lock", "--format", "markdown"]);
    let head = "| tool | class | change | before | after | witness | place |\n|---|---|---|---|---|---|---|\n";
    assert!(told.contains(head), "{told}");
    assert!(!told.contains("| fix |"), "{told}");
    let removed = told
        .lines()
        .find(|line| line.contains("`sku\\` was removed"))
        .unwrap();
    assert!(
        removed.contains("rejected now: {\"sku\":\"\"}"),
        "{removed}"
    );
    assert!(told.contains("the tool is gone"), "{told}");
    let root = env!("CARGO_MANIFEST_DIR").to_owned() + "/../examples";
    let [old, new] = ["1", "2"].map(|it| format!("{root}/browser-{it}.json"));
    let args = ["diff", &old, &new, "--format", "markdown"];
    let diff = live.sandbox.watch_to(1, &args).out;
    assert!(
        diff.contains("send instead: {\"target\": args\\[\"ref\"\\]}"),
        "{diff}"
    );
    for line in told
        .lines()
        .chain(diff.lines())
        .filter(|line| line.starts_with("| "))
    {
        assert_eq!(line.replace("\\|", "").matches('|').count(), 8, "{line}");
    }
}
