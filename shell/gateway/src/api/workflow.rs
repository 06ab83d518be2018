//! Groups and states of the policy.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{GroupSummary, Origin, Target};

use super::answer::Answer;
use super::asking::Asking;
use super::error::ApiError;
use super::route::Handled;

/// `GET /groups`
pub(super) async fn groups(asking: Asking) -> Handled {
    let principal = asking.about("look at groups")?;
    let groups = granted(&asking, &principal);
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
    Ok(Answer::document(
        "groups",
        json!({"principal": &*principal, "groups": groups}),
    ))
}

/// `GET /states`
pub(super) async fn states(asking: Asking) -> Handled {
    let graph = asking.gateway().guard().states();
    let known = known_tools(&asking)?;
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
        // None is every state, or the one the session is in.
        let from = match edge.from {
            Origin::AnyState => None,
            Origin::State(at) => name(at),
        };
        let to = match edge.to {
            Target::Same => None,
            Target::State(at) => name(at),
        };
        Some(json!({"from": from, "to": to, "tools": tools}))
    });
    Ok(Answer::document(
        "states",
        json!({
            "states": states.collect::<Vec<_>>(),
            "transitions": transitions.collect::<Vec<_>>(),
        }),
    ))
}

/// The groups a caller may hear of: administrators of all, others of what they may ask for.
fn granted(asking: &Asking, principal: &str) -> Vec<GroupSummary> {
    let guard = asking.gateway().guard();
    let mut groups = guard.groups_for(principal, asking.claims(principal));
    if !asking.is_admin() {
        groups.retain(|group| group.granted);
    }
    groups
}

/// The tools a caller may hear of; none means all.
fn known_tools(asking: &Asking) -> Result<Option<BTreeSet<Arc<str>>>, ApiError> {
    if asking.is_admin() {
        return Ok(None);
    }
    let groups = granted(asking, &asking.caller()?.name);
    Ok(Some(groups.into_iter().flat_map(|it| it.tools).collect()))
}
