//! Notification streams that the gateway holds open to stateless servers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolwarden_mcp::protocol::with_client_meta;
use toolwarden_mcp::{McpRequest, MessageHandler, ServerMessage};

use super::Gateway;
use crate::catalog::{ListError, ServerCatalog, ServerView};
use crate::conversation::ServerStreamGuard;
use crate::upstream::{LinkKey, LinkRoute};

/// How long a notification stream may be silent.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
/// The delay before an ended stream is reopened.
const REOPEN_DELAY: Duration = Duration::from_secs(5);
/// How long a server may take to acknowledge a subscription.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(2);
/// The notification by which a server acknowledges a subscription.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

impl Gateway {
    /// Subscribes to updates of a resource at a stateless server, until the stream is dropped. `None` if the server
    /// refuses.
    pub(super) async fn open_resource_stream(
        &self,
        catalog: &Arc<ServerCatalog>,
        view: ServerView,
        uri: &str,
    ) -> Option<ServerStreamGuard> {
        let (agreed_in, mut agreed) = watch::channel(false);
        let (gateway, catalog) = (self.clone(), Arc::clone(catalog));
        let wanted = json!({"resourceSubscriptions": [uri]});
        let listening = tokio::spawn(async move {
            let audience: Arc<dyn MessageHandler> = Arc::new(AcknowledgementHandler {
                acknowledged: agreed_in,
                inner: gateway.link_message_handler(&catalog, &view.key),
            });
            loop {
                let held = gateway.hold_stream(&catalog, &view, &wanted, (&audience, true));
                tokio::select! {
                    held = held => if let Ok(false) = held { return },
                    () = gateway.wait_for_shutdown() => return,
                }
                tokio::time::sleep(REOPEN_DELAY).await;
            }
        });
        let stream = ServerStreamGuard(listening.abort_handle());
        match tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, agreed.wait_for(|agreed| *agreed)).await {
            // On a shared channel the acknowledgement does not arrive on this stream.
            Ok(Ok(_)) | Err(_) => Some(stream),
            Ok(Err(_refused)) => None,
        }
    }

    /// Subscribes to list changes at a stateless server, as long as it is behind the gateway.
    pub(super) fn open_list_stream(&self, catalog: &Arc<ServerCatalog>) {
        let shared = Arc::downgrade(&self.shared);
        let catalog = Arc::downgrade(catalog);
        tokio::spawn(async move {
            while let Some(true) = listen_once(&shared, &catalog).await {
                tokio::time::sleep(REOPEN_DELAY).await;
            }
        });
    }

    async fn hold_stream(
        &self,
        catalog: &Arc<ServerCatalog>,
        view: &ServerView,
        wanted: &Value,
        (audience, keeps): (&Arc<dyn MessageHandler>, bool),
    ) -> Result<bool, ListError> {
        let wanted = json!({"notifications": wanted});
        let Ok(wanted) = serde_json::value::to_raw_value(&wanted) else {
            return Ok(false);
        };
        let params = with_client_meta(Some(&wanted), &view.client_info);
        let mut request = McpRequest::new("subscriptions/listen", Some(&params));
        request.timeout = Some(NO_TIMEOUT);
        request.handler = Some(&**audience);
        let route = LinkRoute {
            keeps_link_open: keeps,
            ..LinkRoute::new(&view.key, &view.client_info)
        };
        let answer = catalog.upstream.ask(route, request).await?;
        // A server that refuses the subscription once does not send notifications.
        Ok(answer.is_ok())
    }
}

/// Notices that a server acknowledged a subscription.
#[derive(Debug)]
struct AcknowledgementHandler {
    acknowledged: watch::Sender<bool>,
    inner: Arc<dyn MessageHandler>,
}

impl MessageHandler for AcknowledgementHandler {
    fn handle(&self, message: ServerMessage) {
        match &message {
            ServerMessage::Notification { method, .. } if method == ACKNOWLEDGED => {
                self.acknowledged.send_replace(true);
            }
            _ => self.inner.handle(message),
        }
    }
}

/// Listens until the stream ends. Returns whether to listen again; `None` if the gateway or server is gone.
async fn listen_once(
    shared: &Weak<crate::gateway::GatewayInner>,
    catalog: &Weak<ServerCatalog>,
) -> Option<bool> {
    let gateway = Gateway {
        shared: shared.upgrade()?,
    };
    let catalog = catalog.upgrade()?;
    let current = gateway.server_catalog(catalog.upstream.name());
    if !current.is_some_and(|it| Arc::ptr_eq(&it, &catalog)) || !catalog.begin_listening() {
        return None;
    }
    let listened = async {
        let view = catalog.gateway_view().await?;
        let wanted = json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
        });
        let audience = gateway.link_message_handler(&catalog, &view.key);
        gateway
            .hold_stream(&catalog, &view, &wanted, (&audience, false))
            .await
    };
    let tells = tokio::select! {
        listened = listened => listened.unwrap_or(true),
        () = gateway.wait_for_shutdown() => false,
    };
    // A lost link is not reopened for this; the request that reopens it starts listening again.
    let again = tells && catalog.upstream.is_open(&LinkKey::Main);
    catalog.end_listening();
    // The stream may have ended with the server, and the server that replaces it may be a new version.
    catalog.mark_tools_stale();
    Some(again)
}
