//! What servers list, looked at for the API, and what becomes of each tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_warden::inline::Treatment;

use crate::catalogue::{Shelf, ToolItem, ToolList};
use crate::gateway::Gateway;

/// The list of one server, or why there is none.
pub(super) type Looked = (Arc<Shelf>, Result<Arc<ToolList>, String>);

impl Gateway {
    /// The lists of all servers with the gateway's own eyes, asked for side by side. A server that does
    /// not answer in time is shown as it was.
    pub(super) async fn look_at_all(&self) -> Vec<Looked> {
        let shelves = self.shelves();
        let mut waiting = Vec::with_capacity(shelves.len());
        for shelf in shelves.iter() {
            let (gateway, shelf) = (self.clone(), Arc::clone(shelf));
            waiting.push(tokio::spawn(async move {
                let list = gateway.look_within(&shelf).await;
                (shelf, list)
            }));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for look in waiting {
            // A look that panicked has said so; the others are shown.
            lists.extend(look.await);
        }
        lists
    }

    /// The list of one server, for which no longer is waited than for any list.
    async fn look_within(&self, shelf: &Arc<Shelf>) -> Result<Arc<ToolList>, String> {
        let limit = shelf.upstream.settings().timeouts.list;
        let error = match tokio::time::timeout(limit, self.look_at(shelf, None)).await {
            Ok(Ok(list)) => return Ok(list),
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => {
                let server = shelf.upstream.name();
                format!("server `{server}` did not answer within {limit:?}")
            }
        };
        shelf.last_tools("").ok_or(error)
    }

    /// The groups of every tool, by the name agents know.
    pub(super) fn groups_of_tools(&self, principal: &str) -> BTreeMap<Arc<str>, Vec<String>> {
        let mut groups: BTreeMap<Arc<str>, Vec<String>> = BTreeMap::new();
        for group in self.guard().groups(principal) {
            for tool in group.tools {
                groups.entry(tool).or_default().push(group.name.clone());
            }
        }
        groups
    }
}

/// What becomes of a tool of a list.
pub(super) fn treatment(list: &ToolList, tool: &ToolItem) -> Value {
    if let Some(why) = &list.blocked {
        return json!({"kind": "block-server", "why": why, "alert": null});
    }
    match &tool.treatment {
        Treatment::Serve => json!({"kind": "serve", "why": null, "alert": null}),
        Treatment::Hide { why } => json!({"kind": "hide", "why": why, "alert": null}),
        Treatment::Quarantine { why, alert } => {
            json!({"kind": "quarantine", "why": why, "alert": alert})
        }
    }
}
