//! Streams of notifications that stateless agents hold open.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use toolwarden_mcp::Members;
use toolwarden_mcp::codes::INVALID_PARAMS;

use super::asked::Asked;
use super::{Gateway, Reply};
use crate::conversation::{Listener, Wants};

/// Takes the stream away when its request ends, however it ends.
struct Listening<'l> {
    gateway: &'l Gateway,
    asked: &'l Arc<Asked>,
    number: u64,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let conversation = &self.asked.conversation;
        for uri in conversation.unlisten(self.number) {
            let gone = conversation.unsubscribe(&uri);
            let gone = gone.and_then(|(server, uri)| Some((self.gateway.shelf(&server)?, uri)));
            let Some((shelf, uri)) = gone else {
                continue;
            };
            let (gateway, asked) = (self.gateway.clone(), Arc::clone(self.asked));
            tokio::spawn(async move {
                // A server that goes on notifying is not heard.
                drop(gateway.unwatch_resource(&asked, &shelf, &uri).await);
            });
        }
    }
}

impl Gateway {
    /// Answers `subscriptions/listen`: what is wanted goes out as it happens, and the answer comes when
    /// the gateway ends.
    pub(super) async fn listen(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let members = Members::of_optional(params);
        let Some(filter) = members.object("notifications") else {
            return Reply::error(INVALID_PARAMS, "params.notifications is no object");
        };
        let flag = |key: &str| filter.get(key) == Some("true");
        let updates: BTreeSet<String> = filter
            .get("resourceSubscriptions")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let mut honoured = BTreeSet::new();
        for uri in updates {
            let watched = self.watch_resource(asked, &members, "subscriptions/listen", &uri);
            if watched.await.is_ok() {
                honoured.insert(uri);
            }
        }
        let wants = Wants {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            updates: honoured,
        };
        let listener = Listener {
            id: asked.id.get().to_owned(),
            outlet: asked.outlet.clone(),
            wants: wants.clone(),
        };
        let mut agreed = serde_json::Map::new();
        for (key, wanted) in [
            ("toolsListChanged", wants.tools),
            ("promptsListChanged", wants.prompts),
            ("resourcesListChanged", wants.resources),
        ] {
            if wanted {
                agreed.insert(key.to_owned(), true.into());
            }
        }
        if !wants.updates.is_empty() {
            agreed.insert("resourceSubscriptions".to_owned(), json!(wants.updates));
        }
        let agreed = json!({"notifications": agreed});
        let agreed = serde_json::value::to_raw_value(&agreed).ok();
        // Before anything else on this stream, so that the agent knows what will come.
        listener.tell(
            "notifications/subscriptions/acknowledged",
            agreed.as_deref(),
        );
        let listening = Listening {
            gateway: self,
            asked,
            number: asked.conversation.listen(listener),
        };
        self.ending().await;
        drop(listening);
        let id: serde_json::Value = serde_json::from_str(asked.id.get()).unwrap_or_default();
        let result = json!({
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/subscriptionId": id},
        });
        Reply::Result(result.to_string())
    }
}
