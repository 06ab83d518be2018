//! Tools: those a caller sees, and for administrators all of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_warden::guard::Call;
use toolwarden_warden::inline::strip_hidden;

use super::answer::Answer;
use super::asking::Asking;
use super::error::ApiError;
use super::looked::{Looked, treatment};
use super::page::page;
use super::route::Handled;
use crate::catalogue::{Shelf, ToolItem, ToolList, collision};
use crate::gateway::{Directory, Gateway};

/// `GET /tools`
pub(super) async fn list(asking: Asking) -> Handled {
    let all = asking.given.flag("all");
    if all && !asking.is_admin() {
        return Err(ApiError::admins_only("list tools they do not see"));
    }
    let lists = asking.gateway().look_at_all().await;
    let tools = if all {
        every(&asking, &lists)?
    } else {
        visible(&asking, &lists)?
    };
    let away = lists.iter().filter_map(|(shelf, list)| {
        let reason = list.as_ref().err()?;
        Some(json!({"server": shelf.upstream.name(), "reason": reason}))
    });
    let away: Vec<Value> = away.collect();
    let count = tools.len();
    let (tools, next) = page(tools, &asking.given, key)?;
    Ok(Answer::document(
        "tools",
        json!({"tools": tools, "count": count, "servers_away": away, "next": next}),
    ))
}

/// `GET /tools/{name}`
pub(super) async fn one(asking: Asking) -> Handled {
    let name = asking.given.needed("name")?;
    let lists = asking.gateway().look_at_all().await;
    let tools = if asking.is_admin() {
        every(&asking, &lists)?
    } else {
        visible(&asking, &lists)?
    };
    let named = |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(name);
    if let Some(tool) = tools.iter().find(named) {
        return Ok(Answer::document("tool", json!({"tool": tool})));
    }
    let known = tools.iter().filter_map(|it| it.get("name")?.as_str());
    let suggestion = toolwarden_model::closest(name, known);
    Err(ApiError::not_found(
        format!("you see no tool `{name}`{suggestion}"),
        "`GET /api/v1/explain?tool=…` says why.",
    ))
}

/// The tools a caller sees.
fn visible(asking: &Asking, lists: &[Looked]) -> Result<Vec<Value>, ApiError> {
    let gateway = asking.gateway();
    let call = Call {
        principal: &asking.caller()?.name,
        session: asking.given.text("session"),
        groups: asking.groups(),
        claims: asking.claims(&asking.caller()?.name),
        ..Call::default()
    };
    gateway.guard().within_session(&call, None)?;
    let available = gateway.guard().available(&call)?;
    let visible: BTreeSet<&str> = available.available.iter().map(|it| &**it).collect();
    let directory = gateway.shared.directory.load();
    let tools = listed(lists).filter_map(|(shelf, _, tool)| {
        let shown = shown(&directory, shelf, tool)?;
        visible
            .contains(&**shown)
            .then(|| entry(shelf, tool, Some(shown)))
    });
    Ok(tools.collect())
}

/// Every tool, with what becomes of it.
fn every(asking: &Asking, lists: &[Looked]) -> Result<Vec<Value>, ApiError> {
    let gateway = asking.gateway();
    let groups = gateway.groups_of_tools(&asking.caller()?.name);
    let directory = gateway.shared.directory.load();
    let tools = listed(lists).map(|(shelf, list, tool)| {
        let shown = shown(&directory, shelf, tool);
        let mut entry = entry(shelf, tool, shown);
        if let Value::Object(members) = &mut entry {
            let groups = shown.and_then(|shown| groups.get(shown));
            members.insert(
                "groups".to_owned(),
                json!(groups.cloned().unwrap_or_default()),
            );
            members.insert("treatment".to_owned(), treatment(list, tool));
            let collision = match shown {
                Some(_) => None,
                None => refused(gateway, shelf, &tool.name),
            };
            members.insert("collision".to_owned(), json!(collision));
        }
        entry
    });
    Ok(tools.collect())
}

/// Every tool of every list.
fn listed(lists: &[Looked]) -> impl Iterator<Item = (&Arc<Shelf>, &ToolList, &ToolItem)> {
    lists
        .iter()
        .filter_map(|(shelf, list)| Some((shelf, list.as_ref().ok()?)))
        .flat_map(|(shelf, list)| {
            list.tools.iter().map(move |tool| {
                let tool: &ToolItem = tool;
                (shelf, &**list, tool)
            })
        })
}

fn shown<'d>(directory: &'d Directory, shelf: &Shelf, tool: &ToolItem) -> Option<&'d Arc<str>> {
    directory.tools.shown(shelf.upstream.name(), &tool.name)
}

/// Why a tool has no name, where two servers would share it.
fn refused(gateway: &Gateway, shelf: &Shelf, tool: &str) -> Option<String> {
    let directory = gateway.shared.directory.load();
    let (server, settings) = (shelf.upstream.name(), gateway.settings());
    let prefixed = format!("{server}{}{tool}", settings.separator);
    let name = [tool, &prefixed].into_iter().find(|name| {
        let servers = directory.tools.refused(name).unwrap_or_default();
        servers.iter().any(|it| **it == *server)
    })?;
    let servers = directory.tools.refused(name)?;
    Some(collision(name, servers))
}

fn entry(shelf: &Shelf, tool: &ToolItem, shown: Option<&Arc<str>>) -> Value {
    let text = tool.definition.get();
    let stripped = if shelf.upstream.settings().watch.strip_hidden {
        strip_hidden(text)
    } else {
        Cow::Borrowed(text)
    };
    let mut definition: Value = serde_json::from_str(&stripped).unwrap_or_default();
    if let (Some(shown), Some(name)) = (shown, definition.get_mut("name")) {
        *name = Value::from(&**shown);
    }
    json!({
        "name": shown.map(|it| &**it),
        "server": shelf.upstream.name(),
        "tool": &*tool.name,
        "definition": definition,
    })
}

/// Names a tool among all.
fn key(tool: &Value) -> String {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("server"), text("tool"))
}
