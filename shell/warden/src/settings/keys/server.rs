use super::super::table::{Field, Kind, Table, field};
use super::super::{ProtocolChoice, SessionSharing, Start};
use super::{SERVER_LIMITS, TRUST, WATCH, words};

/// How a client says that a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Transport {
    Command,
    Url,
}

pub(in super::super) const TYPE: &[(&str, Transport)] = &[
    ("stdio", Transport::Command),
    ("http", Transport::Url),
    ("sse", Transport::Url),
    ("streamable-http", Transport::Url),
    ("streamable_http", Transport::Url),
    ("streamableHttp", Transport::Url),
];
pub(in super::super) const START: &[(&str, Start)] =
    &[("eager", Start::Eager), ("lazy", Start::Lazy)];
pub(in super::super) const PROTOCOL: &[(&str, ProtocolChoice)] = &[
    ("auto", ProtocolChoice::Auto),
    ("handshake", ProtocolChoice::Handshake),
    ("stateless", ProtocolChoice::Stateless),
];
pub(in super::super) const SHARING: &[(&str, SessionSharing)] = &[
    ("isolated", SessionSharing::Isolated),
    ("shared", SessionSharing::Shared),
];

const FIELDS: &[Field] = &[
    field("type", Kind::Word(|| words(TYPE)), "How it is reached, as clients write it; `command` and `url` say so by themselves."),
    field("command", Kind::Text, "The program to start. Without `args` it may be a whole command line; no shell runs it."),
    field("args", Kind::List(&Kind::Scalar), "The arguments of the program."),
    field("env", Kind::Names(&Kind::SecretScalar, None), "Variables added to the environment of the program."),
    field(
        "inherit_env",
        Kind::Texts,
        "Names of variables of the gateway that the program gets, too. Without them it gets `PATH`, `HOME`, the \
         locale and a few others, and no variable that may hold the secret of another server; `*` passes all.",
    ),
    field("cwd", Kind::Text, "The folder the program starts in. Without it, that of the gateway."),
    field("url", Kind::Address, "The address of the server."),
    field("headers", Kind::Names(&Kind::SecretScalar, None), "Headers of every request to the address."),
    field("disabled", Kind::Truth, "Whether the server is left out.").default("false"),
    field("start", Kind::Word(|| words(START)), "Whether it is started with the gateway, or when somebody needs it.").default("\"eager\""),
    field(
        "protocol",
        Kind::Word(|| words(PROTOCOL)),
        "The era of MCP to speak to it: `auto` follows the agent where the server speaks both, `handshake` \
         is 2024-11-05 to 2025-11-25, `stateless` is 2026-07-28.",
    )
    .default("\"auto\""),
    field(
        "sessions",
        Kind::Word(|| words(SHARING)),
        "Whether every conversation has its own connection, or all share one: then the server is declared \
         stateless.",
    )
    .default("\"isolated\""),
    field("concurrency", Kind::Count, "The most requests under way at a time.").default("64"),
    field(
        "principal_concurrency",
        Kind::Count,
        "The most requests of one principal under way at a time. Without it three quarters of `concurrency`, so \
         that no principal takes all of it.",
    ),
    field(
        "max_links",
        Kind::Count,
        "The most connections or children at a time; 256 for an address, 32 for a program.",
    ),
    field("timeouts", Kind::Section(&TIMEOUTS), "How long it may take, where not as all may.").inherits(),
    field("restart", Kind::Section(&RESTART), "How it is tried again after a failure.").default("{}"),
    field("breaker", Kind::Section(&BREAKER), "When it is left alone for a while.").default("{}"),
    field("limits", Kind::Section(&SERVER_LIMITS), "How much it may send.").default("{}"),
    field(
        "trust",
        Kind::Word(|| words(TRUST)),
        "What becomes of its tools when it is first seen: `first-use` pins and serves them, `review` serves \
         nothing of it before its tools are approved.",
    )
    .default("\"first-use\""),
    field("watch", Kind::Section(&WATCH), "How it is watched, where not as all are.").inherits(),
    field(
        "tool_defaults",
        Kind::Policy,
        "The rules for tools, resources, prompts and skills of it that the policy does not name: the keys of a tool of a policy.",
    ),
];

pub(in super::super) static SERVER: Table =
    Table::new("server", "A server behind the gateway.", FIELDS)
        .or_text("An address, or a command line.")
        .with_one_of(&["command", "url"]);

pub(in super::super) static CLIENT_SERVER: Table =
    Table::new("client_server", "A server as clients write it.", FIELDS)
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
        .with_one_of(&["command", "url"]);

const fn client(name: &'static str, others: &'static [&'static str]) -> Field {
    field(name, Kind::Anything, "Left to the client.").or(others)
}

pub(in super::super) static TIMEOUTS: Table = Table::new(
    "timeouts",
    "How long a server may take.",
    &[
        field("connect", Kind::Duration, "To open a connection.").default("\"10s\""),
        field(
            "start",
            Kind::Duration,
            "To start, up to its first answer; `npx` and `uvx` may download it first.",
        )
        .default("\"60s\""),
        field(
            "request",
            Kind::Duration,
            "To answer a request; progress starts the wait anew.",
        )
        .default("\"60s\""),
        field(
            "idle",
            Kind::Duration,
            "How long a connection of a conversation is kept without use.",
        )
        .default("\"5m\""),
        field(
            "list",
            Kind::Duration,
            "How long a list waits for it before it goes out without it.",
        )
        .default("\"10s\""),
    ],
);

pub(in super::super) static RESTART: Table = Table::new(
    "restart",
    "How a server is tried again after a failure: ever later, from the first wait to the longest.",
    &[
        field("first", Kind::Duration, "The first wait.").default("\"500ms\""),
        field("most", Kind::Duration, "The longest wait.").default("\"60s\""),
    ],
);

pub(in super::super) static BREAKER: Table = Table::new(
    "breaker",
    "When a server is left alone for a while.",
    &[
        field("failures", Kind::Count, "After so many failures in a row.").default("5"),
        field("pause", Kind::Duration, "For so long.").default("\"30s\""),
    ],
);
