//! The resource subscriptions of an agent.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use toolwarden_guard::RequestedGroups;
use toolwarden_live_guard::CallerClaims;

use super::{Conversation, ServerStreamGuard, lock};

/// The subscriptions of one conversation.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// By the address the agent knows.
    by_shown: BTreeMap<String, Subscription>,
    /// The addresses the agent knows, by server and the server's own address.
    by_address: BTreeMap<(Arc<str>, Box<str>), String>,
}

/// The context of a subscription request, so that the guard can decide it again.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionContext {
    /// The requested groups.
    pub groups: Option<RequestedGroups>,
    /// The claims of the caller's credential.
    pub claims: Option<Arc<CallerClaims>>,
    /// The skills that the resource belongs to.
    pub skills: Vec<Arc<str>>,
}

#[derive(Debug)]
struct Subscription {
    server: Arc<str>,
    /// The server's own address; the agent may know the resource by another.
    uri: Box<str>,
    context: SubscriptionContext,
    /// The stream on which a stateless server sends updates; it ends with the subscription.
    _stream: Option<ServerStreamGuard>,
}

impl Subscriptions {
    pub(super) fn clear(&mut self) {
        self.by_shown.clear();
        self.by_address.clear();
    }

    fn remove(&mut self, shown: &str) -> Option<Subscription> {
        let gone = self.by_shown.remove(shown)?;
        let address = (Arc::clone(&gone.server), gone.uri.clone());
        if self.by_address.get(&address).is_some_and(|it| it == shown) {
            self.by_address.remove(&address);
        }
        Some(gone)
    }
}

impl Conversation {
    /// Whether the agent may subscribe to one more resource, or is already subscribed to this one.
    #[must_use]
    pub fn has_room_for(&self, shown: &str, most: NonZeroU32) -> bool {
        let subscriptions = lock(&self.subscriptions);
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        subscriptions.by_shown.len() < most || subscriptions.by_shown.contains_key(shown)
    }

    /// Stores a subscription by the address the agent knows, with the stream on which a stateless server sends
    /// updates.
    pub fn subscribe(
        &self,
        shown: &str,
        (server, uri): (Arc<str>, &str),
        with: SubscriptionContext,
        stream: Option<ServerStreamGuard>,
    ) {
        let mut subscriptions = lock(&self.subscriptions);
        drop(subscriptions.remove(shown));
        let address = (Arc::clone(&server), Box::from(uri));
        subscriptions.by_address.insert(address, shown.to_owned());
        let subscription = Subscription {
            server,
            uri: uri.into(),
            context: with,
            _stream: stream,
        };
        subscriptions
            .by_shown
            .insert(shown.to_owned(), subscription);
    }

    /// Replaces the context of a subscription that the agent requested again.
    pub fn renew_subscription(&self, shown: &str, with: SubscriptionContext) {
        if let Some(known) = lock(&self.subscriptions).by_shown.get_mut(shown) {
            known.context = with;
        }
    }

    /// Removes a subscription; returns the server and its own address.
    pub fn unsubscribe(&self, shown: &str) -> Option<(Arc<str>, Box<str>)> {
        let gone = lock(&self.subscriptions).remove(shown)?;
        Some((Arc::clone(&gone.server), gone.uri.clone()))
    }

    /// The address by which the agent subscribed to a server's resource, and the context of the request.
    #[must_use]
    pub fn subscription(&self, uri: &str, server: &str) -> Option<(String, SubscriptionContext)> {
        let subscriptions = lock(&self.subscriptions);
        if subscriptions.by_address.is_empty() {
            return None;
        }
        let address = (Arc::from(server), Box::from(uri));
        let shown = subscriptions.by_address.get(&address)?;
        let subscription = subscriptions.by_shown.get(shown)?;
        Some((shown.clone(), subscription.context.clone()))
    }

    /// The context of any subscription to a resource of a server; otherwise that of the conversation.
    #[must_use]
    pub fn server_subscription_context(&self, server: &str) -> SubscriptionContext {
        let subscriptions = lock(&self.subscriptions);
        let mut all = subscriptions.by_shown.values();
        let known = all.find(|it| *it.server == *server);
        known.map_or_else(
            || SubscriptionContext {
                groups: self.groups.clone(),
                ..SubscriptionContext::default()
            },
            |it| it.context.clone(),
        )
    }

    /// Whether the agent is subscribed to a resource of a server.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str, server: &str) -> bool {
        let subscriptions = lock(&self.subscriptions);
        !subscriptions.by_address.is_empty()
            && subscriptions
                .by_address
                .contains_key(&(Arc::from(server), Box::from(uri)))
    }

    /// The resources of a server it is subscribed to, by the server's own addresses.
    #[must_use]
    pub fn subscribed_uris(&self, server: &str) -> Vec<String> {
        let subscriptions = lock(&self.subscriptions);
        let all = subscriptions.by_shown.values();
        let of_server = all.filter(|it| *it.server == *server);
        of_server.map(|it| it.uri.to_string()).collect()
    }
}
