//! Approves pending changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_watch::inline::ApprovalRequest;
use toolwarden_watch::{ApprovalSelection, ApprovedItem, json_documents};

use super::error::ApiError;
use super::request::ApiRequest;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use super::route::HandlerResult;
use crate::gateway::Gateway;

/// `POST /approve`
pub(super) async fn approve(api_request: ApiRequest) -> HandlerResult {
    let given = &api_request.params;
    let selection = selection(given)?;
    let reason = given.required_text("reason")?.to_owned();
    let by = api_request.caller()?.name.to_string();
    let approved = api_request.gateway().watch().approve(ApprovalRequest {
        server: given.owned_text("server"),
        scope: given.owned_text("scope"),
        selection,
        by: by.clone(),
        why: Some(reason.clone()),
    });
    let approved = approved.await?;
    refresh_servers(api_request.gateway(), &approved).await;
    let entries: Vec<Value> = approved.iter().map(json_documents::approved_item).collect();
    Ok(ApiResponse::document(
        "approved",
        json!({"approved": entries, "by": by, "reason": reason}),
    ))
}

/// What the caller approves: alerts or changes by id, tools of a server, all of a server, or its text changes.
fn selection(given: &RequestParams) -> Result<ApprovalSelection, ApiError> {
    let texts = |name: &str| {
        let names = given.names(name).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (ids, tools) = (texts("alerts"), texts("tools"));
    let (all, text) = (given.flag("all"), given.flag("text"));
    let said = [!ids.is_empty(), !tools.is_empty(), all, text];
    if said.iter().filter(|it| **it).count() != 1 {
        return Err(ApiError::invalid(
            "say what is approved, one of: `alerts`, `tools` with `server`, `all` with `server`, `text` with `server`",
        ));
    }
    if ids.is_empty() && given.text("server").is_none() {
        return Err(ApiError::invalid(
            "name the `server`: several may have pending changes of that name",
        ));
    }
    Ok(ApprovalSelection {
        all,
        tools,
        ids,
        text,
    })
}

/// Refreshes the lists of the servers concerned, so that the next caller sees what was approved.
async fn refresh_servers(gateway: &Gateway, approved: &[ApprovedItem]) {
    let servers: BTreeSet<&str> = approved
        .iter()
        .map(|it| match it {
            ApprovedItem::Tool { server, .. }
            | ApprovedItem::RemovedTool { server, .. }
            | ApprovedItem::Change { server, .. } => server.as_str(),
        })
        .collect();
    for server in servers {
        let Some(catalog) = gateway.server_catalog(server) else {
            continue;
        };
        catalog.recheck();
        if catalog.upstream.status().links > 0 {
            let limit = catalog.upstream.settings().timeouts.list;
            // A server that does not respond is refreshed when it does.
            let looked = tokio::time::timeout(limit, gateway.refresh_tools(&catalog, None)).await;
            drop(looked);
        }
    }
}
