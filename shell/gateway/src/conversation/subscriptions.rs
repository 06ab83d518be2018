//! The resources whose changes an agent wants to be notified of.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use toolwarden_guard::RequestedGroups;
use toolwarden_warden::guard::CallerClaims;

use super::{Conversation, Stream, lock};

/// The subscriptions of one conversation.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// By the address the agent knows.
    by_shown: BTreeMap<String, Subscription>,
    /// The addresses the agent knows, by server and the server's own address.
    by_address: BTreeMap<(Arc<str>, Box<str>), String>,
}

/// With what a subscription was asked for, so that it can be decided again.
#[derive(Clone, Debug, Default)]
pub struct SubscribedWith {
    /// The groups that were asked for.
    pub groups: Option<RequestedGroups>,
    /// What the credential said of the caller.
    pub claims: Option<Arc<CallerClaims>>,
    /// The skills that the resource belongs to.
    pub skills: Vec<Arc<str>>,
}

#[derive(Debug)]
struct Subscription {
    server: Arc<str>,
    /// The server's own address; the agent may know it by another.
    uri: Box<str>,
    with: SubscribedWith,
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
    pub fn subscribe(
        &self,
        shown: &str,
        (server, uri): (Arc<str>, &str),
        with: SubscribedWith,
        stream: Option<Stream>,
    ) {
        let mut subscriptions = lock(&self.subscriptions);
        drop(subscriptions.remove(shown));
        let address = (Arc::clone(&server), Box::from(uri));
        subscriptions.by_address.insert(address, shown.to_owned());
        let subscription = Subscription {
            server,
            uri: uri.into(),
            with,
            _stream: stream,
        };
        subscriptions
            .by_shown
            .insert(shown.to_owned(), subscription);
    }

    /// Remembers with what the agent asked for it once more.
    pub fn renew_subscription(&self, shown: &str, with: SubscribedWith) {
        if let Some(known) = lock(&self.subscriptions).by_shown.get_mut(shown) {
            known.with = with;
        }
    }

    /// Forgets it; gives the server and its own address.
    pub fn unsubscribe(&self, shown: &str) -> Option<(Arc<str>, Box<str>)> {
        let gone = lock(&self.subscriptions).remove(shown)?;
        Some((Arc::clone(&gone.server), gone.uri.clone()))
    }

    /// The address by which the agent wants to hear of a resource of a server, and with what it asked for that.
    #[must_use]
    pub fn subscription(&self, uri: &str, server: &str) -> Option<(String, SubscribedWith)> {
        let subscriptions = lock(&self.subscriptions);
        if subscriptions.by_address.is_empty() {
            return None;
        }
        let address = (Arc::from(server), Box::from(uri));
        let shown = subscriptions.by_address.get(&address)?;
        let subscription = subscriptions.by_shown.get(shown)?;
        Some((shown.clone(), subscription.with.clone()))
    }

    /// With what the agent asked for a resource of a server, whichever one; else with what it began.
    #[must_use]
    pub fn subscribed_with(&self, server: &str) -> SubscribedWith {
        let subscriptions = lock(&self.subscriptions);
        let mut all = subscriptions.by_shown.values();
        let known = all.find(|it| *it.server == *server);
        known.map_or_else(
            || SubscribedWith {
                groups: self.groups.clone(),
                ..SubscribedWith::default()
            },
            |it| it.with.clone(),
        )
    }

    /// Whether the agent wants to hear of a resource of a server.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str, server: &str) -> bool {
        let subscriptions = lock(&self.subscriptions);
        !subscriptions.by_address.is_empty()
            && subscriptions
                .by_address
                .contains_key(&(Arc::from(server), Box::from(uri)))
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
