//! Groups and states of the policy.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{EdgeOrigin, EdgeTarget, GroupSummary};

use super::error::ApiError;
use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;

/// `GET /groups`
pub(super) async fn groups(api_request: ApiRequest) -> HandlerResult {
    let principal = api_request.subject("look at groups")?;
    let groups = visible_groups(&api_request, &principal);
    let groups = groups.iter().map(|group| {
        json!({
            "name": group.name,
            "description": group.description,
            "tools": group.tools.iter().map(|it| &**it).collect::<Vec<_>>(),
            "when": group.when,
            "on": group.on,
            "granted": group.granted,
        })
    });
    let groups: Vec<Value> = groups.collect();
    Ok(ApiResponse::document(
        "groups",
        json!({"principal": &*principal, "groups": groups}),
    ))
}

/// `GET /states`
pub(super) async fn states(api_request: ApiRequest) -> HandlerResult {
    let graph = api_request.gateway().guard().states();
    let known = visible_tool_names(&api_request)?;
    let name = |at: usize| graph.states.get(at).map(|state| state.name.as_str());
    let states = graph.states.iter().map(|state| {
        json!({
            "name": state.name,
            "initial": state.initial,
            "reachable": state.reachable,
            "dead_end": state.dead_end,
        })
    });
    let transitions = graph.edges.iter().filter_map(|edge| {
        let tools = edge.tools.iter().map(String::as_str);
        let tools = tools.filter(|it| known.as_ref().is_none_or(|known| known.contains(*it)));
        let tools: Vec<&str> = tools.collect();
        if tools.is_empty() {
            return None;
        }
        // `None` means every state, or the one the session is in.
        let from = match edge.from {
            EdgeOrigin::AnyState => None,
            EdgeOrigin::State(at) => name(at),
        };
        let to = match edge.to {
            EdgeTarget::Same => None,
            EdgeTarget::State(at) => name(at),
        };
        Some(json!({"from": from, "to": to, "tools": tools}))
    });
    Ok(ApiResponse::document(
        "states",
        json!({
            "states": states.collect::<Vec<_>>(),
            "transitions": transitions.collect::<Vec<_>>(),
        }),
    ))
}

/// The groups a caller may see: all for administrators, otherwise those it may request.
fn visible_groups(api_request: &ApiRequest, principal: &str) -> Vec<GroupSummary> {
    let guard = api_request.gateway().guard();
    let mut groups = guard.groups_for(principal, api_request.claims(principal));
    if !api_request.is_admin() {
        groups.retain(|group| group.granted);
    }
    groups
}

/// The tools a caller may see; `None` means all.
fn visible_tool_names(api_request: &ApiRequest) -> Result<Option<BTreeSet<Arc<str>>>, ApiError> {
    if api_request.is_admin() {
        return Ok(None);
    }
    let groups = visible_groups(api_request, &api_request.caller()?.name);
    Ok(Some(groups.into_iter().flat_map(|it| it.tools).collect()))
}
