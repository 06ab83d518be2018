//! Every endpoint of the API.

use axum::http::StatusCode;

use super::error::ErrorKind;
use super::field::{Field, Kind};
use super::page::{CURSOR, LIMIT};
use super::route::Route;
use super::{
    alerts, approve, audit, baselines, decide, explain, ready, servers, service, sessions, tools,
    workflow,
};
use crate::metrics;

const NAME: Field = Field::new("name", Kind::Text, "its name").required();
const ID: Field = Field::new("id", Kind::Text, "its id").required();
const SESSION_ID: Field = Field::new(
    "id",
    Kind::Text,
    "its name; `~` is a principal's own session",
)
.required();
const SERVER: Field = Field::new("server", Kind::Text, "the name of a server");
const IN_SERVER: Field = SERVER.required();
const TOOL: Field = Field::new("tool", Kind::Text, "the name of a tool");
const EXPLAINED: Field = Field::new(
    "tool",
    Kind::Text,
    "the name of a tool; others as records name them: `resource:…`, `prompt:…`, `skill:…` or `method:…`",
)
.required();
const THE_TOOL: Field = TOOL.required();
const PRINCIPAL: Field = Field::new(
    "principal",
    Kind::Text,
    "whom it is about; others than the caller are a matter for administrators",
);
const SESSION: Field = Field::new(
    "session",
    Kind::Text,
    "a workflow session; none is the principal's own",
);
const GROUPS: Field = Field::new(
    "groups",
    Kind::Names,
    "the groups asked for; none are those of the session",
);
const ALL_TOOLS: Field = Field::new(
    "all",
    Kind::Flag,
    "every tool with what becomes of it; for administrators",
);
const SINCE: Field = Field::new("since", Kind::Time, "of this time or later");
const UNTIL: Field = Field::new("until", Kind::Time, "before this time");

const SERVERS: Field = Field::new("server", Kind::Names, "of these servers");
const TOOLS: Field = Field::new("tool", Kind::Names, "of these tools");
const SEVERITY: Field = Field::new(
    "severity",
    Kind::Names,
    "of these severities: low, medium, high",
);
const STATUS: Field = Field::new(
    "status",
    Kind::Word(&["open", "approved", "closed"]),
    "in this status",
);

const CODE: Field = Field::new("code", Kind::Text, "with this code");
const RECORD_KIND: Field = Field::new(
    "kind",
    Kind::Text,
    "of this kind: decision, outcome, transition, session, escalation, policy",
);
const DENIED: Field = Field::new("denied", Kind::Flag, "only what was not allowed");
const ORDER: Field = Field::new(
    "order",
    Kind::Word(&["newest", "oldest"]),
    "which records come first; the newest where nothing is said",
);
const HEAD: Field = Field::new(
    "head",
    Kind::Text,
    "a head of the log that was noted elsewhere",
);

const ALERTS: Field = Field::new("alerts", Kind::Names, "ids of alerts or of single changes");
const TOOL_NAMES: Field = Field::new(
    "tools",
    Kind::Names,
    "tools of the server, by its own names",
);
const ALL_WAITING: Field = Field::new("all", Kind::Flag, "everything of the server that waits");
const TEXTS_WAITING: Field = Field::new(
    "text",
    Kind::Flag,
    "every change of text of the server that waits, but for those that are a matter of trust",
);
const SCOPE: Field = Field::new(
    "scope",
    Kind::Text,
    "only of this scope: `default`, or a variant of clients",
);
const REASON: Field = Field::new("reason", Kind::Text, "why it is approved").required();

const ARGUMENTS: Field = Field::new("arguments", Kind::Object, "the arguments of the call");
const STATE: Field = Field::new(
    "state",
    Kind::Text,
    "the state the workflow begins in, where the policy lets clients say so",
);
const ATTRIBUTES: Field = Field::new(
    "attributes",
    Kind::Object,
    "what conditions of the policy may ask about",
);
const CALL: Field = Field::new("call", Kind::Text, "the `call` of the decision").required();
const OUTCOME: Field = Field::new(
    "outcome",
    Kind::Word(&["succeeded", "failed", "suspended", "abandoned"]),
    "how the call ended",
)
.required();
const RESULT: Field = Field::new("result", Kind::Any, "what the tool returned");
const ERROR: Field = Field::new("error", Kind::Text, "why it failed");

const STORE: &[ErrorKind] = &[ErrorKind::Unavailable];
const MISSING: &[ErrorKind] = &[ErrorKind::NotFound];
const MISSING_OR_STORE: &[ErrorKind] = &[ErrorKind::NotFound, ErrorKind::Unavailable];
const MISSING_OR_SEVERAL: &[ErrorKind] = &[ErrorKind::NotFound, ErrorKind::Conflict];
const APPROVING: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::Conflict,
    ErrorKind::Unavailable,
];
const BUSY_OR_STORE: &[ErrorKind] = &[
    ErrorKind::TooMany,
    ErrorKind::Internal,
    ErrorKind::Unavailable,
];

/// Every endpoint.
pub(super) static ROUTES: &[Route] = &[
    Route::get("/api/v1/tools", "Tools", |it| Box::pin(tools::list(it)))
        .about("The tools as the caller sees them")
        .query(&[GROUPS, SESSION, ALL_TOOLS, LIMIT, CURSOR]),
    Route::get("/api/v1/tools/{name}", "ToolDocument", |it| {
        Box::pin(tools::one(it))
    })
    .about("One tool by the name agents know")
    .named(&[NAME])
    .query(&[GROUPS, SESSION])
    .errors(MISSING),
    Route::get("/api/v1/servers", "Servers", |it| {
        Box::pin(servers::list(it))
    })
    .about("The servers behind the gateway and how they fare"),
    Route::get("/api/v1/servers/{name}", "ServerDocument", |it| {
        Box::pin(servers::one(it))
    })
    .about("One server")
    .named(&[NAME])
    .errors(MISSING),
    Route::post("/api/v1/servers/{name}/retry", "ServerDocument", |it| {
        Box::pin(servers::retry(it))
    })
    .about("Forgets the failures of a server and tries it at once")
    .named(&[NAME])
    .body(&[])
    .errors(MISSING)
    .admin(),
    Route::get("/api/v1/baselines", "Baselines", |it| {
        Box::pin(baselines::list(it))
    })
    .about("What tools are held to")
    .query(&[SERVER])
    .errors(MISSING_OR_STORE)
    .admin(),
    Route::get(
        "/api/v1/baselines/{server}/{tool}",
        "BaselineDocument",
        |it| Box::pin(baselines::one(it)),
    )
    .about("What one tool is and was held to, its definition, and every alert about it")
    .named(&[IN_SERVER, THE_TOOL])
    .errors(MISSING_OR_STORE)
    .admin(),
    Route::get("/api/v1/changes", "Changes", |it| {
        Box::pin(baselines::changes(it))
    })
    .about("What waits for approval, with every change and what proves it")
    .query(&[SERVER])
    .errors(MISSING_OR_STORE)
    .admin(),
    Route::post("/api/v1/approve", "Approved", |it| {
        Box::pin(approve::approve(it))
    })
    .about("Approves what waits: alerts, tools of a server, all of a server, or its changes of text")
    .body(&[ALERTS, SERVER, SCOPE, TOOL_NAMES, ALL_WAITING, TEXTS_WAITING, REASON])
    .errors(APPROVING)
    .admin(),
    Route::get("/api/v1/alerts", "Alerts", |it| Box::pin(alerts::list(it)))
        .about("Alerts, the newest first")
        .query(&[SERVERS, TOOLS, SEVERITY, STATUS, SINCE, LIMIT, CURSOR])
        .errors(STORE)
        .admin(),
    Route::get("/api/v1/alerts/{id}", "AlertDocument", |it| {
        Box::pin(alerts::one(it))
    })
    .about("One alert")
    .named(&[ID])
    .errors(MISSING_OR_STORE)
    .admin(),
    Route::get("/api/v1/alerts/{id}/deliveries", "Deliveries", |it| {
        Box::pin(alerts::deliveries(it))
    })
    .about("Whom an alert reached")
    .named(&[ID])
    .errors(MISSING_OR_STORE)
    .admin(),
    Route::get("/api/v1/deliveries/status", "DeliveryStatus", |it| {
        Box::pin(alerts::status(it))
    })
    .about("How deliveries of alerts go")
    .errors(STORE)
    .admin(),
    Route::get("/api/v1/groups", "Groups", |it| {
        Box::pin(workflow::groups(it))
    })
    .about("The groups a principal may ask for; for administrators all of them")
    .query(&[PRINCIPAL]),
    Route::get("/api/v1/states", "States", |it| {
        Box::pin(workflow::states(it))
    })
    .about("The states of the workflow and the tools that lead from one to another"),
    Route::get("/api/v1/sessions", "Sessions", |it| {
        Box::pin(sessions::list(it))
    })
    .about("The caller's workflow sessions; for administrators everybody's")
    .query(&[PRINCIPAL, LIMIT, CURSOR]),
    Route::get("/api/v1/sessions/{id}", "SessionDocument", |it| {
        Box::pin(sessions::one(it))
    })
    .about("What a session asked for, saw and did")
    .named(&[SESSION_ID])
    .query(&[PRINCIPAL])
    .errors(MISSING_OR_SEVERAL),
    Route::delete("/api/v1/sessions/{id}", "SessionDocument", |it| {
        Box::pin(sessions::end(it))
    })
    .about("Ends a session and the conversations that move it")
    .named(&[SESSION_ID])
    .query(&[PRINCIPAL])
    .errors(MISSING_OR_SEVERAL)
    .admin(),
    Route::post("/api/v1/decide", "Decision", |it| {
        Box::pin(decide::decide(it))
    })
    .about("Decides a call that is made elsewhere, and records the decision")
    .body(&[
        THE_TOOL, ARGUMENTS, SESSION, GROUPS, STATE, ATTRIBUTES, PRINCIPAL,
    ])
    .errors(BUSY_OR_STORE),
    Route::post("/api/v1/complete", "Completion", |it| {
        Box::pin(decide::complete(it))
    })
    .about("Tells how an allowed call ended; success moves the session on")
    .body(&[CALL, OUTCOME, RESULT, ERROR])
    .errors(MISSING),
    Route::get("/api/v1/explain", "Explanation", |it| {
        Box::pin(explain::explain(it))
    })
    .about("Why a principal sees a tool, a resource, a prompt or a skill, or does not")
    .query(&[EXPLAINED, PRINCIPAL, SESSION, GROUPS]),
    Route::get("/api/v1/audit", "Audit", |it| Box::pin(audit::list(it)))
        .about("Records of the audit log")
        .query(&[
            PRINCIPAL_OF,
            TOOL,
            SESSION_OF,
            CODE,
            RECORD_KIND,
            DENIED,
            SINCE,
            UNTIL,
            ORDER,
            LIMIT,
            CURSOR,
        ])
        .errors(BUSY_OR_STORE)
        .admin(),
    Route::post("/api/v1/audit/verify", "Verification", |it| {
        Box::pin(audit::verify(it))
    })
    .about("Verifies that no record of the audit log was changed, dropped or put in another order")
    .body(&[HEAD])
    .errors(BUSY_OR_STORE)
    .admin(),
    Route::get("/api/v1/config", "Config", |it| {
        Box::pin(service::config(it))
    })
    .about("The settings in force, secrets masked")
    .admin(),
    Route::get("/api/v1/health", "Health", |it| {
        Box::pin(service::health(it))
    })
    .about("Whether the gateway runs")
    .open(),
    Route::get("/api/v1/ready", "Ready", |it| Box::pin(ready::ready(it)))
        .about(
            "Whether the gateway can serve; status 503 and the reasons where it cannot. Servers that are \
             down are listed in `degraded` and do not make it unready",
        )
        .also(StatusCode::SERVICE_UNAVAILABLE)
        .open(),
    Route::get("/api/v1/openapi.json", "OpenApi", |it| {
        Box::pin(service::openapi(it))
    })
    .about("This document")
    .open(),
    Route::get("/api/v1/version", "Version", |it| {
        Box::pin(service::version(it))
    })
    .about("Which program this is"),
    Route::get("/metrics", "Metrics", |it| Box::pin(service::metrics(it)))
        .about("What was counted, for Prometheus")
        .text(metrics::CONTENT_TYPE)
        .errors(STORE),
];

const PRINCIPAL_OF: Field = Field::new("principal", Kind::Text, "of this principal");
const SESSION_OF: Field = Field::new("session", Kind::Text, "of this session");
