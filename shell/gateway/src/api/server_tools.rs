//! The tool lists of servers for the API, and the treatment of each tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_watch::inline::ToolAction;

use crate::catalog::{ServerCatalog, ServerToolList, ToolItem};
use crate::gateway::Gateway;
use toolwarden_model::GroupName;

/// The list of one server, or the reason why there is none.
pub(super) type ServerTools = (Arc<ServerCatalog>, Result<Arc<ServerToolList>, String>);

impl Gateway {
    /// The lists of all servers as the gateway itself sees them, requested concurrently. For a server that does not
    /// respond in time, the last known list is used.
    pub(super) async fn all_server_tools(&self) -> Vec<ServerTools> {
        let catalogs = self.server_catalogs();
        let mut waiting = Vec::with_capacity(catalogs.len());
        for catalog in catalogs.iter() {
            let (gateway, catalog) = (self.clone(), Arc::clone(catalog));
            waiting.push(tokio::spawn(async move {
                let list = gateway.tools_in_time(&catalog).await;
                (catalog, list)
            }));
        }
        let mut lists = Vec::with_capacity(waiting.len());
        for look in waiting {
            // A task that panicked has reported it; the other lists are shown.
            lists.extend(look.await);
        }
        lists
    }

    /// The list of one server, with the timeout of any list.
    async fn tools_in_time(
        &self,
        catalog: &Arc<ServerCatalog>,
    ) -> Result<Arc<ServerToolList>, String> {
        let limit = catalog.upstream.settings().timeouts.list;
        let error = match tokio::time::timeout(limit, self.refresh_tools(catalog, None)).await {
            Ok(Ok(list)) => return Ok(list),
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => {
                let server = catalog.upstream.name();
                format!("server `{server}` did not answer within {limit:?}")
            }
        };
        catalog.last_tools("").ok_or(error)
    }

    /// The groups of every tool, by the name agents know.
    pub(super) fn groups_of_tools(&self, principal: &str) -> BTreeMap<Arc<str>, Vec<GroupName>> {
        let mut groups: BTreeMap<Arc<str>, Vec<GroupName>> = BTreeMap::new();
        for group in self.guard().groups(principal) {
            for tool in group.tools {
                groups.entry(tool).or_default().push(group.name.clone());
            }
        }
        groups
    }
}

/// The treatment of a tool of a list.
pub(super) fn treatment_json(list: &ServerToolList, tool: &ToolItem) -> Value {
    if let Some(why) = &list.blocked {
        return json!({"kind": "block-server", "why": why, "alert": null});
    }
    match &tool.tool_action {
        ToolAction::Serve => json!({"kind": "serve", "why": null, "alert": null}),
        ToolAction::Hide { why } => json!({"kind": "hide", "why": why, "alert": null}),
        ToolAction::Quarantine { why, alert } => {
            json!({"kind": "quarantine", "why": why, "alert": alert})
        }
    }
}
