//! Streams of notifications that the gateway holds open at stateless servers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolwarden_mcp::protocol::stamped;
use toolwarden_mcp::{Audience, FromServer};

use super::Gateway;
use crate::catalogue::{ListError, Looking, Shelf};
use crate::conversation::Stream;
use crate::upstream::{LinkKey, UpstreamAsking};

/// How long a stream of notifications may be silent.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
/// How long after its end a stream is opened again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a server may take to agree to tell.
const AGREE: Duration = Duration::from_secs(2);
/// What a server sends when it does.
const AGREED: &str = "notifications/subscriptions/acknowledged";

impl Gateway {
    /// Has a stateless server tell of a resource, from now on until the stream is dropped. None where it
    /// does not.
    pub(super) async fn listen_for_resource(
        &self,
        shelf: &Arc<Shelf>,
        looking: Looking,
        uri: &str,
    ) -> Option<Stream> {
        let (agreed_in, mut agreed) = watch::channel(false);
        let (gateway, shelf) = (self.clone(), Arc::clone(shelf));
        let wanted = json!({"resourceSubscriptions": [uri]});
        let listening = tokio::spawn(async move {
            let audience: Arc<dyn Audience> = Arc::new(Agreement {
                agreed: agreed_in,
                others: gateway.audience_of(&shelf, &looking.key),
            });
            loop {
                let held = gateway.hold_listening(&shelf, &looking, &wanted, (&audience, true));
                tokio::select! {
                    held = held => if let Ok(false) = held { return },
                    () = gateway.ending() => return,
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        let stream = Stream(listening.abort_handle());
        match tokio::time::timeout(AGREE, agreed.wait_for(|agreed| *agreed)).await {
            // On a shared channel the server's word goes elsewhere.
            Ok(Ok(_)) | Err(_) => Some(stream),
            Ok(Err(_refused)) => None,
        }
    }

    /// Has a stateless server tell when what it lists changes, as long as it is behind the gateway.
    pub(super) fn listen_for_lists(&self, shelf: &Arc<Shelf>) {
        let shared = Arc::downgrade(&self.shared);
        let shelf = Arc::downgrade(shelf);
        tokio::spawn(async move {
            while let Some(true) = listen_once(&shared, &shelf).await {
                tokio::time::sleep(AGAIN).await;
            }
        });
    }

    async fn hold_listening(
        &self,
        shelf: &Arc<Shelf>,
        looking: &Looking,
        wanted: &Value,
        (audience, keeps): (&Arc<dyn Audience>, bool),
    ) -> Result<bool, ListError> {
        let wanted = json!({"notifications": wanted});
        let Ok(wanted) = serde_json::value::to_raw_value(&wanted) else {
            return Ok(false);
        };
        let params = stamped(Some(&wanted), &looking.face);
        let asking = UpstreamAsking {
            limit: Some(FOREVER),
            aside: Some(&**audience),
            keeps,
            ..UpstreamAsking::new("subscriptions/listen", Some(&params))
        };
        let answer = shelf
            .upstream
            .ask(&looking.key, &looking.face, asking)
            .await?;
        // A server that refuses once does not tell.
        Ok(answer.is_ok())
    }
}

/// Notices that a server agreed to tell.
#[derive(Debug)]
struct Agreement {
    agreed: watch::Sender<bool>,
    others: Arc<dyn Audience>,
}

impl Audience for Agreement {
    fn hear(&self, message: FromServer) {
        match &message {
            FromServer::Notification { method, .. } if method == AGREED => {
                self.agreed.send_replace(true);
            }
            _ => self.others.hear(message),
        }
    }
}

/// Listens until the stream ends. Says whether to listen again; nothing when there is nobody to do so.
async fn listen_once(shared: &Weak<crate::gateway::Shared>, shelf: &Weak<Shelf>) -> Option<bool> {
    let gateway = Gateway {
        shared: shared.upgrade()?,
    };
    let shelf = shelf.upgrade()?;
    let current = gateway.shelf(shelf.upstream.name());
    if !current.is_some_and(|it| Arc::ptr_eq(&it, &shelf)) || !shelf.begin_listening() {
        return None;
    }
    let listened = async {
        let looking = shelf.own_sight().await?;
        let wanted = json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
        });
        let audience = gateway.audience_of(&shelf, &looking.key);
        gateway
            .hold_listening(&shelf, &looking, &wanted, (&audience, false))
            .await
    };
    let tells = tokio::select! {
        listened = listened => listened.unwrap_or(true),
        () = gateway.ending() => false,
    };
    // A link that is gone is not opened for this; whoever opens it begins to listen.
    let again = tells && shelf.upstream.is_open(&LinkKey::Main);
    shelf.end_listening();
    // It may have ended with the server, and whatever comes in its place may be a new version of it.
    shelf.tools_changed();
    Some(again)
}
