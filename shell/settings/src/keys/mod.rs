//! Every key of the settings, with the kind of its value, its description and its default.

mod limits;
mod server;

use toolwarden_drift::{ToolwatchChangeType, ToolwatchSeverity};
use toolwarden_guard::OutputMode;
use toolwarden_model::Severity;

use super::key_table::{KeyTable, SettingsField, ValueKind, field};
use super::{DenialForm, OnDrift, PrefixMode, SmtpSecurity, TrustMode};

pub(super) use limits::{SERVER_LIMITS, SESSIONS};
pub(super) use server::{
    BREAKER, CALL, CLIENT_SERVER, ClientTransport, PROTOCOL, RESTART, SERVER, SHARING, START,
    TIMEOUTS, TYPE, is_server_list,
};

pub(super) const PREFIX: &[(&str, PrefixMode)] = &[
    ("always", PrefixMode::Always),
    ("conflict", PrefixMode::Conflict),
    ("never", PrefixMode::Never),
];
pub(super) const DENIALS: &[(&str, DenialForm)] = &[
    ("tool-error", DenialForm::ToolError),
    ("rpc-error", DenialForm::RpcError),
];
pub(super) const ACTIONS: &[(&str, OnDrift)] = &[
    ("serve", OnDrift::Serve),
    ("hide", OnDrift::Hide),
    ("quarantine", OnDrift::Quarantine),
    ("block-server", OnDrift::BlockServer),
];
pub(super) const CHANGE_TYPES: &[(&str, ToolwatchChangeType)] = &[
    (
        ToolwatchChangeType::Schema.as_str(),
        ToolwatchChangeType::Schema,
    ),
    (
        ToolwatchChangeType::Behavior.as_str(),
        ToolwatchChangeType::Behavior,
    ),
    (
        ToolwatchChangeType::Response.as_str(),
        ToolwatchChangeType::Response,
    ),
];
pub(super) const OUTPUT: &[(&str, OutputMode)] = &[
    ("off", OutputMode::Off),
    ("warn", OutputMode::Warn),
    ("report", OutputMode::Warn),
    ("enforce", OutputMode::Enforce),
];
pub(super) const SEVERITY: &[(&str, Severity)] = &[
    (ToolwatchSeverity::Low.as_str(), Severity::Info),
    (ToolwatchSeverity::Medium.as_str(), Severity::Warning),
    (ToolwatchSeverity::High.as_str(), Severity::Breaking),
];
pub(super) const SMTP_SECURITY: &[(&str, SmtpSecurity)] = &[
    ("none", SmtpSecurity::None),
    ("starttls", SmtpSecurity::StartTls),
    ("tls", SmtpSecurity::Tls),
];
pub(super) const TRUST: &[(&str, TrustMode)] = &[
    ("first-use", TrustMode::FirstUse),
    ("review", TrustMode::Review),
];
/// The word that turns a check or a rule off.
pub(super) const NEVER: &[(&str, ())] = &[("never", ())];

pub(super) static ROOT: KeyTable = KeyTable::new(
    "settings",
    "The settings of Toolwarden: of the gateway, and of the commands under `watch`. Texts may refer to environment variables (`${NAME}`, \
     `${NAME:-default}`) and to files (`${file:path}`); write `$$` for a dollar sign. Relative paths \
     start at the folder of the file.",
    &[
        field(
            "$schema",
            ValueKind::Text,
            "The JSON Schema of this file, for editors.",
        ),
        field("version", ValueKind::Version, "The version of the format."),
        field(
            "listen",
            ValueKind::Section(&LISTEN),
            "The address the gateway listens on, and the requests it accepts.",
        )
        .default("{}"),
        field(
            "store",
            ValueKind::Text,
            "The database file with pins, alerts and the audit log.",
        )
        .default("\"toolwarden.db\""),
        field(
            "store_quota",
            ValueKind::Size,
            "The maximum size of the store. From 90% on the gateway warns; at 100% it records \
             nothing more and denies calls as the policy says.",
        )
        .default("\"10GiB\""),
        field(
            "servers",
            ValueKind::Map(&ValueKind::Section(&SERVER), Some("^[A-Za-z0-9_-]{1,64}$")),
            "The servers behind the gateway and under watch, by name: letters, digits, `-` and `_`.",
        ),
        field(
            "mcp_servers",
            ValueKind::Map(
                &ValueKind::Section(&CLIENT_SERVER),
                Some("^[A-Za-z0-9_-]{1,64}$"),
            ),
            "The `mcpServers` block of an MCP client, pasted unchanged.",
        )
        .aliases(&["mcpServers"]),
        field(
            "prefix",
            ValueKind::OneOf(|| words(PREFIX)),
            "When names get their server's name as a prefix: always, on conflict, or never.",
        )
        .default("\"always\""),
        field(
            "separator",
            ValueKind::Text,
            "The separator between a server's name and a tool's name.",
        )
        .default("\"__\""),
        field(
            "client_attributes",
            ValueKind::TextList,
            "The request attributes that clients may set through `_meta` or a header, for conditions \
             on `request`. A client can set any value, so do not trust them.",
        ),
        field(
            "page_size",
            ValueKind::Count,
            "The maximum number of tools on one page of a list. Without it, lists have a single \
             page.",
        ),
        field(
            "policy",
            ValueKind::Either(&[ValueKind::Text, ValueKind::Policy]),
            "The policy: a policy file, or the policy itself. References are not expanded inside \
             policies. Without it, any authenticated caller may call every tool.",
        ),
        field(
            "denials",
            ValueKind::OneOf(|| words(DENIALS)),
            "How the gateway reports denials: as a tool result, which the model reads, or as a \
             protocol error.",
        )
        .default("\"tool-error\""),
        field(
            "identity",
            ValueKind::Section(&IDENTITY),
            "How callers authenticate. Without it, the gateway rejects every caller.",
        )
        .default("{}"),
        field(
            "watch",
            ValueKind::Section(&WATCH),
            "How definitions and results are watched.",
        )
        .default("{}"),
        field(
            "timeouts",
            ValueKind::Section(&TIMEOUTS),
            "Default timeouts for all servers.",
        )
        .default("{}"),
        field(
            "alerts",
            ValueKind::Map(&ValueKind::Section(&ALERT), None),
            "The alert destinations, by name.",
        ),
        field(
            "misuse",
            ValueKind::Section(&MISUSE),
            "When the behaviour of a principal raises an alert.",
        )
        .default("{}"),
        field(
            "sessions",
            ValueKind::Section(&SESSIONS),
            "Lifetime and limits of conversations.",
        )
        .default("{}"),
        field(
            "drain",
            ValueKind::Duration,
            "How long calls in flight may take after SIGTERM.",
        )
        .default("\"10s\""),
        field(
            "traces",
            ValueKind::Section(&TRACES),
            "Where to send traces.",
        ),
    ],
);

pub(super) static LISTEN: KeyTable = KeyTable::new(
    "listen",
    "The address the gateway listens on, and the requests it accepts.",
    &[
        field(
            "address",
            ValueKind::Text,
            "Address and port; port 0 takes a free one.",
        )
        .default("\"127.0.0.1:8700\""),
        field(
            "tls",
            ValueKind::Section(&TLS),
            "The certificate and key for TLS.",
        ),
        field(
            "public_url",
            ValueKind::Address,
            "The URL under which agents reach the gateway. Without it, the gateway uses their \
             `Host` header.",
        ),
        field(
            "hosts",
            ValueKind::TextList,
            "Additional accepted values of `Host`; loopback names and the listening address are \
             always accepted.",
        ),
        field(
            "origins",
            ValueKind::TextList,
            "Accepted values of `Origin`. Requests without one are always accepted, and so are \
             loopback origins on a loopback address.",
        ),
        field(
            "max_body",
            ValueKind::Size,
            "The maximum size of a message from an agent.",
        )
        .default("\"8MiB\""),
        field(
            "max_batch",
            ValueKind::Count,
            "The maximum number of messages in one batch.",
        )
        .default("100"),
        field("limits", ValueKind::Section(&LIMITS), "Connection limits.").default("{}"),
    ],
)
.or_text("The address alone.");

pub(super) static LIMITS: KeyTable = KeyTable::new(
    "limits",
    "Connection limits. A connection counts as authenticated after one of its requests was \
     authenticated. Changes take effect after a restart, except for `body_within`.",
    &[
        field(
            "connections",
            ValueKind::Count,
            "The maximum number of concurrent connections; lower if the system allows fewer file \
             descriptors.",
        )
        .default("16384"),
        field(
            "per_address",
            ValueKind::Count,
            "The maximum number of concurrent connections from one address.",
        )
        .default("8192"),
        field(
            "per_principal",
            ValueKind::Count,
            "The maximum number of concurrent connections of one principal, and at most half of \
             all; on further connections the gateway answers 503.",
        )
        .default("4096"),
        field(
            "unauthenticated",
            ValueKind::Count,
            "The maximum number of concurrent unauthenticated connections; a new one closes the \
             oldest.",
        )
        .default("1024"),
        field(
            "unauthenticated_per_address",
            ValueKind::Count,
            "The maximum number of unauthenticated connections from one address; a new one closes \
             the oldest of that address.",
        )
        .default("512"),
        field(
            "authenticate_within",
            ValueKind::Duration,
            "How long a connection may take to authenticate.",
        )
        .default("\"10s\""),
        field(
            "idle",
            ValueKind::Duration,
            "How long an authenticated connection may be idle between requests.",
        )
        .default("\"2m\""),
        field(
            "body_within",
            ValueKind::Duration,
            "How long the body of a request may take.",
        )
        .default("\"30s\""),
    ],
);

pub(super) static TLS: KeyTable = KeyTable::new(
    "tls",
    "The TLS certificate of the gateway.",
    &[
        field(
            "certificate",
            ValueKind::Text,
            "The PEM file of the certificate chain.",
        )
        .required(),
        field("key", ValueKind::Text, "The PEM file of its private key.").required(),
        field(
            "client_ca",
            ValueKind::Text,
            "The PEM file of the authorities that issue client certificates for principals.",
        ),
    ],
);

pub(super) static IDENTITY: KeyTable = KeyTable::new(
    "identity",
    "How callers authenticate.",
    &[
        field(
            "api_keys",
            ValueKind::List(&ValueKind::Section(&API_KEY)),
            "API keys.",
        ),
        field(
            "jwt",
            ValueKind::List(&ValueKind::Section(&JWT)),
            "Token issuers.",
        ),
        field(
            "certificates",
            ValueKind::List(&ValueKind::Section(&CERTIFICATE)),
            "Client certificates; requires `listen.tls.client_ca`.",
        ),
        field(
            "anonymous",
            ValueKind::Text,
            "The principal of callers without credentials. Without this key, the gateway rejects \
             them.",
        ),
        field(
            "admins",
            ValueKind::Either(&[
                ValueKind::Text,
                ValueKind::List(&ValueKind::Either(&[
                    ValueKind::Text,
                    ValueKind::Section(&ADMIN),
                ])),
            ]),
            "The principals that may use the administrative part of the API. A plain name must \
             belong to exactly one source of callers.",
        ),
    ],
);

pub(super) static ADMIN: KeyTable = KeyTable::new(
    "admin",
    "An administrator, with the issuer whose tokens name it.",
    &[
        field(
            "principal",
            ValueKind::Text,
            "The principal, including its prefix.",
        )
        .required(),
        field(
            "issuer",
            ValueKind::Address,
            "The `issuer` of an entry of `identity.jwt`.",
        ),
    ],
);

pub(super) static ROLE_CLAIM: KeyTable = KeyTable::new(
    "roles",
    "The token claim that assigns roles of the policy. Principals that the policy names keep their \
     own entry.",
    &[
        field(
            "claim",
            ValueKind::Text,
            "The claim: its name, or a JSON pointer such as `/realm_access/roles`. A text is \
             split at spaces.",
        )
        .required(),
        field(
            "map",
            ValueKind::Map(&ValueKind::TextList, None),
            "The role or roles of the policy that each value assigns; other values assign none.",
        )
        .required(),
    ],
);

pub(super) static API_KEY: KeyTable = KeyTable::new(
    "api_key",
    "An API key.",
    &[
        field("principal", ValueKind::Text, "The principal.").required(),
        field(
            "sha256",
            ValueKind::Text,
            "The SHA-256 digest of the key, in hexadecimal digits.",
        ),
        field(
            "key",
            ValueKind::Secret,
            "The key itself; use a reference such as `${CI_KEY}`. The gateway stores only its \
             digest.",
        ),
    ],
)
.with_one_of(&["sha256", "key"]);

pub(super) static JWT: KeyTable = KeyTable::new(
    "jwt",
    "A token issuer. Without `secret`, `public_key` and `jwks`, the gateway takes the keys from the \
     issuer's OpenID configuration.",
    &[
        field("issuer", ValueKind::Address, "The required value of `iss`."),
        field(
            "audience",
            ValueKind::Text,
            "The value that `aud` must contain.",
        )
        .required(),
        field(
            "secret",
            ValueKind::Secret,
            "The shared secret of HS256, HS384 and HS512: at least 32, 48 and 64 bytes.",
        ),
        field(
            "public_key",
            ValueKind::Text,
            "The public key, PEM, as in `${file:issuer.pem}`.",
        ),
        field(
            "jwks",
            ValueKind::Address,
            "The address of a key set: https, or http on loopback.",
        ),
        field(
            "principal_claim",
            ValueKind::Text,
            "The claim that names the principal.",
        )
        .default("\"sub\""),
        field(
            "principal_prefix",
            ValueKind::Text,
            "The prefix of the principal, before the claim's value. Issuers with different names \
             need different prefixes.",
        )
        .default("\"\""),
        field(
            "scopes",
            ValueKind::TextList,
            "The scopes that a token must have.",
        ),
        field(
            "leeway",
            ValueKind::Duration,
            "The tolerated clock difference.",
        )
        .default("\"60s\""),
        field(
            "roles",
            ValueKind::Section(&ROLE_CLAIM),
            "The claim that assigns roles of the policy.",
        ),
        field(
            "refresh",
            ValueKind::Duration,
            "How often to refresh the key set. A removed key stops working within this time.",
        )
        .default("\"10m\""),
        field(
            "max_stale",
            ValueKind::Duration,
            "How long the last key set is used while no newer one can be fetched.",
        )
        .default("\"1h\""),
    ],
);

pub(super) static CERTIFICATE: KeyTable = KeyTable::new(
    "certificate",
    "A client certificate and its principal.",
    &[
        field(
            "subject",
            ValueKind::Text,
            "The common name, or `*` for any.",
        )
        .required(),
        field(
            "principal",
            ValueKind::Text,
            "The principal; `*` in it stands for the common name.",
        )
        .required(),
    ],
);

const fn threshold(
    name: &'static str,
    about: &'static str,
    default: &'static str,
) -> SettingsField {
    field(
        name,
        ValueKind::Either(&[ValueKind::Count, ValueKind::OneOf(|| words(NEVER))]),
        about,
    )
    .default(default)
}

pub(super) static MISUSE: KeyTable = KeyTable::new(
    "misuse",
    "When the behaviour of a principal raises an alert. `never` turns a rule off.",
    &[
        threshold(
            "escalations",
            "The number of requests within the window for more than the principal is granted: \
             groups, states, sessions of others.",
            "5",
        ),
        threshold(
            "foreign_sessions",
            "The number of requests within the window with the session of another principal.",
            "3",
        ),
        threshold(
            "denials",
            "The number of denied calls within the window.",
            "30",
        ),
        threshold(
            "new_groups_after",
            "The number of requests with groups after which a group that the principal never \
             requested before raises an alert.",
            "20",
        ),
        field("window", ValueKind::Duration, "The length of the window.").default("\"10m\""),
        field(
            "every",
            ValueKind::Duration,
            "The minimum time between two alerts of one rule for one principal.",
        )
        .default("\"1h\""),
    ],
);

pub(super) static WATCH: KeyTable = KeyTable::new(
    "watch",
    "How definitions and results are watched.",
    &[
        field("every", ValueKind::Duration, "How often to check a list.").default("\"5m\""),
        field(
            "on_drift",
            ValueKind::Either(&[ValueKind::OneOf(|| words(ACTIONS)), ValueKind::Section(&ON_DRIFT)]),
            "How to treat a tool whose definition drifted: by class, or one word for every class \
             except `equivalent`.",
        )
        .default("{}"),
        field(
            "on_new",
            ValueKind::OneOf(|| words(ACTIONS)),
            "How to treat a tool that is not in the pinned list.",
        )
        .default("\"quarantine\""),
        field(
            "on_finding",
            ValueKind::OneOf(|| words(ACTIONS)),
            "How to treat a new tool with hidden text, instructions to the model, or text that \
             contradicts its annotations (findings of weight medium or high).",
        )
        .default("\"quarantine\""),
        field(
            "before_call",
            ValueKind::Either(&[ValueKind::Duration, ValueKind::OneOf(|| words(NEVER))]),
            "The maximum age of the last check when a tool is called; if it is older, the gateway \
             checks the list first. With `0s` it checks before every call, with `never` before none.",
        )
        .default("\"never\""),
        field(
            "output",
            ValueKind::OneOf(|| words(OUTPUT)),
            "How to treat results that do not satisfy the output schema: do not check them (`off`), \
             report them (`warn` or `report`), or fail the call (`enforce`).",
        )
        .default("\"warn\""),
        field(
            "strip_hidden",
            ValueKind::Boolean,
            "Whether the gateway removes hidden characters from results and definitions before it \
             sends them to the agent.",
        )
        .default("false"),
        field("shapes", ValueKind::Boolean, "Whether results are compared with the shape of earlier ones.").default("true"),
        field(
            "learn_results",
            ValueKind::Count,
            "The number of results that form the shape of a tool's results.",
        )
        .default("30"),
        field(
            "window",
            ValueKind::Duration,
            "How far back results count as current when they are compared with their shape.",
        )
        .default("\"24h\""),
        field(
            "alert_on",
            ValueKind::List(&ValueKind::OneOf(|| words(CHANGE_TYPES))),
            "The changes that raise alerts: of the definition, of the results, or of both at once. \
             Other drift is still treated as `on_drift` says.",
        )
        .default(r#"["schema_change", "response_change", "behavior_change"]"#),
        field(
            "tools",
            ValueKind::TextList,
            "The only tools that `toolwarden watch` checks. The gateway checks every tool.",
        ),
        field(
            "compare_time",
            ValueKind::Duration,
            "The maximum time to compare one tool with its pin; a comparison that takes longer \
             counts as `unknown`.",
        )
        .default("\"1s\""),
        field(
            "compare_list_time",
            ValueKind::Duration,
            "The maximum time to compare all tools of a list with their pins; the remaining tools \
             count as `unknown`.",
        )
        .default("\"5s\""),
    ],
);

const fn class(name: &'static str, about: &'static str, default: &'static str) -> SettingsField {
    field(name, ValueKind::OneOf(|| words(ACTIONS)), about).default(default)
}

pub(super) static ON_DRIFT: KeyTable = KeyTable::new(
    "on_drift",
    "How to treat a tool whose definition drifted, by its most severe class.",
    &[
        class(
            "equivalent",
            "The same contract in other words.",
            "\"serve\"",
        ),
        class(
            "info",
            "A change without effect: added annotations, spacing.",
            "\"serve\"",
        ),
        class(
            "structural",
            "An output schema was added.",
            "\"quarantine\"",
        ),
        class("widened", "The tool accepts more than before.", "\"serve\""),
        class(
            "behavioural",
            "The same contract, but a call may have a different effect.",
            "\"quarantine\"",
        )
        .aliases(&["behavioral"]),
        class(
            "text",
            "A text that a model reads changed.",
            "\"quarantine\"",
        ),
        class(
            "ignored",
            "The tool still accepts an argument but no longer reads it.",
            "\"quarantine\"",
        ),
        class(
            "unknown",
            "The effect of the change is unknown.",
            "\"quarantine\"",
        ),
        class(
            "trust",
            "The tool asks for less caution, or its text became hostile.",
            "\"quarantine\"",
        ),
        class(
            "breaking",
            "The tool now rejects calls that worked before.",
            "\"quarantine\"",
        ),
    ],
);

pub(super) static ALERT: KeyTable = KeyTable::new(
    "alert",
    "An alert destination.",
    &[
        field(
            "webhook",
            ValueKind::SecretAddress,
            "The URL that receives alerts as JSON.",
        ),
        field(
            "slack",
            ValueKind::SecretAddress,
            "A Slack incoming webhook.",
        ),
        field("feishu", ValueKind::SecretAddress, "A Feishu bot."),
        field("dingtalk", ValueKind::SecretAddress, "A DingTalk robot."),
        field("wecom", ValueKind::SecretAddress, "A WeCom robot."),
        field("smtp", ValueKind::Section(&SMTP), "E-mail."),
        field(
            "secret",
            ValueKind::Secret,
            "The signing secret for `webhook`, `feishu` or `dingtalk`.",
        ),
        field(
            "severity",
            ValueKind::OneOf(|| words(SEVERITY)),
            "The minimum severity.",
        )
        .default("\"low\""),
    ],
)
.with_one_of(&["webhook", "slack", "feishu", "dingtalk", "wecom", "smtp"]);

pub(super) static SMTP: KeyTable = KeyTable::new(
    "smtp",
    "A mail server and its recipients.",
    &[
        field(
            "server",
            ValueKind::Text,
            "Host and port; without a port, the default one.",
        )
        .required(),
        field(
            "security",
            ValueKind::OneOf(|| words(SMTP_SECURITY)),
            "The connection security; `none` is allowed on loopback only.",
        )
        .default("\"starttls\""),
        field("user", ValueKind::Text, "The user name."),
        field("password", ValueKind::Secret, "The password of the user."),
        field("from", ValueKind::Text, "The sender.").required(),
        field("to", ValueKind::TextList, "The recipients.").required(),
    ],
);

pub(super) static TRACES: KeyTable = KeyTable::new(
    "traces",
    "Where to send traces. Needs a build with the feature `otel`.",
    &[
        field("otlp", ValueKind::Address, "The OTLP/HTTP address.").required(),
        field(
            "sample",
            ValueKind::Fraction,
            "The share of calls to trace, from 0 to 1.",
        )
        .default("1"),
    ],
)
.or_text("The address alone.");

/// The words in a list of words and their meanings.
fn words<T>(list: &[(&'static str, T)]) -> Vec<&'static str> {
    list.iter().map(|(word, _)| *word).collect()
}
