//! The words, the output and the files of the toolwatch program.

use serde_json::Value;

use super::sandbox::{Sandbox, command_output, data};

const WEATHER: &str = "fde995a920cf95ef65673772140802aa113e37d18d31410cb4c6d6180c41ad07";
const NO_RESULTS: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn the_words_and_the_json_are_those_of_the_document() {
    let sandbox = Sandbox::new();
    let link = sandbox.path("toolwatch");
    std::os::unix::fs::symlink(snapbox::cmd::cargo_bin!("toolwarden"), &link).unwrap();
    let toolwatch = |args: &[&str]| {
        let mut command = std::process::Command::new(&link);
        command
            .current_dir(sandbox.path(""))
            .env("HOME", sandbox.path(""))
            .env("XDG_DATA_HOME", sandbox.path("data"));
        command_output(command.args(args).output().unwrap())
    };
    let none = toolwatch(&["alerts"]);
    assert_eq!((none.code, none.out.as_str()), (0, "No alerts recorded.\n"));
    let schema = data("toolwatch/get_weather.json");
    let arguments = ["--tool", "get_weather", "--schema", &schema];
    let pinned = toolwatch(&[&["baseline"][..], &arguments, &["--version", "1.0.0"]].concat());
    let json = parsed(&pinned.out);
    assert_eq!(
        keys(&json),
        [
            "tool_name",
            "schema_hash",
            "response_pattern_hash",
            "captured_at"
        ]
    );
    assert_eq!(json["schema_hash"], WEATHER);
    assert_eq!(json["response_pattern_hash"], NO_RESULTS);
    assert!(json["captured_at"].as_str().unwrap().ends_with("+00:00"));
    let fine = toolwatch(&[&["check"][..], &arguments].concat());
    assert_eq!(
        (fine.code, fine.out.as_str()),
        (0, "No mutation detected for tool 'get_weather'.\n")
    );
    let changed = std::fs::read_to_string(&schema)
        .unwrap()
        .replace("celsius", "kelvin");
    sandbox.write("changed.json", &changed);
    for _ in 0..2 {
        let drifted = toolwatch(&["check", "--tool", "get_weather", "--schema", "changed.json"]);
        assert_eq!(drifted.code, 1, "{drifted:?}");
        let json = parsed(&drifted.out);
        assert_eq!(
            keys(&json),
            ["tool_name", "change_type", "severity", "detected_at"]
        );
        assert_eq!(
            (&json["change_type"], &json["severity"]),
            (&"schema_change".into(), &"medium".into())
        );
    }
    let alerts = parsed(&toolwatch(&["alerts"]).out);
    assert_eq!(alerts.as_array().unwrap().len(), 1, "seen twice, told once");
    assert_eq!(
        keys(&alerts[0]),
        [
            "tool_name",
            "change_type",
            "old_fingerprint",
            "new_fingerprint",
            "detected_at",
            "severity"
        ]
    );
    assert_eq!(alerts[0]["old_fingerprint"]["schema_hash"], WEATHER);
    assert_eq!(alerts[0]["old_fingerprint"]["version"], "1.0.0");
}

#[test]
fn a_key_order_is_no_mutation_and_any_text_is() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "a.json",
        r#"{"name": "t", "description": "x", "parameters": {"type": "object"}}"#,
    );
    sandbox.write(
        "b.json",
        r#"{"parameters": {"type": "object"}, "description": "x", "name": "t"}"#,
    );
    sandbox.write(
        "c.json",
        r#"{"name": "t", "description": "y", "parameters": {"type": "object"}}"#,
    );
    let run = |word: &str, file: &str| {
        sandbox.watch(&[word, "--compat", "--tool", "t", "--schema", file])
    };
    assert_eq!(
        run("check", "a.json").out,
        "No mutation detected for tool 't'.\n",
        "it is registered"
    );
    assert_eq!(run("check", "b.json").code, 0);
    assert_eq!(run("check", "c.json").code, 1);
    assert_eq!(
        sandbox
            .watch(&[
                "check",
                "--compat",
                "--exit-zero",
                "--tool",
                "t",
                "--schema",
                "c.json"
            ])
            .code,
        0
    );
}

#[test]
fn results_are_compared_by_keys_and_types() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "t.json",
        r#"{"name": "t", "parameters": {"type": "object"}}"#,
    );
    sandbox.write(
        "t2.json",
        r#"{"name": "t", "parameters": {"type": "object", "title": "T"}}"#,
    );
    for (name, text) in [
        ("base", r#"[{"temperature": 22, "unit": "celsius"}]"#),
        ("values", r#"[{"temperature": -5, "unit": "fahrenheit"}]"#),
        (
            "key",
            r#"[{"temperature": 22, "unit": "celsius", "humidity": 50}]"#,
        ),
        ("type", r#"[{"temperature": "22", "unit": "celsius"}]"#),
    ] {
        sandbox.write(&format!("{name}.json"), text);
    }
    let run = |word: &str, schema: &str, results: &str| {
        sandbox.watch(&[
            word,
            "--compat",
            "--tool",
            "t",
            "--schema",
            schema,
            "--responses",
            results,
        ])
    };
    let pinned = parsed(&run("baseline", "t.json", "base.json").out);
    assert_eq!(
        pinned["response_pattern_hash"],
        "5618f276f2cb29680dc21db024b70b0aedfc11dc96093705a4627a574c427a60"
    );
    assert_eq!(
        run("check", "t.json", "values.json").code,
        0,
        "other values, same keys and types"
    );
    for (schema, results, change, severity) in [
        ("t.json", "key.json", "response_change", "medium"),
        ("t.json", "type.json", "response_change", "medium"),
        ("t2.json", "values.json", "schema_change", "medium"),
        ("t2.json", "type.json", "behavior_change", "high"),
    ] {
        let said = run("check", schema, results);
        let json = parsed(&said.out);
        assert_eq!(
            (
                said.code,
                json["change_type"].as_str(),
                json["severity"].as_str()
            ),
            (1, Some(change), Some(severity))
        );
    }
}

#[test]
fn files_of_the_original_are_taken_over_without_a_false_alarm() {
    let sandbox = Sandbox::new();
    let old = data("toolwatch/old");
    let imported = sandbox.watch_to(0, &["import", &old, "--format", "json"]);
    let json = parsed(&imported.out);
    assert_eq!(
        (&json["baselines"], &json["alerts"]),
        (&4.into(), &1.into())
    );
    let again = parsed(
        &sandbox
            .watch_to(0, &["import", &old, "--format", "json"])
            .out,
    );
    assert_eq!(
        (
            &again["baselines"],
            &again["already_pinned"],
            &again["alerts"]
        ),
        (&0.into(), &4.into(), &0.into())
    );
    for tool in ["get_weather", "search_tool", "code_executor"] {
        let schema = data(&format!("toolwatch/{tool}.json"));
        let first = sandbox.watch_to(0, &["check", "--tool", tool, "--schema", &schema]);
        assert!(
            first.out.contains("is the one that was imported"),
            "{}",
            first.out
        );
        sandbox.watch_to(
            0,
            &["check", "--frozen", "--tool", tool, "--schema", &schema],
        );
        let history = sandbox.watch_to(0, &["history", tool]);
        assert!(
            history.out.contains("imported") && history.out.contains("adopted"),
            "{}",
            history.out
        );
    }
    let alerts = sandbox.watch_to(0, &["alerts", "--compat"]);
    let written: Value =
        parsed(&std::fs::read_to_string(data("toolwatch/old/alerts.json")).unwrap());
    assert_eq!(parsed(&alerts.out), written, "as the original wrote it");
}

#[test]
fn an_imported_hash_that_does_not_fit_alerts() {
    let sandbox = Sandbox::new();
    sandbox.watch_to(0, &["import", &data("toolwatch/old")]);
    let text = std::fs::read_to_string(data("toolwatch/search_tool.json")).unwrap();
    sandbox.write("search.json", &text.replace("1e2", "50"));
    let drifted = sandbox.watch_to(
        1,
        &["check", "--tool", "search_tool", "--schema", "search.json"],
    );
    assert!(
        drifted.out.contains("differs from the imported one"),
        "{}",
        drifted.out
    );
    sandbox.watch_to(
        0,
        &["approve", "--tool", "search_tool", "--why", "reviewed"],
    );
    sandbox.watch_to(
        0,
        &["check", "--tool", "search_tool", "--schema", "search.json"],
    );
    sandbox.write(
        "odd.json",
        r#"[{"temperature": 22, "unit": "celsius"}, {"humidity": 3}]"#,
    );
    let weather = data("toolwatch/get_weather.json");
    let other = sandbox.watch_to(
        1,
        &[
            "check",
            "--tool",
            "get_weather_sampled",
            "--schema",
            &weather,
            "--responses",
            "odd.json",
        ],
    );
    assert!(
        other.out.contains("differ from the imported ones"),
        "{}",
        other.out
    );
}

#[test]
fn broken_files_of_the_original_are_refused_and_nothing_is_taken() {
    let sandbox = Sandbox::new();
    sandbox.write("old/baselines.json", "[{\"tool_name\": \"a\"");
    let said = sandbox.watch_to(2, &["import", "old"]);
    assert!(said.err.contains("old/baselines.json"), "{}", said.err);
    sandbox.write("old/baselines.json", "[{\"tool_name\": \"a\"}]");
    let said = sandbox.watch_to(2, &["import", "old"]);
    assert!(
        said.err.contains("at /0: `version` is missing"),
        "{}",
        said.err
    );
    let said = sandbox.watch_to(2, &["import", "nowhere"]);
    assert!(said.err.contains("holds neither"), "{}", said.err);
    assert_eq!(sandbox.watch(&["list"]).out, "nothing is pinned\n");
}

/// The command under one of the old names, in a home of its own.
fn called(sandbox: &Sandbox, name: &str, args: &[&str]) -> super::sandbox::CommandOutput {
    let link = sandbox.path(name);
    if !link.exists() {
        std::os::unix::fs::symlink(snapbox::cmd::cargo_bin!("toolwarden"), &link).unwrap();
    }
    let mut command = std::process::Command::new(&link);
    command
        .current_dir(sandbox.path(""))
        .env("HOME", sandbox.path(""))
        .env("XDG_DATA_HOME", sandbox.path("data"))
        .env_remove("TOOLWARDEN_STORE");
    command_output(command.args(args).output().unwrap())
}

fn with_old_files() -> Sandbox {
    let sandbox = Sandbox::new();
    for file in ["baselines.json", "alerts.json"] {
        let text = std::fs::read_to_string(data(&format!("toolwatch/old/{file}"))).unwrap();
        sandbox.write(&format!(".aumai/toolwatch/{file}"), &text);
    }
    let schema = std::fs::read_to_string(data("toolwatch/get_weather.json")).unwrap();
    sandbox.write("mutated.json", &schema.replace("celsius", "kelvin"));
    sandbox
}

#[test]
fn what_the_original_kept_is_imported_at_first_use() {
    let schema = data("toolwatch/get_weather.json");
    for name in ["toolwatch", "aumai-toolwatch"] {
        let sandbox = with_old_files();
        let check = |file: &str| {
            let args = ["check", "--tool", "get_weather", "--schema", file];
            called(&sandbox, name, &args)
        };
        let mutated = check("mutated.json");
        assert_eq!(mutated.code, 1, "{mutated:?}");
        assert!(
            mutated.err.contains("4 baselines and 1 alert imported"),
            "{mutated:?}"
        );
        let fine = check(&schema);
        assert_eq!((fine.code, fine.err.as_str()), (0, ""), "imported once");
        assert_eq!(fine.out, "No mutation detected for tool 'get_weather'.\n");
    }
    // Alerts of the original are shown before anything else was done.
    let alerts = called(&with_old_files(), "toolwatch", &["alerts"]);
    assert_eq!(parsed(&alerts.out).as_array().map(Vec::len), Some(1));
    // A store that was used for other tools starts from them too, by that name.
    let sandbox = with_old_files();
    sandbox.write(
        "t.json",
        r#"{"name": "t", "inputSchema": {"type": "object"}}"#,
    );
    std::fs::rename(sandbox.path(".aumai"), sandbox.path("elsewhere")).unwrap();
    sandbox.watch_to(0, &["baseline", "--server", "other", "t.json"]);
    std::fs::rename(sandbox.path("elsewhere"), sandbox.path(".aumai")).unwrap();
    let args = ["check", "--tool", "get_weather", "--schema", "mutated.json"];
    assert_eq!(called(&sandbox, "toolwatch", &args).code, 1);
}

#[test]
fn a_new_store_in_its_usual_place_starts_from_what_the_original_kept() {
    let args = ["check", "--tool", "get_weather", "--schema", "mutated.json"];
    let said = with_old_files().watch_to(1, &args);
    assert!(
        said.err.contains("4 baselines and 1 alert imported"),
        "{}",
        said.err
    );
    // Another place was chosen for other tools.
    let elsewhere = [&args[..], &["--store", "mine.db"]].concat();
    with_old_files().watch_to(0, &elsewhere);
}

#[test]
fn damaged_files_of_the_original_are_not_passed_over() {
    let sandbox = with_old_files();
    sandbox.write(".aumai/toolwatch/baselines.json", "[{\"tool_name\": ");
    let args = ["check", "--tool", "get_weather", "--schema", "mutated.json"];
    let said = called(&sandbox, "toolwatch", &args);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("baselines.json"), "{}", said.err);
}

#[test]
fn aliases_use_their_own_name_in_help() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    for (name, word) in [
        ("toolwatch", "check"),
        ("aumai-toolwatch", "alerts"),
        ("toolcanon", "detect"),
        ("aumai-toolcanon", "emit"),
        ("tooldrift", "diff"),
    ] {
        let told = called(&sandbox, name, &["--version"]);
        assert_eq!((told.code, told.out), (0, format!("{name} {version}\n")));
        let whole = called(&sandbox, name, &["--help"]);
        assert!(
            whole.out.contains(&format!("Usage: {name} ")),
            "{}",
            whole.out
        );
        let help = called(&sandbox, name, &[word, "--help"]);
        assert!(
            help.out.contains(&format!("Usage: {name} {word} ")),
            "{}",
            help.out
        );
        assert!(
            help.out.contains(&format!("\n  {name} {word}")),
            "{}",
            help.out
        );
        let mistake = called(&sandbox, name, &[word, "--no-such-option"]);
        assert_eq!(mistake.code, 2);
        assert!(
            mistake.err.contains(&format!("Usage: {name} {word}")),
            "{}",
            mistake.err
        );
        for text in [&whole.out, &help.out, &mistake.err] {
            assert!(!text.contains("toolwarden watch"), "{text}");
            assert!(!text.contains("toolwarden canon"), "{text}");
            assert!(!text.contains("toolwarden probe"), "{text}");
        }
    }
}

#[test]
fn aliases_are_installed_and_nothing_else_is_replaced() {
    let sandbox = Sandbox::new();
    let install = |more: &[&str]| {
        let mut command = sandbox.command();
        command.arg("install-aliases").args(more).arg("bin");
        command_output(command.output().unwrap())
    };
    assert_eq!(install(&[]).code, 3, "there is no such directory");
    std::fs::create_dir(sandbox.path("bin")).unwrap();
    let made = install(&[]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(made.out.matches("linked ").count(), 5);
    assert!(made.err.contains("is not in PATH"), "{}", made.err);
    assert_eq!(install(&[]).out.matches("exists ").count(), 5);
    let output = std::process::Command::new(sandbox.path("bin/toolwatch"))
        .arg("--version")
        .output();
    assert!(output.unwrap().stdout.starts_with(b"toolwatch "));

    std::fs::remove_file(sandbox.path("bin/tooldrift")).unwrap();
    sandbox.write("bin/tooldrift", "something else");
    std::fs::remove_file(sandbox.path("bin/toolcanon")).unwrap();
    let refused = install(&[]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("bin/tooldrift is not a link"),
        "{}",
        refused.err
    );
    assert!(!sandbox.path("bin/toolcanon").exists(), "all or nothing");
    assert_eq!(sandbox.read("bin/tooldrift"), "something else");
    assert_eq!(install(&["--force"]).out.matches("linked ").count(), 2);
}
