//! The resources whose changes an agent wants to be notified of.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::{Conversation, Stream, lock};

/// The subscriptions of one conversation.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// By the address the agent knows.
    by_shown: BTreeMap<String, Subscription>,
    /// The addresses the agent knows, by server and the server's own address.
    by_address: BTreeMap<(Arc<str>, Box<str>), String>,
}

#[derive(Debug)]
struct Subscription {
    server: Arc<str>,
    /// The server's own address; the agent may know it by another.
    uri: Box<str>,
    /// The stream on which a stateless server notifies of it; it ends with the subscription.
    _stream: Option<Stream>,
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
    /// Whether the agent may subscribe to one more resource, or has this one already.
    #[must_use]
    pub fn has_room_for(&self, shown: &str, most: NonZeroU32) -> bool {
        let subscriptions = lock(&self.subscriptions);
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        subscriptions.by_shown.len() < most || subscriptions.by_shown.contains_key(shown)
    }

    /// Remembers that the agent wants to hear of a resource, by the address it knows, and the stream on
    /// which a stateless server notifies of it.
    pub fn subscribe(&self, shown: &str, (server, uri): (Arc<str>, &str), stream: Option<Stream>) {
        let mut subscriptions = lock(&self.subscriptions);
        drop(subscriptions.remove(shown));
        let address = (Arc::clone(&server), Box::from(uri));
        subscriptions.by_address.insert(address, shown.to_owned());
        let subscription = Subscription {
            server,
            uri: uri.into(),
            _stream: stream,
        };
        subscriptions
            .by_shown
            .insert(shown.to_owned(), subscription);
    }

    /// Forgets it; gives the server and its own address.
    pub fn unsubscribe(&self, shown: &str) -> Option<(Arc<str>, Box<str>)> {
        let gone = lock(&self.subscriptions).remove(shown)?;
        Some((Arc::clone(&gone.server), gone.uri.clone()))
    }

    /// The address by which the agent wants to hear of a resource of a server.
    #[must_use]
    pub fn subscription(&self, uri: &str, server: &str) -> Option<String> {
        let subscriptions = lock(&self.subscriptions);
        if subscriptions.by_address.is_empty() {
            return None;
        }
        let address = (Arc::from(server), Box::from(uri));
        subscriptions.by_address.get(&address).cloned()
    }

    /// Whether the agent wants to hear of a resource of a server.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str, server: &str) -> bool {
        self.subscription(uri, server).is_some()
    }

    /// The resources of a server it wants to hear of, by the server's own addresses.
    #[must_use]
    pub fn subscribed(&self, server: &str) -> Vec<String> {
        let subscriptions = lock(&self.subscriptions);
        let all = subscriptions.by_shown.values();
        let of_server = all.filter(|it| *it.server == *server);
        of_server.map(|it| it.uri.to_string()).collect()
    }
}
