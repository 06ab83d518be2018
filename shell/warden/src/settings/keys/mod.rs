//! Every key of the settings, with what it holds, what it is for, and what holds without it.

mod limits;
mod server;

use toolwarden_drift::Severity;
use toolwarden_guard::OutputMode;

use super::table::{Field, Kind, Table, field};
use super::{DenialForm, OnDrift, PrefixMode, SmtpSecurity, Trust};

pub(super) use limits::{SERVER_LIMITS, SESSIONS};
pub(super) use server::{
    BREAKER, CLIENT_SERVER, PROTOCOL, RESTART, SERVER, SHARING, START, TIMEOUTS, TYPE, Transport,
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
pub(super) const OUTPUT: &[(&str, OutputMode)] = &[
    ("off", OutputMode::Off),
    ("warn", OutputMode::Warn),
    ("report", OutputMode::Warn),
    ("enforce", OutputMode::Enforce),
];
pub(super) const SEVERITY: &[(&str, Severity)] = &[
    ("low", Severity::Low),
    ("medium", Severity::Medium),
    ("high", Severity::High),
];
pub(super) const SECURITY: &[(&str, SmtpSecurity)] = &[
    ("none", SmtpSecurity::None),
    ("starttls", SmtpSecurity::StartTls),
    ("tls", SmtpSecurity::Tls),
];
/// The word for a time that never comes.
pub(super) const TRUST: &[(&str, Trust)] =
    &[("first-use", Trust::FirstUse), ("review", Trust::Review)];
pub(super) const NEVER: &[(&str, ())] = &[("never", ())];

pub(super) static ROOT: Table = Table::new(
    "settings",
    "The settings of a Toolwarden gateway. Texts may refer to the environment (`${NAME}`, \
     `${NAME:-default}`) and to files (`${file:path}`); `$$` is a dollar. Relative paths start at the \
     folder of the file.",
    &[
        field("$schema", Kind::Text, "The JSON Schema of this file, for editors."),
        field("version", Kind::Version, "The version of the format."),
        field("listen", Kind::Section(&LISTEN), "Where the gateway listens, and for whom.").default("{}"),
        field("store", Kind::Text, "The file of pins, alerts and the audit log.").default("\"toolwarden.db\""),
        field(
            "store_quota",
            Kind::Size,
            "The most space the store may take. From nine tenths of it on the gateway warns; at all of it nothing \
             more is recorded, and calls are refused as the policy says.",
        )
        .default("\"10GiB\""),
        field(
            "servers",
            Kind::Names(&Kind::Section(&SERVER), Some("^[A-Za-z0-9_-]{1,64}$")),
            "The servers behind the gateway, by name: letters, digits, `-` and `_`.",
        ),
        field(
            "mcp_servers",
            Kind::Names(&Kind::Section(&CLIENT_SERVER), Some("^[A-Za-z0-9_-]{1,64}$")),
            "Servers as the block of a client has them, pasted whole.",
        )
        .or(&["mcpServers"]),
        field(
            "prefix",
            Kind::Word(|| words(PREFIX)),
            "When names get the name of their server put before them: always, on conflict, or never.",
        )
        .default("\"always\""),
        field("separator", Kind::Text, "What stands between a server's name and a tool's.").default("\"__\""),
        field(
            "client_attributes",
            Kind::Texts,
            "The attributes that clients may give their requests, for conditions on `request`: by `_meta` or by header. \
             Anything a client says of itself may be false.",
        ),
        field("page_size", Kind::Count, "The most tools of one page of a list. Without it lists come whole."),
        field(
            "policy",
            Kind::Either(&[Kind::Text, Kind::Policy]),
            "The rules of the guard: a policy file, or a policy in place. References are not put in into \
             a policy. Without it everybody who is somebody may call every tool.",
        ),
        field(
            "denials",
            Kind::Word(|| words(DENIALS)),
            "How refusals are told: as a result of the tool, which a model reads, or as an error of the \
             protocol.",
        )
        .default("\"tool-error\""),
        field("identity", Kind::Section(&IDENTITY), "Who callers are. Without it nobody is let in.").default("{}"),
        field("watch", Kind::Section(&WATCH), "How definitions and results are watched.").default("{}"),
        field("timeouts", Kind::Section(&TIMEOUTS), "How long servers may take, where a server says nothing else.")
            .default("{}"),
        field("alerts", Kind::Names(&Kind::Section(&ALERT), None), "Where alerts go, by name."),
        field("misuse", Kind::Section(&MISUSE), "When the behaviour of a principal is an alert.").default("{}"),
        field("sessions", Kind::Section(&SESSIONS), "How conversations are kept.").default("{}"),
        field("drain", Kind::Duration, "How long calls under way may take after SIGTERM.").default("\"10s\""),
        field("traces", Kind::Section(&TRACES), "Where traces go."),
    ],
);

pub(super) static LISTEN: Table = Table::new(
    "listen",
    "Where the gateway listens, and for whom.",
    &[
        field("address", Kind::Text, "Address and port; port 0 takes a free one.").default("\"127.0.0.1:8700\""),
        field("tls", Kind::Section(&TLS), "Certificate and key, where the gateway speaks TLS itself."),
        field("public_url", Kind::Address, "How agents reach it. Without it, by the `Host` they use."),
        field(
            "hosts",
            Kind::Texts,
            "Further values of `Host` that are answered; loopback names and the address always are.",
        ),
        field(
            "origins",
            Kind::Texts,
            "Values of `Origin` that are answered; requests without one always are, and loopback origins \
             on a loopback address.",
        ),
        field("max_body", Kind::Size, "The largest message of an agent.").default("\"8MiB\""),
        field("max_batch", Kind::Count, "The most messages of one batch.").default("100"),
        field("limits", Kind::Section(&LIMITS), "What connections may cost.").default("{}"),
    ],
)
.or_text("The address alone.");

pub(super) static LIMITS: Table = Table::new(
    "limits",
    "What connections may cost. A connection is authenticated once one of its requests was. Changes take effect \
     after a restart, except `body_within`.",
    &[
        field(
            "connections",
            Kind::Count,
            "The most connections at a time; fewer where the system gives fewer descriptors.",
        )
        .default("16384"),
        field("per_address", Kind::Count, "The most connections of one address at a time.").default("8192"),
        field("per_principal", Kind::Count, "The most connections of one principal at a time, and half of all at most; over others it is answered with 503.").default("4096"),
        field(
            "unauthenticated",
            Kind::Count,
            "The most connections at a time that are not authenticated; a newer one closes the oldest.",
        )
        .default("1024"),
        field(
            "unauthenticated_per_address",
            Kind::Count,
            "The most of them from one address; a newer one closes the oldest of that address.",
        )
        .default("512"),
        field(
            "authenticate_within",
            Kind::Duration,
            "How long a connection may take to be authenticated.",
        )
        .default("\"10s\""),
        field(
            "idle",
            Kind::Duration,
            "How long an authenticated connection may be idle between requests.",
        )
        .default("\"2m\""),
        field("body_within", Kind::Duration, "How long the body of a request may take.").default("\"30s\""),
    ],
);

pub(super) static TLS: Table = Table::new(
    "tls",
    "A certificate to listen with.",
    &[
        field(
            "certificate",
            Kind::Text,
            "The file of the certificate chain, PEM.",
        )
        .required(),
        field("key", Kind::Text, "The file of its key, PEM.").required(),
        field(
            "client_ca",
            Kind::Text,
            "The file of authorities whose client certificates name principals, PEM.",
        ),
    ],
);

pub(super) static IDENTITY: Table = Table::new(
    "identity",
    "Who callers are.",
    &[
        field(
            "api_keys",
            Kind::List(&Kind::Section(&API_KEY)),
            "Callers by key.",
        ),
        field(
            "jwt",
            Kind::List(&Kind::Section(&JWT)),
            "Issuers of tokens.",
        ),
        field(
            "certificates",
            Kind::List(&Kind::Section(&CERTIFICATE)),
            "Callers by client certificate; needs `listen.tls.client_ca`.",
        ),
        field(
            "anonymous",
            Kind::Text,
            "The principal of callers who say nothing. Without it they are refused.",
        ),
        field(
            "admins",
            Kind::Either(&[
                Kind::Text,
                Kind::List(&Kind::Either(&[Kind::Text, Kind::Section(&ADMIN)])),
            ]),
            "The principals who may use the administrative part of the API. A name alone has to belong to one \
             source.",
        ),
    ],
);

pub(super) static ADMIN: Table = Table::new(
    "admin",
    "An administrator, with the issuer whose tokens name it.",
    &[
        field(
            "principal",
            Kind::Text,
            "The principal, its prefix included.",
        )
        .required(),
        field(
            "issuer",
            Kind::Address,
            "The `issuer` of an entry of `identity.jwt`.",
        ),
    ],
);

pub(super) static ROLE_CLAIM: Table = Table::new(
    "roles",
    "The claim of a token that gives roles of the policy. Principals that the policy names keep their own entry.",
    &[
        field(
            "claim",
            Kind::Text,
            "The claim: its name, or a JSON pointer such as `/realm_access/roles`. A text is split at spaces.",
        )
        .required(),
        field(
            "map",
            Kind::Names(&Kind::Texts, None),
            "The role or roles of the policy that each value gives; other values give none.",
        )
        .required(),
    ],
);

pub(super) static API_KEY: Table = Table::new(
    "api_key",
    "A caller with a key.",
    &[
        field("principal", Kind::Text, "The principal.").required(),
        field(
            "sha256",
            Kind::Text,
            "The SHA-256 digest of the key, in hexadecimal digits.",
        ),
        field(
            "key",
            Kind::Secret,
            "The key itself; refer to it, as in `${CI_KEY}`. Only its digest is kept.",
        ),
    ],
)
.with_one_of(&["sha256", "key"]);

pub(super) static JWT: Table = Table::new(
    "jwt",
    "An issuer of tokens. Without `secret`, `public_key` and `jwks` the issuer's OpenID configuration \
     names the keys.",
    &[
        field("issuer", Kind::Address, "What `iss` has to be."),
        field("audience", Kind::Text, "What `aud` has to contain.").required(),
        field(
            "secret",
            Kind::Secret,
            "The shared secret of HS256, HS384 and HS512: at least 32, 48 and 64 bytes.",
        ),
        field(
            "public_key",
            Kind::Text,
            "The public key, PEM, as in `${file:issuer.pem}`.",
        ),
        field("jwks", Kind::Address, "The address of a key set: https, or http on loopback."),
        field(
            "principal_claim",
            Kind::Text,
            "The claim that names the principal.",
        )
        .default("\"sub\""),
        field(
            "principal_prefix",
            Kind::Text,
            "Put before the claim to make the principal. Issuers of different names need different prefixes.",
        )
        .default("\"\""),
        field("scopes", Kind::Texts, "Scopes that a token has to have."),
        field("leeway", Kind::Duration, "How far clocks may be apart.").default("\"60s\""),
        field("roles", Kind::Section(&ROLE_CLAIM), "The claim that gives roles of the policy."),
        field(
            "refresh",
            Kind::Duration,
            "The time between two looks at the key set. A key that was removed stops working within it.",
        )
        .default("\"10m\""),
        field(
            "max_stale",
            Kind::Duration,
            "How long the last key set is used while no newer one can be fetched.",
        )
        .default("\"1h\""),
    ],
);

pub(super) static CERTIFICATE: Table = Table::new(
    "certificate",
    "A principal by client certificate.",
    &[
        field("subject", Kind::Text, "The common name, or `*` for any.").required(),
        field(
            "principal",
            Kind::Text,
            "The principal; `*` in it stands for the common name.",
        )
        .required(),
    ],
);

const fn threshold(name: &'static str, about: &'static str, default: &'static str) -> Field {
    field(
        name,
        Kind::Either(&[Kind::Count, Kind::Word(|| words(NEVER))]),
        about,
    )
    .default(default)
}

pub(super) static MISUSE: Table = Table::new(
    "misuse",
    "When the behaviour of a principal is an alert. `never` turns a rule off.",
    &[
        threshold(
            "escalations",
            "So many requests within the window for more than the principal is granted: groups, states, \
             sessions of others.",
            "5",
        ),
        threshold(
            "foreign_sessions",
            "So many requests within the window with the session of another principal.",
            "3",
        ),
        threshold("denials", "So many denied calls within the window.", "30"),
        threshold(
            "new_groups_after",
            "A group the principal never asked for before, after so many requests that named groups.",
            "20",
        ),
        field("window", Kind::Duration, "How far back requests count.").default("\"10m\""),
        field(
            "every",
            Kind::Duration,
            "How often one rule raises an alert for one principal at most.",
        )
        .default("\"1h\""),
    ],
);

pub(super) static WATCH: Table = Table::new(
    "watch",
    "How definitions and results are watched.",
    &[
        field("every", Kind::Duration, "The time between two looks at a list.").default("\"5m\""),
        field(
            "on_drift",
            Kind::Either(&[Kind::Word(|| words(ACTIONS)), Kind::Section(&ON_DRIFT)]),
            "What becomes of a tool whose definition drifted: by class, or one word for every class but \
             `equivalent`.",
        )
        .default("{}"),
        field(
            "on_new",
            Kind::Word(|| words(ACTIONS)),
            "What becomes of a tool that a pinned list did not have.",
        )
        .default("\"quarantine\""),
        field(
            "on_finding",
            Kind::Word(|| words(ACTIONS)),
            "What becomes of a tool when it is first seen, if its text is hidden, instructs the model, or \
             contradicts its annotations (findings of weight medium or high).",
        )
        .default("\"quarantine\""),
        field(
            "before_call",
            Kind::Either(&[Kind::Duration, Kind::Word(|| words(NEVER))]),
            "How old a look may be when a tool is called; older, and the list is asked for first. With \
             `0s` every call looks, with `never` none does.",
        )
        .default("\"never\""),
        field(
            "output",
            Kind::Word(|| words(OUTPUT)),
            "What becomes of results that do not fit the output schema: they are not looked at, reported \
             (`warn` or `report`), or the call counts as failed.",
        )
        .default("\"warn\""),
        field(
            "strip_hidden",
            Kind::Truth,
            "Whether hidden characters are taken out of results and definitions on their way to the agent.",
        )
        .default("false"),
        field("shapes", Kind::Truth, "Whether results are held to the shape of earlier ones.").default("true"),
        field(
            "compare_time",
            Kind::Duration,
            "The most time to compare one tool with its pin; a comparison that needs longer counts as \
             `unknown`.",
        )
        .default("\"1s\""),
        field(
            "compare_list_time",
            Kind::Duration,
            "The most time to compare all tools of a list with their pins; the others count as `unknown`.",
        )
        .default("\"5s\""),
    ],
);

const fn class(name: &'static str, about: &'static str, default: &'static str) -> Field {
    field(name, Kind::Word(|| words(ACTIONS)), about).default(default)
}

pub(super) static ON_DRIFT: Table = Table::new(
    "on_drift",
    "What becomes of a tool whose definition drifted, by the gravest class.",
    &[
        class(
            "equivalent",
            "The same contract in other words.",
            "\"serve\"",
        ),
        class(
            "info",
            "Something is said that changes nothing: annotations that appear, spacing.",
            "\"serve\"",
        ),
        class(
            "structural",
            "A promise about results appeared.",
            "\"quarantine\"",
        ),
        class("widened", "More is accepted than before.", "\"serve\""),
        class(
            "behavioural",
            "The same contract, but a call may have another effect.",
            "\"quarantine\"",
        )
        .or(&["behavioral"]),
        class("text", "Text that a model reads changed.", "\"quarantine\""),
        class(
            "ignored",
            "An argument is still accepted and no longer read.",
            "\"quarantine\"",
        ),
        class(
            "unknown",
            "It was not established what the change means.",
            "\"quarantine\"",
        ),
        class(
            "trust",
            "Less caution is asked for, or the text turned against its reader.",
            "\"quarantine\"",
        ),
        class(
            "breaking",
            "Something that worked is rejected now.",
            "\"quarantine\"",
        ),
    ],
);

pub(super) static ALERT: Table = Table::new(
    "alert",
    "Somebody who is told of alerts.",
    &[
        field("webhook", Kind::SecretAddress, "Where our JSON is posted."),
        field("slack", Kind::SecretAddress, "A Slack incoming webhook."),
        field("feishu", Kind::SecretAddress, "A Feishu bot."),
        field("dingtalk", Kind::SecretAddress, "A DingTalk robot."),
        field("wecom", Kind::SecretAddress, "A WeCom robot."),
        field("smtp", Kind::Section(&SMTP), "E-mail."),
        field(
            "secret",
            Kind::Secret,
            "What messages to `webhook`, `feishu` or `dingtalk` are signed with.",
        ),
        field(
            "severity",
            Kind::Word(|| words(SEVERITY)),
            "The least severity that is told.",
        )
        .default("\"low\""),
    ],
)
.with_one_of(&["webhook", "slack", "feishu", "dingtalk", "wecom", "smtp"]);

pub(super) static SMTP: Table = Table::new(
    "smtp",
    "A mail server, and who is written to.",
    &[
        field(
            "server",
            Kind::Text,
            "Host and port; without a port the usual one.",
        )
        .required(),
        field(
            "security",
            Kind::Word(|| words(SECURITY)),
            "How the connection is secured; `none` only on loopback.",
        )
        .default("\"starttls\""),
        field("user", Kind::Text, "The user to log in as."),
        field("password", Kind::Secret, "The password of the user."),
        field("from", Kind::Text, "The sender.").required(),
        field("to", Kind::Texts, "The recipients.").required(),
    ],
);

pub(super) static TRACES: Table = Table::new(
    "traces",
    "Where traces go. Needs a build with the feature `otel`.",
    &[
        field("otlp", Kind::Address, "The address of OTLP over HTTP.").required(),
        field(
            "sample",
            Kind::Share,
            "The share of calls that are traced, from 0 to 1.",
        )
        .default("1"),
    ],
)
.or_text("The address alone.");

/// The words of a list of words with meanings.
fn words<T>(list: &[(&'static str, T)]) -> Vec<&'static str> {
    list.iter().map(|(word, _)| *word).collect()
}
