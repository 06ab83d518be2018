//! Decisions for agents that do not speak MCP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use toolwarden_guard::{ALL_PASSED, Denial, Gate, ReasonCode};
use toolwarden_live_guard::{Call, OpenCall};
use toolwarden_model::StateName;
use toolwarden_model::{ExposedName, ServerName};
use toolwarden_settings::ServerSettings;

use super::error::{ApiError, ApiErrorKind};
use super::pending_calls::PendingCall;
use super::request::ApiRequest;
use super::response::{ApiResponse, rounded_seconds, time_text};
use super::route::HandlerResult;
use super::sessions::session_state;
use crate::catalog::{ListError, NamingRules, collision_text};
use crate::gateway::Gateway;

/// `POST /decide`
pub(super) async fn decide(api_request: ApiRequest) -> HandlerResult {
    let given = &api_request.params;
    let principal = api_request.subject("decide")?;
    let by = Arc::clone(&api_request.caller()?.name);
    if !api_request.api.pending_calls.has_room(&by) {
        return Err(ApiError::new(
            ApiErrorKind::TooMany,
            "too many allowed calls have no reported outcome",
            "Report their outcome with `POST /api/v1/complete`.",
        )
        .retry_after(api_request.api.pending_calls.timeout().as_secs().max(1)));
    }
    let tool = given.required_text("tool")?;
    let nothing = || Value::Object(Map::new());
    let arguments = given.value("arguments").cloned();
    let attributes = given.value("attributes").and_then(Value::as_object);
    let state = given.text("state").map(StateName::new);
    let call = Call {
        tool,
        feature: None,
        principal: &principal,
        session: given.text("session"),
        groups: api_request.groups(),
        state: state.as_ref(),
        arguments: Arc::new(arguments.unwrap_or_else(nothing)),
        attributes: attributes.map_or_else(BTreeMap::new, |it| it.clone().into_iter().collect()),
        variant: None,
        claims: api_request.claims(&principal),
    };
    let gateway = api_request.gateway();
    gateway.report_load();
    // A stale list is refreshed before a decision relies on it, but not for a call that is denied anyway.
    let looked = if gateway.is_denied_by_policy(&call) {
        Err("the session or a rate changed during the decision".to_owned())
    } else {
        let refreshed = gateway.refresh_before_call(&ExposedName::new(tool)).await;
        refreshed.map_err(|error| error.to_string())
    };
    let guard = gateway.guard();
    let decided = match guard.check_session_groups(&call, None) {
        Ok(()) => guard.decide_async(&call).decided().await,
        Err(denial) => Err(denial),
    };
    let open = match decided {
        Ok(open) => open,
        Err(denial) => return Ok(deny_response(gateway, tool, &denial)),
    };
    if let Err(error) = looked {
        // A tool that cannot be checked against its pin is not allowed.
        open.report_not_sent_async(&error).wait().await.ok();
        let remedy = "Try again when the server answers; `GET /api/v1/servers` shows its status.";
        return Err(ApiError::new(ApiErrorKind::Unavailable, error, remedy));
    }
    let session = given.owned_text("session");
    let due = Instant::now() + api_request.api.pending_calls.timeout();
    let pending_call = PendingCall {
        open,
        caller: by,
        principal,
        session,
        deadline: due,
    };
    Ok(allow_response(&api_request, pending_call))
}

/// `POST /complete`
pub(super) async fn complete(api_request: ApiRequest) -> HandlerResult {
    let given = &api_request.params;
    let (id, caller) = (
        given.required_text("call")?.to_owned(),
        api_request.caller()?,
    );
    let pending = &api_request.api.pending_calls;
    let Some(pending_call) = pending.take(&id, &caller.name, caller.admin) else {
        return Err(ApiError::not_found(
            format!("you have no pending call `{id}`"),
            "Its outcome was already reported, or it expired and counts as abandoned.",
        ));
    };
    let outcome = given.required_text("outcome")?;
    let result = given.value("result");
    if outcome == "succeeded" && result.is_none() && pending_call.open.checks_output() {
        pending.insert(id, pending_call);
        return Err(ApiError::invalid(
            "results of this tool must match a schema: send the `result`",
        ));
    }
    let gateway = api_request.gateway();
    if outcome == "succeeded" && !caller.admin && gateway.observes_outcome(&pending_call.open) {
        pending.insert(id, pending_call);
        return Err(ApiError::new(
            ApiErrorKind::Forbidden,
            "a server behind this gateway may have the tool, and its success moves a workflow on",
            "Call it at `/mcp`, or have an administrator report its outcome. If no server has the tool, say so in the \
             policy with `outside: true`.",
        ));
    }
    let PendingCall {
        open,
        caller: _,
        principal,
        session,
        deadline: _,
    } = pending_call;
    let session = session.as_deref();
    let before = session_state(gateway, &principal, session);
    let settling = match (outcome, result) {
        ("succeeded", Some(result)) => Some(open.report_success_async(result)),
        ("succeeded", None) => Some(open.report_success_unchecked_async()),
        ("failed", _) => {
            Some(open.report_failure_async(&given.text("error").unwrap_or("the tool failed")))
        }
        ("suspended", _) if caller.admin => Some(open.report_suspended_async()),
        // The gateway did not see the tool ask for input: otherwise one approval would cover any number of calls.
        ("suspended", _) => Some(open.report_suspended_state_used_async()),
        // INVARIANT: the only other value is `abandoned`, and dropping a call records it as abandoned.
        _ => {
            drop(open);
            None
        }
    };
    let rejected = match settling {
        Some(settling) => settling.wait().await.err().map(|it| it.to_string()),
        None => None,
    };
    let after = session_state(gateway, &principal, session);
    let moved = after != before;
    if moved {
        gateway.notify_session_state_changed(&principal, session);
    }
    Ok(ApiResponse::document(
        "completion",
        json!({
            "call": id,
            "outcome": if rejected.is_some() { "failed" } else { outcome },
            "rejected": rejected,
            "state": after,
            "moved": moved,
        }),
    ))
}

impl Gateway {
    /// Refreshes the list of a tool's server, if that is due before a call.
    async fn refresh_before_call(&self, tool: &ExposedName) -> Result<(), ListError> {
        let directory = self.shared.directory.load();
        let catalog = directory
            .tools
            .find(tool)
            .and_then(|it| self.server_catalog(it.server.as_str()));
        drop(directory);
        let Some(catalog) = catalog else {
            return Ok(());
        };
        let oldest = catalog.upstream.settings().watch.max_age_before_call;
        self.refresh_tools(&catalog, oldest).await.map(drop)
    }

    /// Whether the outcome of a call moves a workflow and the gateway sees that outcome itself, or may see it. Then the
    /// caller, who must follow the workflow, may not report it.
    fn observes_outcome(&self, open: &OpenCall) -> bool {
        open.next_state().is_some() && self.may_serve(open.tool())
    }

    /// Whether a server behind the gateway may offer a tool, according to settings and policy. Lists do not decide
    /// it: a server may be down, or not started yet.
    fn may_serve(&self, tool: &str) -> bool {
        let settings = self.settings();
        if settings.servers.is_empty() {
            return false;
        }
        let naming = NamingRules {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let mut servers = settings.servers.iter();
        let prefixed =
            |it: &ServerSettings| naming.has_server_prefix(tool, &ServerName::new(&*it.name));
        self.named(&ExposedName::new(tool)).is_some()
            || servers.any(prefixed)
            || !self.guard().is_called_by_client(tool)
    }
}

fn allow_response(api_request: &ApiRequest, pending_call: PendingCall) -> ApiResponse {
    let open = &pending_call.open;
    let (id, latency, checks) = (open.id().to_string(), open.latency(), open.checks_output());
    let leads_to = open.next_state().cloned();
    let pending = &api_request.api.pending_calls;
    let expires = jiff::Timestamp::now().checked_add(pending.timeout());
    pending.insert(id.clone(), pending_call);
    ApiResponse::document(
        "decision",
        json!({
            "allowed": true,
            "code": ReasonCode::Allowed.as_str(),
            "gate": null,
            "reason": ALL_PASSED,
            "advice": "Make the call, then report its outcome with `POST /api/v1/complete`.",
            "pointers": [],
            "retryAfter": null,
            "latency_ms": toolwarden_guard::milliseconds(latency),
            "call": id,
            "expires": expires.ok().map(time_text),
            "leads_to": leads_to,
            "checks_result": checks,
        }),
    )
}

fn deny_response(gateway: &Gateway, tool: &str, denial: &Denial) -> ApiResponse {
    let directory = gateway.shared.directory.load();
    let name = ExposedName::new(tool);
    let refused = directory.tools.refused(&name);
    let reason = refused.map_or_else(|| denial.reason.clone(), |it| collision_text(&name, it));
    let pointers = denial.faults.iter().map(|it| it.pointer.as_str());
    ApiResponse::document(
        "decision",
        json!({
            "allowed": false,
            "code": denial.code.as_str(),
            "gate": denial.gate().map(Gate::as_str),
            "reason": reason,
            "advice": denial.advice(),
            "pointers": pointers.collect::<Vec<&str>>(),
            "retryAfter": denial.retry_after.map(rounded_seconds),
            "latency_ms": null,
            "call": null,
            "expires": null,
            "leads_to": null,
            "checks_result": null,
        }),
    )
}
