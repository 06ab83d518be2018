use super::super::key_table::{KeyTable, SettingsField, ValueKind, field};
use super::super::{ProtocolChoice, SessionSharing, StartMode};
use super::{SERVER_LIMITS, TRUST, WATCH, words};

/// The transport of a server, as clients write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ClientTransport {
    Command,
    Url,
}

pub(in super::super) const TYPE: &[(&str, ClientTransport)] = &[
    ("stdio", ClientTransport::Command),
    ("http", ClientTransport::Url),
    ("sse", ClientTransport::Url),
    ("streamable-http", ClientTransport::Url),
    ("streamable_http", ClientTransport::Url),
    ("streamableHttp", ClientTransport::Url),
];
pub(in super::super) const START: &[(&str, StartMode)] =
    &[("eager", StartMode::Eager), ("lazy", StartMode::Lazy)];
pub(in super::super) const PROTOCOL: &[(&str, ProtocolChoice)] = &[
    ("auto", ProtocolChoice::Auto),
    ("handshake", ProtocolChoice::Handshake),
    ("stateless", ProtocolChoice::Stateless),
];
pub(in super::super) const SHARING: &[(&str, SessionSharing)] = &[
    ("isolated", SessionSharing::Isolated),
    ("shared", SessionSharing::Shared),
];

const FIELDS: &[SettingsField] = &[
    field("type", ValueKind::OneOf(|| words(TYPE)), "The transport, as MCP clients write it; `command` and `url` imply it."),
    field("command", ValueKind::Text, "The program to start. Without `args` it may be a whole command line; no shell runs \
             it."),
    field("args", ValueKind::List(&ValueKind::Scalar), "The arguments of the program."),
    field("env", ValueKind::Map(&ValueKind::SecretScalar, None), "Variables added to the environment of the program."),
    field(
        "inherit_env",
        ValueKind::TextList,
        "Names of further environment variables that the program inherits from the gateway. By \
         default it inherits `PATH`, `HOME`, the locale and a few others, and no variable that may \
         hold the secret of another server; `*` passes all.",
    ),
    field("cwd", ValueKind::Text, "The working folder of the program. Without it, that of the gateway."),
    field("url", ValueKind::Address, "The address of the server."),
    field("headers", ValueKind::Map(&ValueKind::SecretScalar, None), "Headers of every request to the address."),
    field(
        "files",
        ValueKind::TextList,
        "Files with the list of tools, written by another program. Only `toolwarden watch` checks such a \
         server; the gateway does not offer it.",
    ),
    field(
        "calls",
        ValueKind::List(&CALL_ENTRY),
        "Calls that `toolwarden watch` makes at every check, to compare their results with earlier ones.",
    ),
    field(
        "scope",
        ValueKind::Text,
        "The scope in which `toolwarden watch` pins the tools of the server; by default `default`.",
    ),
    field("disabled", ValueKind::Boolean, "Whether to ignore the server.").default("false"),
    field("start", ValueKind::OneOf(|| words(START)), "Whether to start it with the gateway or on first use.").default("\"eager\""),
    field(
        "protocol",
        ValueKind::OneOf(|| words(PROTOCOL)),
        "The MCP era for this server: `auto` follows the agent if the server supports both, \
         `handshake` is 2024-11-05 to 2025-11-25, `stateless` is 2026-07-28.",
    )
    .default("\"auto\""),
    field(
        "sessions",
        ValueKind::OneOf(|| words(SHARING)),
        "Whether every conversation has its own connection, or all share one: then the server is declared \
         stateless.",
    )
    .default("\"isolated\""),
    field("concurrency", ValueKind::Count, "The maximum number of concurrent requests.").default("64"),
    field(
        "principal_concurrency",
        ValueKind::Count,
        "The maximum number of concurrent requests of one principal. Without it, three quarters of \
         `concurrency`, so that no principal can use all of it.",
    ),
    field(
        "max_links",
        ValueKind::Count,
        "The maximum number of connections or child processes; by default 256 for an address, 32 for \
         a program.",
    ),
    field("timeouts", ValueKind::Section(&TIMEOUTS), "Timeouts that differ from the defaults.").inherits(),
    field("restart", ValueKind::Section(&RESTART), "How to restart it after a failure.").default("{}"),
    field("breaker", ValueKind::Section(&BREAKER), "When to stop sending requests to it for a while.").default("{}"),
    field("limits", ValueKind::Section(&SERVER_LIMITS), "How much it may send.").default("{}"),
    field(
        "trust",
        ValueKind::OneOf(|| words(TRUST)),
        "How to treat the tools of a new server: `first-use` pins and serves them, `review` serves \
         nothing of it until its tools are approved.",
    )
    .default("\"first-use\""),
    field("watch", ValueKind::Section(&WATCH), "Watch settings that differ from the defaults.").inherits(),
    field(
        "tool_defaults",
        ValueKind::Policy,
        "The rules for its tools, resources, prompts and skills that the policy does not name, with \
         the keys of a tool in a policy.",
    ),
];

pub(in super::super) static SERVER: KeyTable = KeyTable::new(
    "server",
    "A server behind the gateway or under watch.",
    FIELDS,
)
.or_text("An address, or a command line.")
.with_one_of(&["command", "url", "files"]);

pub(in super::super) static CLIENT_SERVER: KeyTable =
    KeyTable::new("client_server", "A server as clients write it.", FIELDS)
        .ignoring(&[
            client("always_allow", &["alwaysAllow"]),
            client("auto_approve", &["autoApprove"]),
            client("description", &[]),
            client("disabled_tools", &["disabledTools"]),
            client("env_file", &["envFile"]),
            client("exclude_tools", &["excludeTools"]),
            client("gallery", &[]),
            client("include_tools", &["includeTools"]),
            client("oauth", &[]),
            client("timeout", &[]),
            client("tools", &[]),
            client("trust", &[]),
            client("version", &[]),
        ])
        .with_one_of(&["command", "url", "files"]);

static CALL_ENTRY: ValueKind = ValueKind::Section(&CALL);

pub(in super::super) static CALL: KeyTable = KeyTable::new(
    "call",
    "A call that shows what a tool returns.",
    &[
        field("tool", ValueKind::Text, "The tool, as the server names it.").required(),
        field(
            "arguments",
            ValueKind::Object,
            "The arguments of the call, as they are: references are not expanded in them.",
        )
        .default("{}"),
    ],
);

const fn client(name: &'static str, others: &'static [&'static str]) -> SettingsField {
    field(name, ValueKind::Any, "Ignored by the gateway.").aliases(others)
}

pub(in super::super) static TIMEOUTS: KeyTable = KeyTable::new(
    "timeouts",
    "Timeouts for a server.",
    &[
        field("connect", ValueKind::Duration, "To open a connection.").default("\"10s\""),
        field(
            "start",
            ValueKind::Duration,
            "To start, up to its first response; `npx` and `uvx` may download it first.",
        )
        .default("\"60s\""),
        field(
            "request",
            ValueKind::Duration,
            "To answer a request; progress restarts the timeout.",
        )
        .default("\"60s\""),
        field(
            "idle",
            ValueKind::Duration,
            "How long to keep an idle connection of a conversation.",
        )
        .default("\"5m\""),
        field(
            "list",
            ValueKind::Duration,
            "How long a list waits for the server before the gateway sends it without the \
             server's tools.",
        )
        .default("\"10s\""),
    ],
);

pub(in super::super) static RESTART: KeyTable = KeyTable::new(
    "restart",
    "How to restart a server after a failure: with exponential backoff, from the first \
     delay to the longest.",
    &[
        field("first", ValueKind::Duration, "The first delay.").default("\"500ms\""),
        field("most", ValueKind::Duration, "The longest delay.").default("\"60s\""),
    ],
);

pub(in super::super) static BREAKER: KeyTable = KeyTable::new(
    "breaker",
    "When to stop sending requests to a server for a while.",
    &[
        field(
            "failures",
            ValueKind::Count,
            "The number of consecutive failures that opens the circuit breaker.",
        )
        .default("5"),
        field(
            "pause",
            ValueKind::Duration,
            "How long the circuit breaker stays open.",
        )
        .default("\"30s\""),
    ],
);

/// Whether a key of the root holds servers, in any of its spellings.
pub(in super::super) fn is_server_list(key: &str) -> bool {
    matches!(
        key,
        "servers" | "mcpServers" | "mcp_servers" | "mcp-servers"
    )
}
