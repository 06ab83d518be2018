//! Notifications that the gateway sends to agents.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::sleep;
use toolwarden_mcp::serve::encode::notification;
use toolwarden_mcp::{Era, RawObject};

use super::Gateway;
use crate::catalog::{ChangedList, HANDSHAKE_VARIANT, ListKind, ServerCatalog};
use crate::conversation::{Conversation, NotificationFilter, NotificationStream};
use crate::request_context::RequestContext;
use crate::upstream::LinkKey;

/// How long changes of one list are collected before the next notification.
const COALESCE_WINDOW: Duration = Duration::from_millis(100);

/// A list change that is being handled, until this is dropped.
struct ListChangeGuard {
    catalog: Arc<ServerCatalog>,
    list: ChangedList,
    is_finished: bool,
}

impl ListChangeGuard {
    fn begin(catalog: Arc<ServerCatalog>, list: ChangedList) -> Option<Self> {
        // Only if it begins here: dropping a value ends the change for all.
        let is_begun = catalog.changes.begin(&list);
        is_begun.then(|| Self {
            catalog,
            list,
            is_finished: false,
        })
    }

    /// Waits a while; returns whether the list changed again in the meantime.
    async fn wait_for_repeat(&mut self) -> bool {
        sleep(COALESCE_WINDOW).await;
        self.is_finished = !self.catalog.changes.end(&self.list);
        !self.is_finished
    }
}

impl Drop for ListChangeGuard {
    fn drop(&mut self) {
        if !self.is_finished {
            self.catalog.changes.abandon(&self.list);
        }
    }
}

/// The notification that a resource changed.
pub(super) const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// The member of `_meta` that names the stream a notification belongs to.
const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

impl ListKind {
    const fn changed_notification(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            // The extension has no notification of its own.
            Self::Skills => "notifications/resources/list_changed",
        }
    }

    const fn is_wanted(self, wants: &NotificationFilter) -> bool {
        match self {
            Self::Tools => wants.tools,
            Self::Prompts => wants.prompts,
            Self::Resources | Self::Templates | Self::Skills => wants.resources,
        }
    }
}

impl Gateway {
    /// Notifies every agent that a list changed.
    pub(crate) fn notify_all_list_changed(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            self.shared
                .tool_list_notifications
                .fetch_add(1, Ordering::AcqRel);
        }
        for conversation in self.conversations().all() {
            notify_list_changed(&conversation, kind);
        }
    }

    /// Notifies an agent that its own call changed what it may see.
    pub(super) fn notify_state_changed(&self, context: &RequestContext) {
        let mut told = context.agent.era == Era::Handshake;
        for kind in self.state_dependent_lists() {
            told = told
                && context
                    .sender
                    .send(notification(kind.changed_notification(), None));
        }
        let but = told.then_some(&context.conversation);
        self.notify_session_except(&context.conversation.principal, context.session(), but);
    }

    /// Notifies the agents of a session that what they may see changed: the state belongs to the session, whichever
    /// agent changed it.
    pub(crate) fn notify_session_state_changed(&self, principal: &str, session: Option<&str>) {
        self.notify_session_except(principal, session, None);
    }

    fn notify_session_except(
        &self,
        principal: &str,
        session: Option<&str>,
        but: Option<&Arc<Conversation>>,
    ) {
        let is_same =
            |it: &Conversation| *it.principal == *principal && it.session.as_deref() == session;
        for conversation in self.conversations().matching(is_same) {
            if but.is_none_or(|but| !Arc::ptr_eq(but, &conversation)) {
                for kind in self.state_dependent_lists() {
                    notify_list_changed(&conversation, *kind);
                }
            }
        }
    }

    /// The lists that depend on the workflow state.
    fn state_dependent_lists(&self) -> &'static [ListKind] {
        if self.guard().lists_features_by_state() {
            &[ListKind::Tools, ListKind::Prompts, ListKind::Resources]
        } else {
            &[ListKind::Tools]
        }
    }

    /// Notifies the subscribers of a resource that it changed.
    pub(crate) fn notify_resource_updated(
        &self,
        catalog: &ServerCatalog,
        params: Option<&RawValue>,
    ) {
        let members = RawObject::parse_optional(params);
        let Some(uri) = members.text("uri") else {
            return;
        };
        let server = catalog.upstream.name();
        for conversation in self.subscribers(server, &uri) {
            let subscription = conversation.subscription(&uri, server);
            let Some((shown, with)) = subscription else {
                continue;
            };
            if !self.may_still_read(&conversation, catalog, &uri, with) {
                continue;
            }
            let params = with_shown_uri(params, (&uri, &shown));
            let params = params.as_deref();
            match conversation.era() {
                Era::Handshake => {
                    let params = params.map(without_subscription_id);
                    let text = notification(RESOURCE_UPDATED, params.as_deref());
                    conversation.standalone_stream.push(text);
                }
                Era::Stateless => {
                    for listener in conversation.notification_streams() {
                        if listener.filter.updates.contains(&shown) {
                            listener.notify(RESOURCE_UPDATED, params);
                        }
                    }
                }
            }
        }
    }

    /// Fetches the tools of a server in the background.
    pub(crate) fn refresh_in_background(&self, catalog: Arc<ServerCatalog>) {
        let gateway = self.clone();
        tokio::spawn(async move {
            // An error shows in the health of the server, and the next fetch tries again.
            drop(gateway.refresh_tools(&catalog, None).await);
        });
    }

    /// Fetches the tools of a server that reported a change over a link, and notifies agents even if the gateway
    /// sees no change: the change may concern other clients. A server reports a change over every link, so each
    /// agent is notified through the link nearest to it.
    ///
    /// However many reports arrive, the tools are fetched once, and once more for reports that arrive meanwhile.
    pub(crate) fn refresh_and_notify(&self, catalog: Arc<ServerCatalog>, key: LinkKey) {
        let gateway = self.clone();
        let Some(mut change) = ListChangeGuard::begin(catalog, (key, ListKind::Tools)) else {
            return;
        };
        tokio::spawn(async move {
            loop {
                let ListChangeGuard { catalog, list, .. } = &change;
                let told = gateway
                    .shared
                    .tool_list_notifications
                    .load(Ordering::Acquire);
                drop(gateway.refresh_tools(catalog, None).await);
                if gateway
                    .shared
                    .tool_list_notifications
                    .load(Ordering::Acquire)
                    == told
                {
                    gateway.notify_nearest(catalog, &list.0, ListKind::Tools);
                }
                if !change.wait_for_repeat().await {
                    return;
                }
            }
        });
    }

    /// Notifies the agents nearest to a link that a list changed: at once, and once more for all changes that follow
    /// shortly after.
    pub(super) fn notify_coalesced(
        &self,
        catalog: &Arc<ServerCatalog>,
        key: &LinkKey,
        kind: ListKind,
    ) {
        let Some(mut change) = ListChangeGuard::begin(Arc::clone(catalog), (key.clone(), kind))
        else {
            return;
        };
        self.notify_nearest(catalog, key, kind);
        let gateway = self.clone();
        tokio::spawn(async move {
            while change.wait_for_repeat().await {
                let ListChangeGuard { catalog, list, .. } = &change;
                gateway.notify_nearest(catalog, &list.0, list.1);
            }
        });
    }

    /// Notifies the agents nearest to a link that a list of its server changed.
    pub(super) fn notify_nearest(&self, catalog: &ServerCatalog, key: &LinkKey, kind: ListKind) {
        let upstream = &catalog.upstream;
        // Agents of the handshake era may share a link next to a stateless main link.
        let handshake = LinkKey::Variant(HANDSHAKE_VARIANT.into());
        let is_apart = upstream.is_shared() && upstream.has_own_link(&handshake);
        for conversation in self.conversations().all() {
            let own = LinkKey::Conversation(Arc::clone(&conversation.id));
            let over_variant = is_apart && conversation.era() == Era::Handshake;
            let is_nearest = match key {
                LinkKey::Main => !upstream.has_own_link(&own) && !over_variant,
                LinkKey::Variant(_) => over_variant,
                LinkKey::Conversation(_) => own == *key,
            };
            if is_nearest {
                notify_list_changed(&conversation, kind);
            }
        }
    }

    /// The conversation, if there is only one.
    pub(super) fn only_conversation(&self) -> Option<Arc<Conversation>> {
        if self.conversations().len() != 1 {
            return None;
        }
        self.conversations().all().pop()
    }
}

fn notify_list_changed(conversation: &Conversation, kind: ListKind) {
    match conversation.era() {
        Era::Handshake => conversation
            .standalone_stream
            .push(notification(kind.changed_notification(), None)),
        Era::Stateless => {
            for listener in conversation.notification_streams() {
                if kind.is_wanted(&listener.filter) {
                    listener.notify(kind.changed_notification(), None);
                }
            }
        }
    }
}

/// The parameters with the address the agent knows.
pub(super) fn with_shown_uri<'p>(
    params: Option<&'p RawValue>,
    (uri, shown): (&str, &str),
) -> Option<Cow<'p, RawValue>> {
    let params = params?;
    if uri == shown {
        return Some(Cow::Borrowed(params));
    }
    let mut members = RawObject::parse_optional(Some(params));
    members.set("uri", serde_json::Value::from(shown).to_string());
    Some(Cow::Owned(members.to_raw()))
}

/// The parameters without the id of the gateway's own stream.
fn without_subscription_id(params: &RawValue) -> Cow<'_, RawValue> {
    let mut members = RawObject::parse_optional(Some(params));
    let meta = members.object("_meta");
    let Some(mut meta) = meta.filter(|meta| meta.get(SUBSCRIPTION_ID_KEY).is_some()) else {
        return Cow::Borrowed(params);
    };
    meta.remove(SUBSCRIPTION_ID_KEY);
    let rest = (!meta.is_empty()).then(|| meta.to_string());
    match rest {
        Some(rest) => members.set("_meta", rest),
        None => members.remove("_meta"),
    }
    Cow::Owned(members.to_raw())
}

impl NotificationStream {
    /// Sends a notification that names the stream.
    pub(super) fn notify(&self, method: &str, params: Option<&RawValue>) {
        let mut members = RawObject::parse_optional(params);
        let meta = {
            let mut meta = members.object("_meta").unwrap_or_default();
            meta.set(SUBSCRIPTION_ID_KEY, self.id.as_str());
            meta.to_string()
        };
        members.set("_meta", meta);
        let params = members.to_raw();
        self.sender.send(notification(method, Some(&params)));
    }
}
