//! `watch` with settings, and with the TOML file that came before them.

use serde_json::{Value, json};

use super::sandbox::{CommandOutput, Sandbox, command_output};

fn tools(description: &str) -> String {
    json!([{"name": "price", "description": description, "inputSchema": {"type": "object"}}])
        .to_string()
}

fn toolwarden(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

const SETTINGS: &str = "\
servers:
  shop:
    files: [lists/tools.json]
    scope: staff
watch: {every: 1h}
";

/// Settings in another folder: paths start there.
fn with_settings() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("etc/lists/tools.json", &tools("The price of a thing"));
    sandbox.write("etc/toolwarden.yaml", SETTINGS);
    sandbox
}

#[test]
fn every_watch_command_reads_servers_and_store_from_settings() {
    let sandbox = with_settings();
    let config = ["-c", "etc/toolwarden.yaml"];
    let with = |args: &[&'static str]| [args, config.as_slice()].concat();
    let pinned = sandbox.watch_to(0, &with(&["baseline"]));
    assert_eq!(
        (pinned.err.as_str(), pinned.out.lines().last()),
        ("", Some("kept in etc/toolwarden.db"))
    );
    let said = sandbox.watch_to(0, &with(&["check", "--frozen", "--format", "json"]));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let server = &document["servers"][0];
    assert_eq!(
        (&server["server"], &server["scope"]),
        (&json!("shop"), &json!("staff"))
    );

    sandbox.write("etc/lists/tools.json", &tools("Another description"));
    sandbox.watch_to(1, &with(&["daemon", "--once"]));
    let alerts = sandbox.watch_to(0, &with(&["alerts", "--format", "json"]));
    let alerts: Value = serde_json::from_str(&alerts.out).unwrap();
    assert_eq!(alerts["alerts"].as_array().map(Vec::len), Some(1));
    sandbox.watch_to(0, &with(&["approve", "--all"]));
    sandbox.watch_to(0, &with(&["check", "--frozen"]));
    sandbox.watch_to(0, &with(&["lock"]));
    let from_store = with(&["lock", "--from-store", "--output", "store.lock"]);
    sandbox.watch_to(0, &from_store);
    let locked = |name: &str| {
        // A lock file has one document for each tool.
        let text = sandbox.read(name);
        let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let documents = documents.map(Result::unwrap);
        let tools = documents.filter(|it| it.get("tool").is_some());
        let tools = tools.map(|it| (it["server"].clone(), it["definition"].clone()));
        tools.collect::<Vec<_>>()
    };
    assert_eq!(locked("toolwarden.lock"), locked("store.lock"));
    let [(server, definition)] = &*locked("store.lock") else {
        panic!("one tool");
    };
    assert_eq!(
        (server, &definition["description"]),
        (&json!("shop"), &json!("Another description"))
    );
    assert!(
        !sandbox.path("data").exists(),
        "the user's store is not used"
    );
}

#[test]
fn the_daemon_takes_settings_by_position_by_option_and_by_default() {
    let sandbox = with_settings();
    sandbox.watch_to(0, &["daemon", "etc/toolwarden.yaml", "--once"]);
    sandbox.watch_to(0, &["daemon", "-c", "etc/toolwarden.yaml", "--once"]);
    let said = sandbox.watch_to(2, &["daemon", "--once"]);
    assert!(said.err.contains("toolwarden.yaml"), "{}", said.err);
    sandbox.write("toolwarden.yaml", &SETTINGS.replace("lists/", "etc/lists/"));
    let said = sandbox.watch_to(0, &["daemon", "--once"]);
    assert_eq!(said.err, "watching 1 server every 3600 s\nno drift\n");
    assert!(sandbox.path("toolwarden.db").exists());
}

#[test]
fn a_toml_file_is_still_read_and_converted_without_losing_its_pins() {
    let sandbox = Sandbox::new();
    sandbox.write("tools.json", &tools("The price of a thing"));
    sandbox.write(
        "watch.toml",
        "check_interval_seconds = 60\n[servers.shop]\nfiles = [\"tools.json\"]\n",
    );
    let said = sandbox.watch_to(0, &["check", "--config", "watch.toml"]);
    assert_eq!(
        said.err.lines().next(),
        Some(
            "Warning: watch.toml is in the format from before the settings; `toolwarden config convert \
             watch.toml > toolwarden.yaml` converts it"
        )
    );
    let converted = toolwarden(&sandbox, &["config", "convert", "watch.toml"]);
    assert_eq!((converted.code, converted.err.as_str()), (0, ""));
    let store = sandbox.path("data/toolwarden/toolwarden.db");
    let expected = format!(
        "store: {}\nservers:\n  shop:\n    files: [tools.json]\nwatch:\n  every: \"60s\"\n",
        store.display()
    );
    assert_eq!(converted.out, expected);
    sandbox.write("toolwarden.yaml", &converted.out);
    // The pins are those of the TOML file: `--frozen` would fail without them.
    sandbox.watch_to(0, &["check", "--frozen", "-c", "toolwarden.yaml"]);
    sandbox.write("tools.json", &tools("Another description"));
    sandbox.watch_to(1, &["check", "--frozen", "-c", "toolwarden.yaml"]);
    let refused = toolwarden(&sandbox, &["config", "convert", "toolwarden.yaml"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .err
            .contains("not a watch configuration from before the settings"),
        "{}",
        refused.err
    );
}

#[test]
fn the_file_of_a_client_is_a_source_without_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write("tools.json", &tools("The price of a thing"));
    sandbox.write(
        ".mcp.json",
        r#"{"mcpServers": {"shop": {"files": ["tools.json"]}}}"#,
    );
    let said = sandbox.watch_to(0, &["check", "--config", ".mcp.json"]);
    assert_eq!(said.err, "");
}

#[test]
fn mistakes_in_settings_have_their_line() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", "servers:\n  shop: {fils: [a.json]}\n");
    let said = sandbox.watch_to(2, &["check", "-c", "toolwarden.yaml"]);
    assert!(said.err.contains("toolwarden.yaml:2:10: "), "{}", said.err);
    assert!(said.err.contains("did you mean `files`?"), "{}", said.err);
}
