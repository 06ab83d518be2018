use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use toolwarden_drift::{ChangeClass, ToolwatchChangeType};
use toolwarden_guard::OutputMode;
use toolwarden_live_guard::MisuseRules;
use toolwarden_mcp::{Command, ConnectionLimits, Endpoint, EnvInheritance, ServerUrl};
use toolwarden_model::Severity;

use super::super::*;
use super::{FULL, load, read};

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn drift(changed: &[(ChangeClass, OnDrift)]) -> BTreeMap<ChangeClass, OnDrift> {
    let mut drift = WatchSettings::default().on_drift;
    drift.extend(changed.iter().copied());
    drift
}

fn watch() -> WatchSettings {
    WatchSettings {
        on_drift: drift(&[(ChangeClass::Widened, OnDrift::Hide)]),
        on_new: OnDrift::Serve,
        on_finding: OnDrift::Quarantine,
        check_interval: seconds(600),
        max_age_before_call: Some(seconds(30)),
        output: OutputMode::Warn,
        strip_hidden: true,
        shapes: false,
        learn_results: 7,
        window: seconds(7200),
        alert_on: vec![ToolwatchChangeType::Schema, ToolwatchChangeType::Response],
        tools: texts(["search"]),
        compare_time: seconds(2),
        compare_list_time: seconds(9),
        trust: TrustMode::FirstUse,
    }
}

fn command(program: &str, args: &[&str]) -> Endpoint {
    Endpoint::Command(Command {
        program: program.to_owned(),
        args: args.iter().map(|&it| it.to_owned()).collect(),
        env: Vec::new(),
        inherit: EnvInheritance::default(),
        directory: None,
        shows_errors: false,
    })
}

/// The timeouts of servers that set none.
fn timeouts() -> Timeouts {
    Timeouts {
        idle: seconds(8),
        ..Timeouts::default()
    }
}

fn servers() -> Vec<ServerSettings> {
    let github = Endpoint::Command(Command {
        program: "npx".to_owned(),
        args: texts(["-y", "@x/server", "--port", "8080", "--token=ghp_github"]),
        env: vec![
            ("TOKEN".to_owned(), "ghp_github".to_owned()),
            ("DEBUG".to_owned(), "true".to_owned()),
        ],
        inherit: EnvInheritance::Minimal(texts(["DOCKER_HOST"])),
        directory: Some(PathBuf::from("etc/work")),
        shows_errors: false,
    });
    let docs = Endpoint::Url(ServerUrl {
        url: "https://user:pass@docs.example.com/mcp?key=s".to_owned(),
        headers: vec![("Authorization".to_owned(), "Bearer docs-token".to_owned())],
    });
    let with_watch = |server: ServerSettings| ServerSettings {
        watch: watch(),
        timeouts: timeouts(),
        ..server
    };
    vec![
        ServerSettings {
            name: "github".to_owned(),
            endpoint: github,
            start: StartMode::Lazy,
            protocol: ProtocolChoice::Handshake,
            sessions: SessionSharing::Shared,
            concurrency: number(7),
            principal_concurrency: Some(number(4)),
            max_links: number(3),
            timeouts: Timeouts {
                connect: seconds(1),
                start: seconds(120),
                request: seconds(3),
                idle: seconds(4),
                list: seconds(5),
            },
            restart: RestartSettings {
                first: seconds(1),
                max_delay: seconds(2),
            },
            breaker: BreakerSettings {
                failures: number(2),
                pause: seconds(60),
            },
            limits: ServerLimits {
                message_bytes: 1 << 20,
                list_bytes: 2 << 20,
                list_entries: number(3),
                list_pages: number(4),
                messages_per_minute: number(5),
                bytes_per_minute: 6 << 20,
                open_requests: number(7),
            },
            watch: WatchSettings {
                trust: TrustMode::Review,
                check_interval: seconds(60),
                max_age_before_call: None,
                on_drift: drift(&[
                    (ChangeClass::Widened, OnDrift::Hide),
                    (ChangeClass::Behavioural, OnDrift::Serve),
                ]),
                ..watch()
            },
            scope: None,
            calls: Vec::new(),
            tool_defaults: Some(json!({"group": ["code"], "rate_limit": 5})),
        },
        ServerSettings {
            watch: WatchSettings {
                on_drift: ChangeClass::ALL
                    .map(|class| match class {
                        ChangeClass::Equivalent => (class, OnDrift::Serve),
                        _ => (class, OnDrift::BlockServer),
                    })
                    .into(),
                ..watch()
            },
            timeouts: timeouts(),
            ..ServerSettings::new("docs", docs)
        },
        with_watch(ServerSettings::new(
            "time",
            command("uvx", &["mcp-server-time"]),
        )),
        with_watch(ServerSettings::new(
            "plain",
            Endpoint::url("http://localhost:9/mcp").unwrap(),
        )),
        ServerSettings {
            scope: Some("staff".to_owned()),
            calls: vec![
                SampleCall {
                    tool: "search".to_owned(),
                    arguments: json!({"q": "$$5 ${NOT_SET}"}),
                },
                SampleCall {
                    tool: "ping".to_owned(),
                    arguments: json!({}),
                },
            ],
            ..with_watch(ServerSettings::new(
                "called",
                Endpoint::url("http://localhost:9/mcp").unwrap(),
            ))
        },
        with_watch(ServerSettings::new(
            "memory",
            command("C:/Program Files/x.exe", &[]),
        )),
    ]
}

fn identity() -> IdentitySettings {
    let issuer = JwtSettings {
        issuer: None,
        audience: "a".to_owned(),
        keys: JwtKeys::Discovery,
        principal_claim: "sub".to_owned(),
        principal_prefix: String::new(),
        scopes: Vec::new(),
        leeway: seconds(60),
        roles: None,
        refresh: seconds(600),
        max_stale: seconds(3600),
    };
    let pem = "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----";
    IdentitySettings {
        api_keys: vec![
            ApiKeySettings {
                principal: "ci".to_owned(),
                sha256: "1c152413d3c214f006002104ff57469658d5c5869277da67f6348aeb217d9593"
                    .to_owned(),
            },
            ApiKeySettings {
                principal: "ops".to_owned(),
                sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
                    .to_owned(),
            },
        ],
        jwt: vec![
            JwtSettings {
                issuer: Some("https://id.example.com".to_owned()),
                audience: "tools".to_owned(),
                ..issuer.clone()
            },
            JwtSettings {
                keys: JwtKeys::Secret("0123456789abcdef0123456789abcdef".to_owned()),
                principal_claim: "email".to_owned(),
                principal_prefix: "u:".to_owned(),
                scopes: texts(["x", "y"]),
                leeway: seconds(5),
                ..issuer.clone()
            },
            JwtSettings {
                keys: JwtKeys::Jwks("https://id.example.com/keys".to_owned()),
                principal_prefix: "k:".to_owned(),
                refresh: seconds(60),
                max_stale: seconds(300),
                roles: Some(RoleClaim {
                    claim: "groups".to_owned(),
                    map: BTreeMap::from([
                        ("boss".to_owned(), texts(["chief"])),
                        ("staff".to_owned(), texts(["clerk", "reader"])),
                    ]),
                }),
                ..issuer.clone()
            },
            JwtSettings {
                keys: JwtKeys::PublicKey(pem.to_owned()),
                principal_prefix: "p:".to_owned(),
                ..issuer
            },
        ],
        certificates: vec![CertificateSettings {
            subject: "*".to_owned(),
            principal: "cert:*".to_owned(),
        }],
        anonymous: Some("guest".to_owned()),
        admins: vec![AdminSettings::named("ops"), AdminSettings::named("u:root")],
    }
}

fn alerts() -> Vec<AlertTarget> {
    let target = |name: &str, least, channel| AlertTarget {
        name: name.to_owned(),
        channel,
        min_severity: least,
    };
    let url = |url: &str| url.to_owned();
    vec![
        target(
            "hook",
            Severity::Info,
            AlertChannel::Webhook {
                url: url("https://h.example.com/in"),
                secret: Some("hook-secret".to_owned()),
            },
        ),
        target(
            "oncall",
            Severity::Breaking,
            AlertChannel::Slack {
                url: url("https://hooks.slack.com/services/T0/B0/slack-secret"),
            },
        ),
        target(
            "feishu",
            Severity::Info,
            AlertChannel::Feishu {
                url: url("https://open.feishu.cn/hook/f"),
                secret: Some("f".to_owned()),
            },
        ),
        target(
            "ding",
            Severity::Warning,
            AlertChannel::DingTalk {
                url: url("https://oapi.dingtalk.com/robot/send?access_token=d"),
                secret: None,
            },
        ),
        target(
            "wecom",
            Severity::Info,
            AlertChannel::WeCom {
                url: url("https://qyapi.weixin.qq.com/send?key=w"),
            },
        ),
        target(
            "mail",
            Severity::Info,
            AlertChannel::Smtp {
                server: "mail.example.com:587".to_owned(),
                security: SmtpSecurity::StartTls,
                credentials: Some(("u".to_owned(), "mail-password".to_owned())),
                from: "a@b.c".to_owned(),
                to: texts(["d@e.f"]),
            },
        ),
        target(
            "local",
            Severity::Info,
            AlertChannel::Smtp {
                server: "localhost:1025".to_owned(),
                security: SmtpSecurity::None,
                credentials: None,
                from: "a@b.c".to_owned(),
                to: texts(["d@e.f"]),
            },
        ),
    ]
}

#[test]
fn every_key_is_read() {
    let expected = Settings {
        listen: ListenSettings {
            address: "0.0.0.0:9000".parse().unwrap(),
            tls: Some(TlsSettings {
                certificate: PathBuf::from("etc/tls/cert.pem"),
                key: PathBuf::from("/etc/tls/key.pem"),
                client_ca: Some(PathBuf::from("etc/tls/ca.pem")),
            }),
            public_url: Some("https://tools.example.com".to_owned()),
            hosts: texts(["tools.example.com"]),
            origins: texts(["https://console.example.com"]),
            body_bytes: 16 << 20,
            batch: number(5),
            limits: ListenLimits {
                connections: number(100),
                per_address: number(50),
                per_principal: number(30),
                unauthenticated: number(20),
                unauthenticated_per_address: number(10),
                authenticate_within: seconds(3),
                idle: seconds(30),
                body_within: seconds(5),
            },
        },
        servers: servers(),
        file_servers: vec![FileServer {
            name: "listed".to_owned(),
            files: vec![PathBuf::from("etc/lists/tools.json")],
            scope: Some("staff".to_owned()),
            watch: watch(),
        }],
        prefix: PrefixMode::Conflict,
        separator: "-".to_owned(),
        client_attributes: texts(["region", "cost-center"]),
        page_size: Some(number(100)),
        policy: PolicySource::Inline(
            r#"{"principals":{"ci":{"groups":["default"]}},"tools":{"t":{"input_schema":{"properties":{"a":{"pattern":"^[$${x}]$"}}}}}}"#
                .to_owned(),
        ),
        denials: DenialForm::RpcError,
        store: PathBuf::from("etc/data/warden.db"),
        store_quota: 1 << 30,
        identity: identity(),
        watch: watch(),
        timeouts: timeouts(),
        alerts: alerts(),
        misuse: MisuseRules {
            escalations: 2,
            foreign_sessions: 0,
            denials: 4,
            new_groups_after: 5,
            window: seconds(60),
            alert_interval: seconds(7200),
        },
        session_idle: seconds(3600),
        session_limits: SessionLimits {
            requests: number(8),
            subscriptions: number(9),
            in_flight_bytes: 2 << 20,
            replay_bytes: 1 << 20,
        },
        drain: seconds(3),
        traces: Some(TraceSettings {
            endpoint: "http://collector:4318".to_owned(),
            permille: 250,
        }),
    };
    assert_eq!(read(FULL), expected);
}

#[test]
fn without_a_word_the_defaults_hold() {
    let expected = Settings {
        store: PathBuf::from("etc/toolwarden.db"),
        ..Settings::default()
    };
    assert_eq!(read("{}"), expected);
    let loaded = load("servers: {a: x}").unwrap();
    let server = ServerSettings::new("a", command("x", &[]));
    assert_eq!(loaded.settings.servers, [server]);
}

#[test]
fn a_policy_need_not_name_tools() {
    let settings = read("policy: {roles: {}}");
    let inline = r#"{"roles":{},"tools":{}}"#.to_owned();
    assert_eq!(settings.policy, PolicySource::Inline(inline));
    let settings = read("policy: p/policy.yaml");
    assert_eq!(
        settings.policy,
        PolicySource::File("etc/p/policy.yaml".into())
    );
}

#[test]
fn shares_are_thousandths() {
    let cases = [
        ("0", 0),
        ("1", 1000),
        ("0.1", 100),
        ("0.0004", 0),
        ("0.0006", 1),
        ("0.999", 999),
    ];
    for (sample, permille) in cases {
        let settings = read(&format!("traces: {{otlp: http://c, sample: {sample}}}"));
        let traces = settings.traces.map(|it| it.permille);
        assert_eq!(traces, Some(permille), "{sample}");
    }
    let traces = read("traces: http://c").traces.map(|it| it.permille);
    assert_eq!(traces, Some(1000));
}

#[test]
fn addresses_to_listen_on() {
    let cases = [
        ("localhost:1", "127.0.0.1:1"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("\"[::1]:8700\"", "[::1]:8700"),
        ("{address: 0.0.0.0:2}", "0.0.0.0:2"),
    ];
    for (written, address) in cases {
        let listen = read(&format!("listen: {written}")).listen;
        assert_eq!(listen.address.to_string(), address, "{written}");
    }
}

#[test]
fn the_limits_of_a_server() {
    let settings =
        read("servers: {a: {command: x, timeouts: {start: 5m, request: 10m, connect: 3s}}}");
    let [server] = settings.servers.as_slice() else {
        panic!("not one server");
    };
    let expected = ConnectionLimits {
        connect: seconds(3),
        start: seconds(300),
        request: seconds(600),
        total: seconds(900),
        ..ConnectionLimits::default()
    };
    assert_eq!(format!("{:?}", server.limits()), format!("{expected:?}"));
}

#[test]
fn surprising_settings_give_warnings() {
    let told = |text: &str| {
        let warnings = load(text).unwrap().warnings.into_iter();
        let lines = warnings.map(|it| format!("{}:{}: {it}", it.position.line, it.position.column));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        told("{}"),
        ["1:1: /: there are no servers, so the gateway offers nothing"]
    );
    let text = "
listen: 0.0.0.0:1
mcpServers:
  a: {command: x, headers: {a: b}, timeout: 5, envFile: .env}
policy: {tools: {t: {group: []}}}
identity: {anonymous: guest, api_keys: [{principal: p, key: short}], admins: [p, guset]}
";
    assert_eq!(
        told(text),
        [
            "5:22: /policy/tools/t/group: the list of groups is empty: only a request for `*` reaches the tool",
            "4:48: /mcpServers/a/envFile: this key of a client is ignored",
            "4:36: /mcpServers/a/timeout: this key of a client is ignored",
            "4:19: /mcpServers/a/headers: ignored because `command` is set",
            "6:56: /identity/api_keys/0/key: a key of less than 20 characters can be guessed",
            "6:82: /identity/admins/1: no credential of these settings names the administrator `guset`; give it a key \
             (`toolwarden key new --principal guset`) under `identity.api_keys`",
            "2:1: /listen: other machines can reach this address, and traffic is not encrypted: set `tls`, or put \
             a TLS proxy in front of it",
            "6:1: /identity: other machines can reach this address, and callers need no credentials",
        ]
    );
}

#[test]
fn files_are_read_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolwarden.yaml");
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    std::fs::write(folder.path().join("secrets/docs"), "s3cret\n").unwrap();
    let text = r#"{"servers": {"docs": {"url": "https://d/mcp",
        "headers": {"Authorization": "Bearer ${file:secrets/docs}"}}}, "policy": "policy.yaml"}"#;
    std::fs::write(&path, text).unwrap();
    let loaded = Settings::read(&path).unwrap();
    let Endpoint::Url(url) = &loaded.settings.servers[0].endpoint else {
        panic!("no address");
    };
    assert_eq!(
        url.headers,
        [("Authorization".to_owned(), "Bearer s3cret".to_owned())]
    );
    let in_folder = |name: &str| folder.path().join(name);
    assert_eq!(
        loaded.files,
        [
            path.clone(),
            in_folder("policy.yaml"),
            in_folder("secrets/docs")
        ]
    );
    assert_eq!(loaded.path, path);

    let none = Settings::read(Path::new("no/such.yaml")).unwrap_err();
    assert_eq!(none.to_string(), "cannot read no/such.yaml");
    std::fs::write(&path, [b'a', 0xff]).unwrap();
    let told = Settings::read(&path).unwrap_err().to_string();
    assert!(told.starts_with(&format!("{}: ", path.display())), "{told}");
}
