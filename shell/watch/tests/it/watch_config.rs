use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Command, Endpoint};
use toolwarden_settings::{Settings, to_yaml};
use toolwarden_watch::{ServerFileKind, ToolListSource, WatchConfig};

fn read(name: &str, text: &str) -> Result<WatchConfig, String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    WatchConfig::parse(Path::new(name), text, &variable).map_err(|error| error.to_string())
}

const TOML: &str = r#"
check_interval_seconds = 60
alert_on = ["schema_change"]
tools = ["search"]
learn_results = 50
window_hours = 2

[servers.search]
url = "https://tools.example/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
scope = "admin"
timeout_seconds = 5
[[servers.search.calls]]
tool = "search"
arguments = { query = "rust" }

[servers.browser]
command = "npx -y @playwright/mcp"

[servers.files]
files = ["tools.json"]
"#;

#[test]
fn everything_in_it_counts() {
    let config = read("watch.toml", TOML).unwrap();
    for server in config.servers.values() {
        assert_eq!(server.check_interval, Duration::from_secs(60));
        assert_eq!(server.alert_on, [ToolwatchChangeType::Schema]);
        assert_eq!(server.tools, ["search"]);
        assert_eq!(
            (server.pooling.learn_results, server.pooling.window),
            (50, Duration::from_secs(7200))
        );
    }
    let search = &config.servers["search"];
    let ToolListSource::Live(Endpoint::Url(url)) = &search.source else {
        panic!("it is an address");
    };
    assert_eq!(
        url.headers,
        [("Authorization".to_owned(), "Bearer s3cret".to_owned())]
    );
    assert_eq!(
        (search.scope.as_str(), search.timeout),
        ("admin", Duration::from_secs(5))
    );
    assert_eq!(search.calls[0].arguments, json!({"query": "rust"}));
    let ToolListSource::Live(Endpoint::Command(Command { program, args, .. })) =
        &config.servers["browser"].source
    else {
        panic!("it is a command");
    };
    assert_eq!(
        (program.as_str(), args.join(" ")),
        ("npx", "-y @playwright/mcp".to_owned())
    );
    assert_eq!(
        config.servers["files"].source,
        ToolListSource::Files(vec!["tools.json".into()])
    );
}

#[test]
fn defaults_are_those_of_the_document() {
    let config = read("watch.toml", "[servers.a]\ncommand = \"a\"").unwrap();
    let server = &config.servers["a"];
    assert_eq!(server.check_interval, Duration::from_secs(300));
    assert_eq!(server.alert_on.len(), 3);
    assert_eq!(server.tools, Vec::<String>::new());
}

#[test]
fn the_configuration_of_a_client_is_taken_as_it_is() {
    let config = read(
        ".mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "autoApprove": [],
            "env": {"TZ": "UTC"}}, "off": {"command": "x", "disabled": true}}}"#,
    )
    .unwrap();
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["time"]);
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let server = "[servers.a]\ncommand = \"a\"\n";
    for (text, expected) in [
        (
            format!("chek_interval_seconds = 5\n{server}"),
            "/chek_interval_seconds: unknown key `chek_interval_seconds`, did you mean `check_interval_seconds`?",
        ),
        (
            format!("{server}comand = 1"),
            "/servers/a/comand: unknown key `comand`, did you mean `command`?",
        ),
        (
            format!("alert_on = [\"schema_chang\"]\n{server}"),
            "/alert_on: unknown word `schema_chang`, did you mean `schema_change`?",
        ),
        (
            format!("check_interval_seconds = 0\n{server}"),
            "/check_interval_seconds: expected a whole number above 0, found a number",
        ),
        (
            "tools = []".to_owned(),
            "no servers: name at least one under `servers`",
        ),
        (
            "[servers.a]\nscope = \"x\"".to_owned(),
            "/servers/a: a server needs one of `command`, `url` and `files`",
        ),
        (
            "[servers.a]\nurl = \"ftp://x\"".to_owned(),
            "/servers/a/url: `ftp://x` has the scheme `ftp`; only http and https carry MCP",
        ),
        (
            "[servers.a]\nurl = \"http://x\"\nheaders = { A = \"${NOPE}\" }".to_owned(),
            "/servers/a/headers/A: the environment variable `NOPE` is not set",
        ),
    ] {
        assert_eq!(read("watch.toml", &text).unwrap_err(), expected);
    }
    assert!(
        read("watch.toml", "a = [")
            .unwrap_err()
            .starts_with("not TOML: ")
    );
    assert!(
        read("watch.json", "{\"a\": ")
            .unwrap_err()
            .starts_with("not JSON: ")
    );
}

fn from_settings(yaml: &str) -> WatchConfig {
    let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    let loaded = Settings::of_text(yaml, Path::new("toolwarden.yaml"), &variable).unwrap();
    WatchConfig::from_settings(&loaded.settings).unwrap()
}

#[test]
fn converted_settings_mean_the_same() {
    let converted = to_yaml(&WatchConfig::to_settings(Path::new("watch.toml"), TOML).unwrap());
    assert_eq!(from_settings(&converted), read("watch.toml", TOML).unwrap());
    let expected = r#"servers:
  browser:
    command: npx
    args: ["-y", "@playwright/mcp"]
  files:
    files: [tools.json]
  search:
    calls: [{"arguments":{"query":"rust"},"tool":"search"}]
    headers:
      Authorization: "Bearer ${TOKEN}"
    scope: admin
    timeouts:
      start: "5s"
      request: "5s"
    url: "https://tools.example/mcp"
watch:
  alert_on: [schema_change]
  every: "60s"
  learn_results: 50
  tools: [search]
  window: "2h"
"#;
    assert_eq!(converted, expected);
}

#[test]
fn dollar_signs_survive_the_conversion() {
    let toml = r#"
[servers.a]
command = "run"
args = ["$5", "$$", "${env:TOKEN}", "${unclosed", "${NOPE:-x}$"]
[[servers.a.calls]]
tool = "t"
arguments = { price = "$$5", text = "${TOKEN}" }
"#;
    let converted = to_yaml(&WatchConfig::to_settings(Path::new("watch.toml"), toml).unwrap());
    assert_eq!(from_settings(&converted), read("watch.toml", toml).unwrap());
}

#[test]
fn what_cannot_be_converted_is_an_error() {
    for (name, text, expected) in [
        (
            "watch.toml",
            "[servers.\"a.b\"]\ncommand = \"a\"",
            "/servers/a.b: a server's name in settings has 1 to 64 letters, digits, `-` and `_`; rename the \
             server, and pin it again under the new name",
        ),
        (
            "toolwarden.yaml",
            "servers: {}",
            "not a watch configuration from before the settings",
        ),
        (
            ".mcp.json",
            r#"{"mcpServers": {}}"#,
            "not a watch configuration from before the settings",
        ),
        (
            "watch.toml",
            "[servers.a]\ncomand = \"a\"",
            "/servers/a/comand: unknown key `comand`, did you mean `command`?",
        ),
    ] {
        let converted = WatchConfig::to_settings(Path::new(name), text);
        assert_eq!(converted.unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_file_is_what_its_name_or_content_says() {
    use ServerFileKind::{Client, Settings, WatchFile};
    for (name, text, expected) in [
        ("watch.toml", "a = [", WatchFile),
        ("toolwarden.yaml", "{", Settings),
        ("s.yml", "a = 1", Settings),
        ("watch", "[servers.a]\ncommand = \"a\"", WatchFile),
        ("settings", "servers: {a: npx}", Settings),
        ("settings", "", Settings),
        ("x.json", r#"{"mcpServers": {}, "listen": "x"}"#, Client),
        (
            "x.json",
            r#"{"servers": {"a": {"command": "x", "scope": "s"}}}"#,
            WatchFile,
        ),
        (
            "x.json",
            r#"{"servers": {"a": {"command": "x", "watch": {}}}}"#,
            Settings,
        ),
        (
            "x.json",
            r#"{"servers": {"a": {"command": "x"}}, "store": "s"}"#,
            Settings,
        ),
        ("x.json", "{", WatchFile),
    ] {
        assert_eq!(
            ServerFileKind::detect(Path::new(name), text),
            expected,
            "{name}: {text}"
        );
    }
}

#[test]
fn every_server_of_the_settings_has_its_own_schedule() {
    let config = from_settings(
        "servers:\n  a: {url: 'http://127.0.0.1:1/mcp', watch: {every: 1m, window: 2h, tools: x}, \
         timeouts: {request: 90s}}\n  b: npx b\nwatch: {every: 10m, learn_results: 5}",
    );
    let figures = |name: &str| {
        let it = &config.servers[name];
        let seconds = [it.check_interval, it.pooling.window, it.timeout].map(|it| it.as_secs());
        (seconds, it.pooling.learn_results, it.tools.clone())
    };
    assert_eq!(figures("a"), ([60, 7200, 90], 5, vec!["x".to_owned()]));
    assert_eq!(figures("b"), ([600, 86_400, 60], 5, Vec::new()));
}
