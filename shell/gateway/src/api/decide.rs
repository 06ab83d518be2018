//! Decisions for agents that do not speak MCP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use toolwarden_guard::{ALL_PASSED, Code, Denial, Gate};
use toolwarden_warden::guard::{Call, OpenCall};

use super::answer::{Answer, seconds, time};
use super::asking::Asking;
use super::error::{ApiError, ErrorKind};
use super::pending::Held;
use super::route::Handled;
use super::sessions::state;
use crate::catalogue::{ListError, Naming, collision};
use crate::gateway::Gateway;

/// `POST /decide`
pub(super) async fn decide(asking: Asking) -> Handled {
    let given = &asking.given;
    let principal = asking.about("decide")?;
    let by = Arc::clone(&asking.caller()?.name);
    if !asking.api.pending.has_room(&by) {
        return Err(ApiError::new(
            ErrorKind::TooMany,
            "too many calls were allowed whose end was not told",
            "Tell how they ended with `POST /api/v1/complete`.",
        )
        .retry_after(asking.api.pending.patience().as_secs().max(1)));
    }
    let tool = given.needed("tool")?;
    let nothing = || Value::Object(Map::new());
    let arguments = given.value("arguments").cloned();
    let attributes = given.value("attributes").and_then(Value::as_object);
    let call = Call {
        tool,
        feature: None,
        principal: &principal,
        session: given.text("session"),
        groups: asking.groups(),
        state: given.text("state"),
        arguments: Arc::new(arguments.unwrap_or_else(nothing)),
        attributes: attributes.map_or_else(BTreeMap::new, |it| it.clone().into_iter().collect()),
        variant: None,
        claims: asking.claims(&principal),
    };
    let gateway = asking.gateway();
    gateway.report_load();
    // A list that is stale is looked at before anything is decided by it.
    let looked = gateway.look_before(tool).await;
    let guard = gateway.guard();
    let decided = match guard.within_session(&call, None) {
        Ok(()) => guard.decide_soon(&call).decided().await,
        Err(denial) => Err(denial),
    };
    let open = match decided {
        Ok(open) => open,
        Err(denial) => return Ok(denied(gateway, tool, &denial)),
    };
    if let Err(error) = looked {
        // What cannot be held to its pins is not let through.
        open.not_sent_soon(&error).settled().await.ok();
        let remedy = "Try again when the server answers; `GET /api/v1/servers` says how it fares.";
        return Err(ApiError::new(
            ErrorKind::Unavailable,
            error.to_string(),
            remedy,
        ));
    }
    let session = given.owned("session");
    let due = Instant::now() + asking.api.pending.patience();
    let held = Held {
        open,
        by,
        principal,
        session,
        due,
    };
    Ok(allowed(&asking, held))
}

/// `POST /complete`
pub(super) async fn complete(asking: Asking) -> Handled {
    let given = &asking.given;
    let (id, caller) = (given.needed("call")?.to_owned(), asking.caller()?);
    let pending = &asking.api.pending;
    let Some(held) = pending.take(&id, &caller.name, caller.admin) else {
        return Err(ApiError::not_found(
            format!("no call `{id}` of yours waits for its end"),
            "It was told before, or too late: then the call counts as abandoned.",
        ));
    };
    let outcome = given.needed("outcome")?;
    let result = given.value("result");
    if outcome == "succeeded" && result.is_none() && held.open.checks_output() {
        pending.hold(id, held);
        return Err(ApiError::invalid(
            "results of this tool are held to a schema: send the `result`",
        ));
    }
    let gateway = asking.gateway();
    if outcome == "succeeded" && !caller.admin && gateway.sees_the_end_of(&held.open) {
        pending.hold(id, held);
        return Err(ApiError::new(
            ErrorKind::Forbidden,
            "a server behind this gateway may have the tool, and its success moves a workflow on",
            "Call it at `/mcp`, or have an administrator report its end. If no server has the tool, say so in the \
             policy with `outside: true`.",
        ));
    }
    let Held {
        open,
        by: _,
        principal,
        session,
        due: _,
    } = held;
    let session = session.as_deref();
    let before = state(gateway, &principal, session);
    let settling = match (outcome, result) {
        ("succeeded", Some(result)) => Some(open.succeeded_soon(result)),
        ("succeeded", None) => Some(open.succeeded_unseen_soon()),
        ("failed", _) => Some(open.failed_soon(&given.text("error").unwrap_or("the tool failed"))),
        ("suspended", _) if caller.admin => Some(open.suspended_soon()),
        // The gateway did not see the tool ask for more: an approval would be good for any number of calls.
        ("suspended", _) => Some(open.suspended_used_soon()),
        // INVARIANT: the only other word is `abandoned`, which is what a dropped call is put down as.
        _ => {
            drop(open);
            None
        }
    };
    let rejected = match settling {
        Some(settling) => settling.settled().await.err().map(|it| it.to_string()),
        None => None,
    };
    let after = state(gateway, &principal, session);
    let moved = after != before;
    if moved {
        gateway.tell_session_moved(&principal, session);
    }
    Ok(Answer::document(
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
    /// Looks again at the server of a tool, where that is due before a call.
    async fn look_before(&self, tool: &str) -> Result<(), ListError> {
        let directory = self.shared.directory.load();
        let shelf = directory
            .tools
            .find(tool)
            .and_then(|it| self.shelf(&it.server));
        drop(directory);
        let Some(shelf) = shelf else {
            return Ok(());
        };
        let oldest = shelf.upstream.settings().watch.before_call;
        self.look_at(&shelf, oldest).await.map(drop)
    }

    /// Whether the end of a call moves a workflow, and the gateway sees that end itself or may do so. Then the
    /// caller, who has to follow the workflow, does not report it.
    fn sees_the_end_of(&self, open: &OpenCall) -> bool {
        open.leads_to().is_some() && self.may_serve(open.tool())
    }

    /// Whether a server behind the gateway may have a tool, as settings and policy say. Lists do not decide
    /// it: a server may be down, or not started yet.
    fn may_serve(&self, tool: &str) -> bool {
        let settings = self.settings();
        if settings.servers.is_empty() {
            return false;
        }
        let naming = Naming {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let mut servers = settings.servers.iter();
        self.named(tool).is_some()
            || servers.any(|it| naming.is_of(tool, &it.name))
            || !self.guard().is_outside(tool)
    }
}

fn allowed(asking: &Asking, held: Held) -> Answer {
    let open = &held.open;
    let (id, latency, checks) = (open.id().to_string(), open.latency(), open.checks_output());
    let leads_to = open.leads_to().map(str::to_owned);
    let pending = &asking.api.pending;
    let expires = jiff::Timestamp::now().checked_add(pending.patience());
    pending.hold(id.clone(), held);
    Answer::document(
        "decision",
        json!({
            "allowed": true,
            "code": Code::Allowed.as_str(),
            "gate": null,
            "reason": ALL_PASSED,
            "advice": "Make the call, then tell how it ended with `POST /api/v1/complete`.",
            "pointers": [],
            "retryAfter": null,
            "latency_ms": toolwarden_guard::milliseconds(latency),
            "call": id,
            "expires": expires.ok().map(time),
            "leads_to": leads_to,
            "checks_result": checks,
        }),
    )
}

fn denied(gateway: &Gateway, tool: &str, denial: &Denial) -> Answer {
    let directory = gateway.shared.directory.load();
    let refused = directory.tools.refused(tool);
    let reason = refused.map_or_else(|| denial.reason.clone(), |it| collision(tool, it));
    let pointers = denial.faults.iter().map(|it| it.pointer.as_str());
    Answer::document(
        "decision",
        json!({
            "allowed": false,
            "code": denial.code.as_str(),
            "gate": denial.gate().map(Gate::as_str),
            "reason": reason,
            "advice": denial.advice(),
            "pointers": pointers.collect::<Vec<&str>>(),
            "retryAfter": denial.retry_after.map(seconds),
            "latency_ms": null,
            "call": null,
            "expires": null,
            "leads_to": null,
            "checks_result": null,
        }),
    )
}
