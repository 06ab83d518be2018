//! What agents are told without having asked.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;
use toolwarden_mcp::serve::answer::notification;
use toolwarden_mcp::{Era, Members};

use super::Gateway;
use super::asked::Asked;
use crate::catalogue::{ChangedList, HANDSHAKE, Kind, Shelf};
use crate::conversation::{Conversation, Listener, Wants};
use crate::upstream::LinkKey;

/// How long changes of one list are gathered before they are passed on again.
const BETWEEN_CHANGES: Duration = Duration::from_millis(100);

/// A change of a list that is being dealt with, until this is dropped.
struct Change {
    shelf: Arc<Shelf>,
    list: ChangedList,
    is_over: bool,
}

impl Change {
    fn begin(shelf: Arc<Shelf>, list: ChangedList) -> Option<Self> {
        // Only where it is begun here: a value that is dropped ends the change for all.
        let is_begun = shelf.changes.begin(&list);
        is_begun.then(|| Self {
            shelf,
            list,
            is_over: false,
        })
    }

    /// Waits a while; says whether the change came again meanwhile.
    async fn comes_again(&mut self) -> bool {
        sleep(BETWEEN_CHANGES).await;
        self.is_over = !self.shelf.changes.end(&self.list);
        !self.is_over
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if !self.is_over {
            self.shelf.changes.abandon(&self.list);
        }
    }
}

/// Says that a resource changed.
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// The member of `_meta` that names the stream a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Kind {
    const fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            // The extension has no notification of its own.
            Self::Skills => "notifications/resources/list_changed",
        }
    }

    const fn is_wanted(self, wants: &Wants) -> bool {
        match self {
            Self::Tools => wants.tools,
            Self::Prompts => wants.prompts,
            Self::Resources | Self::Templates | Self::Skills => wants.resources,
        }
    }
}

impl Gateway {
    /// Tells every agent that a list is not what it was.
    pub(crate) fn tell_all_list_changed(&self, kind: Kind) {
        if kind == Kind::Tools {
            self.shared.tools_told.fetch_add(1, Ordering::AcqRel);
        }
        for conversation in self.conversations().all() {
            tell_list_changed(&conversation, kind);
        }
    }

    /// Tells an agent that a call of its own changed what it may see.
    pub(super) fn tell_moved(&self, asked: &Asked) {
        let mut told = asked.agent.era == Era::Handshake;
        for kind in self.lists_by_state() {
            told = told && asked.outlet.send(notification(kind.changed(), None));
        }
        let but = told.then_some(&asked.conversation);
        self.tell_moved_but(&asked.conversation.principal, asked.session(), but);
    }

    /// Tells the agents of a session that what they may see changed: the state is the session's,
    /// whichever of them moved it.
    pub(crate) fn tell_session_moved(&self, principal: &str, session: Option<&str>) {
        self.tell_moved_but(principal, session, None);
    }

    fn tell_moved_but(
        &self,
        principal: &str,
        session: Option<&str>,
        but: Option<&Arc<Conversation>>,
    ) {
        let is_same =
            |it: &Conversation| *it.principal == *principal && it.session.as_deref() == session;
        for conversation in self.conversations().matching(is_same) {
            if but.is_none_or(|but| !Arc::ptr_eq(but, &conversation)) {
                for kind in self.lists_by_state() {
                    tell_list_changed(&conversation, *kind);
                }
            }
        }
    }

    /// The lists that the state of a workflow changes.
    fn lists_by_state(&self) -> &'static [Kind] {
        if self.guard().lists_features_by_state() {
            &[Kind::Tools, Kind::Prompts, Kind::Resources]
        } else {
            &[Kind::Tools]
        }
    }

    /// Tells those who want to hear of a resource that it changed.
    pub(crate) fn tell_updated(&self, shelf: &Shelf, params: Option<&RawValue>) {
        let members = Members::of_optional(params);
        let Some(uri) = members.text("uri") else {
            return;
        };
        let server = shelf.upstream.name();
        for conversation in self.subscribers(server, &uri) {
            let subscription = conversation.subscription(&uri, server);
            let Some((shown, with)) = subscription else {
                continue;
            };
            if !self.may_still_read(&conversation, shelf, &uri, with) {
                continue;
            }
            let params = with_uri(params, (&uri, &shown));
            let params = params.as_deref();
            match conversation.era() {
                Era::Handshake => {
                    let params = params.map(without_stream);
                    let text = notification(UPDATED, params.as_deref());
                    conversation.standing.push(text);
                }
                Era::Stateless => {
                    for listener in conversation.listeners() {
                        if listener.wants.updates.contains(&shown) {
                            listener.tell(UPDATED, params);
                        }
                    }
                }
            }
        }
    }

    /// Looks at a server in the background.
    pub(crate) fn look_soon(&self, shelf: Arc<Shelf>) {
        let gateway = self.clone();
        tokio::spawn(async move {
            // What goes wrong shows in the health of the server, and the next look tries again.
            drop(gateway.look_at(&shelf, None).await);
        });
    }

    /// Looks at a server that says over a link that its tools changed, and passes that on, also where the
    /// gateway sees no change: what changed may be for other clients. A server says so over every link, so
    /// that each agent hears it from the one that is nearest to it.
    ///
    /// However often a server says so, it is looked at once, and once more for what came meanwhile.
    pub(crate) fn look_and_pass_on(&self, shelf: Arc<Shelf>, key: LinkKey) {
        let gateway = self.clone();
        let Some(mut change) = Change::begin(shelf, (key, Kind::Tools)) else {
            return;
        };
        tokio::spawn(async move {
            loop {
                let Change { shelf, list, .. } = &change;
                let told = gateway.shared.tools_told.load(Ordering::Acquire);
                drop(gateway.look_at(shelf, None).await);
                if gateway.shared.tools_told.load(Ordering::Acquire) == told {
                    gateway.tell_nearest(shelf, &list.0, Kind::Tools);
                }
                if !change.comes_again().await {
                    return;
                }
            }
        });
    }

    /// Tells the agents that a link is nearest to that a list changed: at once, and for all that comes soon
    /// after once more.
    pub(super) fn pass_on(&self, shelf: &Arc<Shelf>, key: &LinkKey, kind: Kind) {
        let Some(mut change) = Change::begin(Arc::clone(shelf), (key.clone(), kind)) else {
            return;
        };
        self.tell_nearest(shelf, key, kind);
        let gateway = self.clone();
        tokio::spawn(async move {
            while change.comes_again().await {
                let Change { shelf, list, .. } = &change;
                gateway.tell_nearest(shelf, &list.0, list.1);
            }
        });
    }

    /// Tells the agents that a link is nearest to that a list of its server changed.
    pub(super) fn tell_nearest(&self, shelf: &Shelf, key: &LinkKey, kind: Kind) {
        let upstream = &shelf.upstream;
        // Agents of the handshake era may share a link beside a stateless main one.
        let handshake = LinkKey::Variant(HANDSHAKE.into());
        let is_apart = upstream.is_shared() && upstream.has_own_link(&handshake);
        for conversation in self.conversations().all() {
            let own = LinkKey::Of(Arc::clone(&conversation.id));
            let over_variant = is_apart && conversation.era() == Era::Handshake;
            let is_nearest = match key {
                LinkKey::Main => !upstream.has_own_link(&own) && !over_variant,
                LinkKey::Variant(_) => over_variant,
                LinkKey::Of(_) => own == *key,
            };
            if is_nearest {
                tell_list_changed(&conversation, kind);
            }
        }
    }

    /// The only conversation there is.
    pub(super) fn only_conversation(&self) -> Option<Arc<Conversation>> {
        if self.conversations().len() != 1 {
            return None;
        }
        self.conversations().all().pop()
    }
}

fn tell_list_changed(conversation: &Conversation, kind: Kind) {
    match conversation.era() {
        Era::Handshake => conversation
            .standing
            .push(notification(kind.changed(), None)),
        Era::Stateless => {
            for listener in conversation.listeners() {
                if kind.is_wanted(&listener.wants) {
                    listener.tell(kind.changed(), None);
                }
            }
        }
    }
}

/// The parameters with the address the agent knows.
pub(super) fn with_uri<'p>(
    params: Option<&'p RawValue>,
    (uri, shown): (&str, &str),
) -> Option<Cow<'p, RawValue>> {
    let params = params?;
    if uri == shown {
        return Some(Cow::Borrowed(params));
    }
    let mut members = Members::of_optional(Some(params));
    members.set("uri", serde_json::Value::from(shown).to_string());
    Some(Cow::Owned(members.to_raw()))
}

/// The parameters without the stream of ours on which they came.
fn without_stream(params: &RawValue) -> Cow<'_, RawValue> {
    let mut members = Members::of_optional(Some(params));
    let meta = members.object("_meta");
    let Some(mut meta) = meta.filter(|meta| meta.get(SUBSCRIPTION).is_some()) else {
        return Cow::Borrowed(params);
    };
    meta.remove(SUBSCRIPTION);
    let rest = (!meta.is_empty()).then(|| meta.to_string());
    match rest {
        Some(rest) => members.set("_meta", rest),
        None => members.remove("_meta"),
    }
    Cow::Owned(members.to_raw())
}

impl Listener {
    /// Sends a notification that names the stream.
    pub(super) fn tell(&self, method: &str, params: Option<&RawValue>) {
        let mut members = Members::of_optional(params);
        let meta = {
            let mut meta = members.object("_meta").unwrap_or_default();
            meta.set(SUBSCRIPTION, self.id.as_str());
            meta.to_string()
        };
        members.set("_meta", meta);
        let params = members.to_raw();
        self.outlet.send(notification(method, Some(&params)));
    }
}
