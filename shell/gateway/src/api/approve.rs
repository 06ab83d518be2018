//! Approving what waits.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_warden::inline::Approving;
use toolwarden_warden::{Approved, Selection, document};

use super::answer::Answer;
use super::asking::Asking;
use super::error::ApiError;
use super::given::Given;
use super::route::Handled;
use crate::gateway::Gateway;

/// `POST /approve`
pub(super) async fn approve(asking: Asking) -> Handled {
    let given = &asking.given;
    let selection = selection(given)?;
    let reason = given.needed("reason")?.to_owned();
    let by = asking.caller()?.name.to_string();
    let approved = asking.gateway().watch().approve(Approving {
        server: given.owned("server"),
        scope: given.owned("scope"),
        selection,
        by: by.clone(),
        why: Some(reason.clone()),
    });
    let approved = approved.await?;
    take_effect(asking.gateway(), &approved).await;
    let entries: Vec<Value> = approved.iter().map(document::approved).collect();
    Ok(Answer::document(
        "approved",
        json!({"approved": entries, "by": by, "reason": reason}),
    ))
}

/// What is to be approved: alerts or changes by id, tools of a server, all of a server, or its changes of text.
fn selection(given: &Given) -> Result<Selection, ApiError> {
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
            "say of which `server`: the same name may wait at several",
        ));
    }
    Ok(Selection {
        all,
        tools,
        ids,
        text,
    })
}

/// Looks again at the servers concerned, so that whoever lists next sees what was approved.
async fn take_effect(gateway: &Gateway, approved: &[Approved]) {
    let servers: BTreeSet<&str> = approved
        .iter()
        .map(|it| match it {
            Approved::Tool { server, .. }
            | Approved::Gone { server, .. }
            | Approved::Change { server, .. } => server.as_str(),
        })
        .collect();
    for server in servers {
        let Some(shelf) = gateway.shelf(server) else {
            continue;
        };
        shelf.recheck();
        if shelf.upstream.status().links > 0 {
            let limit = shelf.upstream.settings().timeouts.list;
            // One that does not answer is looked at when it does.
            let looked = tokio::time::timeout(limit, gateway.look_at(&shelf, None)).await;
            drop(looked);
        }
    }
}
