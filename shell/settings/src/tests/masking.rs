use serde_json::json;

use super::{FULL, load, variable};

#[test]
fn secrets_are_masked_and_defaults_are_shown() {
    let text = "
listen: 127.0.0.1:${PORT}
servers:
  github: {command: npx, args: [x, '--token=${GITHUB_TOKEN}'], env: {A: b}, watch: {every: 1m}}
  docs: {url: 'https://u:p@h/mcp?key=s', headers: {Authorization: s}}
identity: {apiKeys: [{principal: ci, key: '${CI_KEY}'}]}
alerts: {a: {slack: https://hooks.slack.com/services/x}}
policy: {tools: {}}
";
    let life = json!({
        "disabled": false,
        "start": "eager",
        "protocol": "auto",
        "sessions": "isolated",
        "concurrency": 64,
        "restart": {"first": "500ms", "most": "60s"},
        "breaker": {"failures": 5, "pause": "30s"},
        "limits": {
            "message_size": "64MiB", "list_size": "64MiB", "list_entries": 100_000, "list_pages": 1_000,
            "messages_per_minute": 60_000, "bytes_per_minute": "256MiB", "open_requests": 64,
        },
        "trust": "first-use",
    });
    let mut github = json!({
        "command": "npx", "args": ["x", "--token=***"], "env": {"A": "***"},
    });
    let mut docs = json!({"url": "https://h/mcp", "headers": {"Authorization": "***"}});
    for server in [&mut github, &mut docs] {
        let server = server.as_object_mut().unwrap();
        server.extend(life.as_object().unwrap().clone());
    }
    github["watch"] = json!({"every": "1m"});
    let expected = json!({
        "listen": {"address": "127.0.0.1:***", "max_body": "8MiB", "max_batch": 100, "limits": {
            "connections": 16384, "per_address": 8192, "per_principal": 4096, "unauthenticated": 1024,
            "unauthenticated_per_address": 512, "authenticate_within": "10s", "idle": "2m", "body_within": "30s",
        }},
        "store": "toolwarden.db",
        "store_quota": "10GiB",
        "servers": {"github": github, "docs": docs},
        "prefix": "always",
        "separator": "__",
        "policy": {"tools": {}},
        "denials": "tool-error",
        "identity": {"api_keys": [{"principal": "ci", "key": "***"}]},
        "watch": {
            "every": "5m",
            "on_drift": {
                "equivalent": "serve",
                "info": "serve",
                "structural": "quarantine",
                "widened": "serve",
                "behavioural": "quarantine",
                "text": "quarantine",
                "ignored": "quarantine",
                "unknown": "quarantine",
                "trust": "quarantine",
                "breaking": "quarantine",
            },
            "on_new": "quarantine",
            "on_finding": "quarantine",
            "before_call": "never",
            "output": "warn",
            "strip_hidden": false,
            "shapes": true,
            "learn_results": 30,
            "window": "24h",
            "alert_on": ["schema_change", "response_change", "behavior_change"],
            "compare_time": "1s",
            "compare_list_time": "5s",
        },
        "timeouts": {"connect": "10s", "start": "60s", "request": "60s", "idle": "5m", "list": "10s"},
        "alerts": {"a": {"slack": "https://hooks.slack.com/***", "severity": "low"}},
        "misuse": {"escalations": 5, "foreign_sessions": 3, "denials": 30, "new_groups_after": 20, "window": "10m", "every": "1h"},
        "sessions": {"idle": "30m", "max_requests": 10_000, "max_subscriptions": 1_000, "in_flight": "256MiB", "replay": "16MiB"},
        "drain": "10s",
    });
    let masked = load(text).unwrap().masked();
    assert_eq!(format!("{masked:#}"), format!("{expected:#}"));
}

#[test]
fn no_secret_is_shown_by_the_mask_or_by_debug() {
    let loaded = load(FULL).unwrap();
    let secrets = [
        "GITHUB_TOKEN",
        "DOCS_TOKEN",
        "CI_KEY",
        "JWT_SECRET",
        "HOOK_SECRET",
        "SLACK_PATH",
        "MAIL_PASSWORD",
    ];
    let mut secrets: Vec<String> = secrets.into_iter().filter_map(variable).collect();
    let written = ["user:pass", "key=s", "access_token=d", "key=w", "hook/f"];
    secrets.extend(written.map(str::to_owned));
    for shown in [
        loaded.masked().to_string(),
        format!("{loaded:?}"),
        format!("{loaded:#?}"),
    ] {
        for secret in &secrets {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}
