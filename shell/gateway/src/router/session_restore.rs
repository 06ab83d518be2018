//! Restores the state of agents in a new session of a server.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::to_raw_value;
use toolwarden_mcp::{ClientInfo, Era, McpRequest};
use toolwarden_settings::SessionSharing;

use super::Gateway;
use crate::catalog::ServerCatalog;
use crate::conversation::Conversation;
use crate::upstream::{LinkKey, LinkRoute};

impl Gateway {
    /// Sends a server over a new link what agents had set over the previous one: resource subscriptions and log
    /// levels.
    pub(super) fn restore_session(&self, catalog: &Arc<ServerCatalog>, key: &LinkKey) {
        let upstream = &catalog.upstream;
        let shared = upstream.settings().sessions == SessionSharing::Shared;
        let main_era = upstream.description().map(|it| it.era);
        let serves_agents = match key {
            LinkKey::Main => shared && main_era == Some(Era::Handshake),
            LinkKey::Variant(_) => shared,
            LinkKey::Conversation(_) => !shared,
        };
        if !serves_agents {
            return;
        }
        let whose = match key {
            LinkKey::Main => self.conversations().all(),
            LinkKey::Variant(_) => {
                let mut all = self.conversations().all();
                all.retain(|conversation| conversation.era() == Era::Handshake);
                all
            }
            LinkKey::Conversation(id) => self
                .conversations()
                .find(id, self.now())
                .into_iter()
                .collect(),
        };
        for conversation in whose {
            let requests = restore_requests(&conversation, upstream.name());
            if requests.is_empty() {
                continue;
            }
            let client_info = match key {
                LinkKey::Main | LinkKey::Variant(_) => (*upstream.client_info()).clone(),
                LinkKey::Conversation(_) => conversation.agent.load().client_info.clone(),
            };
            tokio::spawn(send_requests(
                Arc::clone(catalog),
                key.clone(),
                client_info,
                requests,
            ));
        }
    }
}

type RestoreRequests = Vec<(&'static str, serde_json::Value)>;

fn restore_requests(conversation: &Conversation, server: &str) -> RestoreRequests {
    let uris = conversation.subscribed_uris(server);
    let uris = uris
        .into_iter()
        .map(|uri| ("resources/subscribe", json!({"uri": uri})));
    let agent = conversation.agent.load();
    let level = agent.log_level.as_ref();
    let level = level.filter(|_| agent.era == Era::Handshake);
    let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
    uris.chain(level).collect()
}

async fn send_requests(
    catalog: Arc<ServerCatalog>,
    key: LinkKey,
    client_info: ClientInfo,
    requests: RestoreRequests,
) {
    for (method, params) in requests {
        let params = to_raw_value(&params).ok();
        let request = McpRequest::new(method, params.as_deref());
        // A server that refuses now sends no notifications.
        drop(
            catalog
                .upstream
                .ask(LinkRoute::new(&key, &client_info), request)
                .await,
        );
    }
}
