use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Command, Endpoint};
use toolwarden_watch::{ToolListSource, WatchConfig};

fn read(name: &str, text: &str) -> Result<WatchConfig, String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    WatchConfig::parse(Path::new(name), text, &variable).map_err(|error| error.to_string())
}

#[test]
fn everything_in_it_counts() {
    let config = read(
        "watch.toml",
        r#"
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
"#,
    )
    .unwrap();
    assert_eq!(config.check_interval, Duration::from_secs(60));
    assert_eq!(config.alert_on, [ToolwatchChangeType::Schema]);
    assert_eq!(config.tools, ["search"]);
    assert_eq!(
        (config.learn_results, config.window),
        (50, Duration::from_secs(7200))
    );
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
    assert_eq!(config.check_interval, Duration::from_secs(300));
    assert_eq!(config.alert_on.len(), 3);
    assert_eq!(config.tools, Vec::<String>::new());
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
