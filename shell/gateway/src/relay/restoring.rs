//! What a new session of a server has to be told again.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::to_raw_value;
use toolwarden_mcp::{Era, Face};
use toolwarden_warden::settings::SessionSharing;

use super::Gateway;
use crate::catalogue::Shelf;
use crate::conversation::Conversation;
use crate::upstream::{LinkKey, UpstreamAsking};

impl Gateway {
    /// Tells a server over a new link what agents had asked of the one before: which resources to tell
    /// of, and which log messages.
    pub(super) fn restore(&self, shelf: &Arc<Shelf>, key: &LinkKey) {
        let upstream = &shelf.upstream;
        let shared = upstream.settings().sessions == SessionSharing::Shared;
        let main_era = upstream.description().map(|it| it.era);
        let serves_agents = match key {
            LinkKey::Main => shared && main_era == Some(Era::Handshake),
            LinkKey::Variant(_) => shared,
            LinkKey::Of(_) => !shared,
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
            LinkKey::Of(id) => self
                .conversations()
                .find(id, self.now())
                .into_iter()
                .collect(),
        };
        for conversation in whose {
            let asked = asked_before(&conversation, upstream.name());
            if asked.is_empty() {
                continue;
            }
            let face = match key {
                LinkKey::Main | LinkKey::Variant(_) => (*upstream.face()).clone(),
                LinkKey::Of(_) => conversation.agent.load().face.clone(),
            };
            tokio::spawn(tell(Arc::clone(shelf), key.clone(), face, asked));
        }
    }
}

type AskedBefore = Vec<(&'static str, serde_json::Value)>;

fn asked_before(conversation: &Conversation, server: &str) -> AskedBefore {
    let uris = conversation.subscribed(server);
    let uris = uris
        .into_iter()
        .map(|uri| ("resources/subscribe", json!({"uri": uri})));
    let agent = conversation.agent.load();
    let level = agent.log_level.as_ref();
    let level = level.filter(|_| agent.era == Era::Handshake);
    let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
    uris.chain(level).collect()
}

async fn tell(shelf: Arc<Shelf>, key: LinkKey, face: Face, asked: AskedBefore) {
    for (method, params) in asked {
        let params = to_raw_value(&params).ok();
        let asking = UpstreamAsking::new(method, params.as_deref());
        // A server that refuses now does not tell.
        drop(shelf.upstream.ask(&key, &face, asking).await);
    }
}
