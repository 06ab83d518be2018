//! Notification streams that stateless agents hold open.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use toolwarden_mcp::RawObject;
use toolwarden_mcp::error_codes::INVALID_PARAMS;

use super::{Gateway, RpcReply};
use crate::conversation::{NotificationFilter, NotificationStream};
use crate::request_context::RequestContext;

/// Removes the stream when its request ends, however it ends.
struct ListenGuard<'l> {
    gateway: &'l Gateway,
    context: &'l Arc<RequestContext>,
    number: u64,
}

impl Drop for ListenGuard<'_> {
    fn drop(&mut self) {
        let conversation = &self.context.conversation;
        for uri in conversation.remove_notification_stream(self.number) {
            let gone = conversation.unsubscribe(&uri);
            let gone =
                gone.and_then(|(server, uri)| Some((self.gateway.server_catalog(&server)?, uri)));
            let Some((catalog, uri)) = gone else {
                continue;
            };
            let (gateway, context) = (self.gateway.clone(), Arc::clone(self.context));
            tokio::spawn(async move {
                // Notifications from a server that does not stop sending them are ignored.
                drop(gateway.unsubscribe_resource(&context, &catalog, &uri).await);
            });
        }
    }
}

impl Gateway {
    /// Answers `subscriptions/listen`: the requested notifications are sent as they happen, and the response follows
    /// when the gateway shuts down.
    pub(super) async fn listen(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let members = RawObject::parse_optional(params);
        let Some(filter) = members.object("notifications") else {
            return RpcReply::error(INVALID_PARAMS, "params.notifications is not an object");
        };
        let flag = |key: &str| filter.get(key) == Some("true");
        let updates: BTreeSet<String> = filter
            .get("resourceSubscriptions")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let mut honoured = BTreeSet::new();
        for uri in updates {
            let watched = self.subscribe_resource(context, &members, "subscriptions/listen", &uri);
            if watched.await.is_ok() {
                honoured.insert(uri);
            }
        }
        let wants = NotificationFilter {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            updates: honoured,
        };
        let listener = NotificationStream {
            id: context.id.get().to_owned(),
            sender: context.sender.clone(),
            filter: wants.clone(),
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
        // Sent before anything else on this stream, so that the agent knows what will come.
        listener.notify(
            "notifications/subscriptions/acknowledged",
            agreed.as_deref(),
        );
        let listening = ListenGuard {
            gateway: self,
            context,
            number: context.conversation.listen(listener),
        };
        self.wait_for_shutdown().await;
        drop(listening);
        let id: serde_json::Value = serde_json::from_str(context.id.get()).unwrap_or_default();
        let result = json!({
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/subscriptionId": id},
        });
        RpcReply::Result(result.to_string())
    }
}
