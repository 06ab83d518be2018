//! Every endpoint of the API.

use axum::http::StatusCode;

use super::error::ApiErrorKind;
use super::field::{ApiField, ApiFieldType};
use super::page::{CURSOR, LIMIT};
use super::route::ApiRoute;
use super::{
    alerts, approve, audit, baselines, decide, explain, ready, servers, service, sessions, tools,
    workflow,
};
use crate::metrics;

const NAME: ApiField = ApiField::new("name", ApiFieldType::Text, "its name").required();
const ID: ApiField = ApiField::new("id", ApiFieldType::Text, "its id").required();
const SESSION_ID: ApiField = ApiField::new(
    "id",
    ApiFieldType::Text,
    "its name; `~` is a principal's own session",
)
.required();
const SERVER: ApiField = ApiField::new("server", ApiFieldType::Text, "the name of a server");
const REQUIRED_SERVER: ApiField = SERVER.required();
const TOOL: ApiField = ApiField::new("tool", ApiFieldType::Text, "the name of a tool");
const EXPLAIN_TOOL: ApiField = ApiField::new(
    "tool",
    ApiFieldType::Text,
    "the name of a tool; others as records name them: `resource:…`, `prompt:…`, `skill:…` or `method:…`",
)
.required();
const REQUIRED_TOOL: ApiField = TOOL.required();
const PRINCIPAL: ApiField = ApiField::new(
    "principal",
    ApiFieldType::Text,
    "the principal it is about; only administrators may name another than the caller",
);
const SESSION: ApiField = ApiField::new(
    "session",
    ApiFieldType::Text,
    "a workflow session; by default the principal's own",
);
const GROUPS: ApiField = ApiField::new(
    "groups",
    ApiFieldType::Names,
    "the requested groups; by default those of the session",
);
const ALL_TOOLS: ApiField = ApiField::new(
    "all",
    ApiFieldType::Flag,
    "every tool with its treatment; for administrators",
);
const SINCE: ApiField = ApiField::new("since", ApiFieldType::Time, "of this time or later");
const UNTIL: ApiField = ApiField::new("until", ApiFieldType::Time, "before this time");

const SERVERS: ApiField = ApiField::new("server", ApiFieldType::Names, "of these servers");
const TOOLS: ApiField = ApiField::new("tool", ApiFieldType::Names, "of these tools");
const SEVERITY: ApiField = ApiField::new(
    "severity",
    ApiFieldType::Names,
    "of these severities: low, medium, high",
);
const STATUS: ApiField = ApiField::new(
    "status",
    ApiFieldType::OneOf(&["open", "approved", "closed"]),
    "in this status",
);

const CODE: ApiField = ApiField::new("code", ApiFieldType::Text, "with this code");
const RECORD_KIND: ApiField = ApiField::new(
    "kind",
    ApiFieldType::Text,
    "of this kind: decision, outcome, transition, session, escalation, policy",
);
const DENIED: ApiField = ApiField::new("denied", ApiFieldType::Flag, "only what was denied");
const ORDER: ApiField = ApiField::new(
    "order",
    ApiFieldType::OneOf(&["newest", "oldest"]),
    "which records come first; by default the newest",
);
const HEAD: ApiField = ApiField::new(
    "head",
    ApiFieldType::Text,
    "a head of the log that was noted elsewhere",
);

const ALERTS: ApiField = ApiField::new(
    "alerts",
    ApiFieldType::Names,
    "ids of alerts or of single changes",
);
const TOOL_NAMES: ApiField = ApiField::new(
    "tools",
    ApiFieldType::Names,
    "tools of the server, by its own names",
);
const ALL_PENDING: ApiField = ApiField::new(
    "all",
    ApiFieldType::Flag,
    "all pending changes of the server",
);
const PENDING_TEXTS: ApiField = ApiField::new(
    "text",
    ApiFieldType::Flag,
    "every pending text change of the server, except those that are a matter of trust",
);
const SCOPE: ApiField = ApiField::new(
    "scope",
    ApiFieldType::Text,
    "only of this scope: `default`, or a variant of clients",
);
const REASON: ApiField =
    ApiField::new("reason", ApiFieldType::Text, "why it is approved").required();

const ARGUMENTS: ApiField = ApiField::new(
    "arguments",
    ApiFieldType::Object,
    "the arguments of the call",
);
const STATE: ApiField = ApiField::new(
    "state",
    ApiFieldType::Text,
    "the initial state of the workflow, if the policy lets clients set it",
);
const ATTRIBUTES: ApiField = ApiField::new(
    "attributes",
    ApiFieldType::Object,
    "attributes that conditions of the policy may test",
);
const CALL: ApiField =
    ApiField::new("call", ApiFieldType::Text, "the `call` of the decision").required();
const OUTCOME: ApiField = ApiField::new(
    "outcome",
    ApiFieldType::OneOf(&["succeeded", "failed", "suspended", "abandoned"]),
    "how the call ended",
)
.required();
const RESULT: ApiField = ApiField::new("result", ApiFieldType::Any, "what the tool returned");
const ERROR: ApiField = ApiField::new("error", ApiFieldType::Text, "why it failed");

const STORE_ERRORS: &[ApiErrorKind] = &[ApiErrorKind::Unavailable];
const NOT_FOUND_ERRORS: &[ApiErrorKind] = &[ApiErrorKind::NotFound];
const NOT_FOUND_OR_STORE_ERRORS: &[ApiErrorKind] =
    &[ApiErrorKind::NotFound, ApiErrorKind::Unavailable];
const NOT_FOUND_OR_CONFLICT_ERRORS: &[ApiErrorKind] =
    &[ApiErrorKind::NotFound, ApiErrorKind::Conflict];
const APPROVE_ERRORS: &[ApiErrorKind] = &[
    ApiErrorKind::NotFound,
    ApiErrorKind::Conflict,
    ApiErrorKind::Unavailable,
];
const BUSY_OR_STORE_ERRORS: &[ApiErrorKind] = &[
    ApiErrorKind::TooMany,
    ApiErrorKind::Internal,
    ApiErrorKind::Unavailable,
];

/// Every endpoint.
pub(super) static ROUTES: &[ApiRoute] = &[
    ApiRoute::get("/api/v1/tools", "Tools", |it| Box::pin(tools::list(it)))
        .summary("The tools as the caller sees them")
        .query(&[GROUPS, SESSION, ALL_TOOLS, LIMIT, CURSOR]),
    ApiRoute::get("/api/v1/tools/{name}", "ToolDocument", |it| {
        Box::pin(tools::get(it))
    })
    .summary("One tool by the name agents know")
    .path_params(&[NAME])
    .query(&[GROUPS, SESSION])
    .errors(NOT_FOUND_ERRORS),
    ApiRoute::get("/api/v1/servers", "Servers", |it| {
        Box::pin(servers::list(it))
    })
    .summary("The servers behind the gateway and their status"),
    ApiRoute::get("/api/v1/servers/{name}", "ServerDocument", |it| {
        Box::pin(servers::get(it))
    })
    .summary("One server")
    .path_params(&[NAME])
    .errors(NOT_FOUND_ERRORS),
    ApiRoute::post("/api/v1/servers/{name}/retry", "ServerDocument", |it| {
        Box::pin(servers::retry(it))
    })
    .summary("Forgets the failures of a server and retries it at once")
    .path_params(&[NAME])
    .body(&[])
    .errors(NOT_FOUND_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/baselines", "Baselines", |it| {
        Box::pin(baselines::list(it))
    })
    .summary("The baselines of tools")
    .query(&[SERVER])
    .errors(NOT_FOUND_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::get(
        "/api/v1/baselines/{server}/{tool}",
        "BaselineDocument",
        |it| Box::pin(baselines::get(it)),
    )
    .summary("The baselines of one tool, now and before, its definition, and every alert about it")
    .path_params(&[REQUIRED_SERVER, REQUIRED_TOOL])
    .errors(NOT_FOUND_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/changes", "Changes", |it| {
        Box::pin(baselines::changes(it))
    })
    .summary("Pending approvals, with every change and its evidence")
    .query(&[SERVER])
    .errors(NOT_FOUND_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::post("/api/v1/approve", "Approved", |it| {
        Box::pin(approve::approve(it))
    })
    .summary("Approves changes: alerts, tools of a server, all of a server, or its text changes")
    .body(&[ALERTS, SERVER, SCOPE, TOOL_NAMES, ALL_PENDING, PENDING_TEXTS, REASON])
    .errors(APPROVE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/alerts", "Alerts", |it| Box::pin(alerts::list(it)))
        .summary("Alerts, the newest first")
        .query(&[SERVERS, TOOLS, SEVERITY, STATUS, SINCE, LIMIT, CURSOR])
        .errors(STORE_ERRORS)
        .admin(),
    ApiRoute::get("/api/v1/alerts/{id}", "AlertDocument", |it| {
        Box::pin(alerts::get(it))
    })
    .summary("One alert")
    .path_params(&[ID])
    .errors(NOT_FOUND_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/alerts/{id}/deliveries", "Deliveries", |it| {
        Box::pin(alerts::deliveries(it))
    })
    .summary("The deliveries of an alert")
    .path_params(&[ID])
    .errors(NOT_FOUND_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/deliveries/status", "DeliveryStatus", |it| {
        Box::pin(alerts::status(it))
    })
    .summary("The status of alert deliveries")
    .errors(STORE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/groups", "Groups", |it| {
        Box::pin(workflow::groups(it))
    })
    .summary("The groups a principal may request; for administrators all of them")
    .query(&[PRINCIPAL]),
    ApiRoute::get("/api/v1/states", "States", |it| {
        Box::pin(workflow::states(it))
    })
    .summary("The states of the workflow and the tools that lead from one to another"),
    ApiRoute::get("/api/v1/sessions", "Sessions", |it| {
        Box::pin(sessions::list(it))
    })
    .summary("The caller's workflow sessions; for administrators those of all principals")
    .query(&[PRINCIPAL, LIMIT, CURSOR]),
    ApiRoute::get("/api/v1/sessions/{id}", "SessionDocument", |it| {
        Box::pin(sessions::get(it))
    })
    .summary("What a session requested, saw and did")
    .path_params(&[SESSION_ID])
    .query(&[PRINCIPAL])
    .errors(NOT_FOUND_OR_CONFLICT_ERRORS),
    ApiRoute::delete("/api/v1/sessions/{id}", "SessionDocument", |it| {
        Box::pin(sessions::end(it))
    })
    .summary("Ends a session and the conversations that use it")
    .path_params(&[SESSION_ID])
    .query(&[PRINCIPAL])
    .errors(NOT_FOUND_OR_CONFLICT_ERRORS)
    .admin(),
    ApiRoute::post("/api/v1/decide", "Decision", |it| {
        Box::pin(decide::decide(it))
    })
    .summary("Decides a call that is made elsewhere, and records the decision")
    .body(&[
        REQUIRED_TOOL, ARGUMENTS, SESSION, GROUPS, STATE, ATTRIBUTES, PRINCIPAL,
    ])
    .errors(BUSY_OR_STORE_ERRORS),
    ApiRoute::post("/api/v1/complete", "Completion", |it| {
        Box::pin(decide::complete(it))
    })
    .summary("Reports the outcome of an allowed call; success moves the session")
    .body(&[CALL, OUTCOME, RESULT, ERROR])
    .errors(NOT_FOUND_ERRORS),
    ApiRoute::get("/api/v1/explain", "Explanation", |it| {
        Box::pin(explain::explain(it))
    })
    .summary("Why a principal sees a tool, a resource, a prompt or a skill, or does not")
    .query(&[EXPLAIN_TOOL, PRINCIPAL, SESSION, GROUPS]),
    ApiRoute::get("/api/v1/audit", "Audit", |it| Box::pin(audit::list(it)))
        .summary("Records of the audit log")
        .query(&[
            PRINCIPAL_FILTER,
            TOOL,
            SESSION_FILTER,
            CODE,
            RECORD_KIND,
            DENIED,
            SINCE,
            UNTIL,
            ORDER,
            LIMIT,
            CURSOR,
        ])
        .errors(BUSY_OR_STORE_ERRORS)
        .admin(),
    ApiRoute::post("/api/v1/audit/verify", "Verification", |it| {
        Box::pin(audit::verify(it))
    })
    .summary("Verifies that no record of the audit log was changed, removed or reordered")
    .body(&[HEAD])
    .errors(BUSY_OR_STORE_ERRORS)
    .admin(),
    ApiRoute::get("/api/v1/config", "Config", |it| {
        Box::pin(service::config(it))
    })
    .summary("The settings in force, secrets masked")
    .admin(),
    ApiRoute::get("/api/v1/health", "Health", |it| {
        Box::pin(service::health(it))
    })
    .summary("Whether the gateway runs")
    .open(),
    ApiRoute::get("/api/v1/ready", "Ready", |it| Box::pin(ready::ready(it)))
        .summary(
            "Whether the gateway can serve; status 503 and the reasons where it cannot. Servers that are \
             down are listed in `degraded` and do not make it unready",
        )
        .other_status(StatusCode::SERVICE_UNAVAILABLE)
        .open(),
    ApiRoute::get("/api/v1/openapi.json", "OpenApi", |it| {
        Box::pin(service::openapi(it))
    })
    .summary("This document")
    .open(),
    ApiRoute::get("/api/v1/version", "Version", |it| {
        Box::pin(service::version(it))
    })
    .summary("The version of the program"),
    ApiRoute::get("/metrics", "Metrics", |it| Box::pin(service::metrics(it)))
        .summary("The metrics, for Prometheus")
        .text(metrics::CONTENT_TYPE)
        .errors(STORE_ERRORS),
];

const PRINCIPAL_FILTER: ApiField =
    ApiField::new("principal", ApiFieldType::Text, "of this principal");
const SESSION_FILTER: ApiField = ApiField::new("session", ApiFieldType::Text, "of this session");
