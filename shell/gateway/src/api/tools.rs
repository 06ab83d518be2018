//! Tools: those a caller sees, or all of them for administrators.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_live_guard::Call;
use toolwarden_model::{ExposedName, OwnName};
use toolwarden_watch::inline::strip_hidden;

use super::error::ApiError;
use super::page::paginate;
use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;
use super::server_tools::{ServerTools, treatment_json};
use crate::catalog::{ServerCatalog, ServerToolList, ToolItem, collision_text};
use crate::gateway::{Gateway, ToolDirectory};

/// `GET /tools`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let all = api_request.params.flag("all");
    if all && !api_request.is_admin() {
        return Err(ApiError::admins_only("list tools they do not see"));
    }
    let lists = api_request.gateway().all_server_tools().await;
    let tools = if all {
        all_tools(&api_request, &lists)?
    } else {
        visible_tools(&api_request, &lists)?
    };
    let away = lists.iter().filter_map(|(catalog, list)| {
        let reason = list.as_ref().err()?;
        Some(json!({"server": catalog.upstream.name(), "reason": reason}))
    });
    let away: Vec<Value> = away.collect();
    let count = tools.len();
    let (tools, next) = paginate(tools, &api_request.params, tool_key)?;
    Ok(ApiResponse::document(
        "tools",
        json!({"tools": tools, "count": count, "servers_away": away, "next": next}),
    ))
}

/// `GET /tools/{name}`
pub(super) async fn get(api_request: ApiRequest) -> HandlerResult {
    let name = api_request.params.required_text("name")?;
    let lists = api_request.gateway().all_server_tools().await;
    let tools = if api_request.is_admin() {
        all_tools(&api_request, &lists)?
    } else {
        visible_tools(&api_request, &lists)?
    };
    let named = |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(name);
    if let Some(tool) = tools.iter().find(named) {
        return Ok(ApiResponse::document("tool", json!({"tool": tool})));
    }
    let known = tools.iter().filter_map(|it| it.get("name")?.as_str());
    let suggestion = toolwarden_model::did_you_mean(name, known);
    Err(ApiError::not_found(
        format!("you see no tool `{name}`{suggestion}"),
        "`GET /api/v1/explain?tool=…` says why.",
    ))
}

/// The tools a caller sees.
fn visible_tools(api_request: &ApiRequest, lists: &[ServerTools]) -> Result<Vec<Value>, ApiError> {
    let gateway = api_request.gateway();
    let call = Call {
        principal: &api_request.caller()?.name,
        session: api_request.params.text("session"),
        groups: api_request.groups(),
        claims: api_request.claims(&api_request.caller()?.name),
        ..Call::default()
    };
    gateway.guard().check_session_groups(&call, None)?;
    let available = gateway.guard().available(&call)?;
    let visible: BTreeSet<&str> = available.available.iter().map(|it| &**it).collect();
    let directory = gateway.shared.directory.load();
    let tools = iter_tools(lists).filter_map(|(catalog, _, tool)| {
        let shown = shown_name(&directory, catalog, tool)?;
        visible
            .contains(shown.as_str())
            .then(|| tool_entry(catalog, tool, Some(shown)))
    });
    Ok(tools.collect())
}

/// Every tool, with its treatment.
fn all_tools(api_request: &ApiRequest, lists: &[ServerTools]) -> Result<Vec<Value>, ApiError> {
    let gateway = api_request.gateway();
    let groups = gateway.groups_of_tools(&api_request.caller()?.name);
    let directory = gateway.shared.directory.load();
    let tools = iter_tools(lists).map(|(catalog, list, tool)| {
        let shown = shown_name(&directory, catalog, tool);
        let mut entry = tool_entry(catalog, tool, shown);
        if let Value::Object(members) = &mut entry {
            let groups = shown.and_then(|shown| groups.get(shown.as_str()));
            members.insert(
                "groups".to_owned(),
                json!(groups.cloned().unwrap_or_default()),
            );
            members.insert("treatment".to_owned(), treatment_json(list, tool));
            let collision = match shown {
                Some(_) => None,
                None => name_conflict(gateway, catalog, &tool.name),
            };
            members.insert("collision".to_owned(), json!(collision));
        }
        entry
    });
    Ok(tools.collect())
}

/// Every tool of every list.
fn iter_tools(
    lists: &[ServerTools],
) -> impl Iterator<Item = (&Arc<ServerCatalog>, &ServerToolList, &ToolItem)> {
    lists
        .iter()
        .filter_map(|(catalog, list)| Some((catalog, list.as_ref().ok()?)))
        .flat_map(|(catalog, list)| {
            list.tools.iter().map(move |tool| {
                let tool: &ToolItem = tool;
                (catalog, &**list, tool)
            })
        })
}

fn shown_name<'d>(
    directory: &'d ToolDirectory,
    catalog: &ServerCatalog,
    tool: &ToolItem,
) -> Option<&'d ExposedName> {
    directory
        .tools
        .shown_name(catalog.upstream.server_name(), &tool.name)
}

/// Why a tool has no name: two servers would share it.
fn name_conflict(gateway: &Gateway, catalog: &ServerCatalog, tool: &OwnName) -> Option<String> {
    let directory = gateway.shared.directory.load();
    let (server, settings) = (catalog.upstream.server_name(), gateway.settings());
    let prefixed = format!("{server}{}{tool}", settings.separator);
    let names = [
        ExposedName::new(Arc::clone(tool.as_arc())),
        ExposedName::new(prefixed),
    ];
    let name = names.into_iter().find(|name| {
        let servers = directory.tools.refused(name).unwrap_or_default();
        servers.contains(server)
    })?;
    let servers = directory.tools.refused(&name)?;
    Some(collision_text(&name, servers))
}

fn tool_entry(catalog: &ServerCatalog, tool: &ToolItem, shown: Option<&ExposedName>) -> Value {
    let text = tool.definition.get();
    let stripped = if catalog.upstream.settings().watch.strip_hidden {
        strip_hidden(text)
    } else {
        Cow::Borrowed(text)
    };
    let mut definition: Value = serde_json::from_str(&stripped).unwrap_or_default();
    if let (Some(shown), Some(name)) = (shown, definition.get_mut("name")) {
        *name = Value::from(shown.as_str());
    }
    json!({
        "name": shown.map(ExposedName::as_str),
        "server": catalog.upstream.name(),
        "tool": tool.name.as_str(),
        "definition": definition,
    })
}

/// The pagination key of a tool.
fn tool_key(tool: &Value) -> String {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("server"), text("tool"))
}
