//! Requests in flight on one link, to attribute messages that servers send in the meantime.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use memchr::memmem;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use toolwarden_mcp::{Era, RawObject};
use toolwarden_model::ServerName;

use crate::conversation::Conversation;
use crate::request_context::RequestContext;
use crate::response_stream::AgentSender;
use crate::upstream::LinkKey;

/// The levels of log messages, from the least to the most urgent.
pub(crate) const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The requests in flight on every link of every server.
#[derive(Debug, Default)]
pub(crate) struct InFlightTable {
    links: Mutex<BTreeMap<ServerName, LinkRequests>>,
}

/// The requests in flight on each link of a server.
type LinkRequests = BTreeMap<LinkKey, Arc<InFlightRequests>>;

impl InFlightTable {
    /// The requests in flight on a link.
    pub(crate) fn on_link(&self, server: &ServerName, key: &LinkKey) -> Arc<InFlightRequests> {
        let mut servers = self.lock();
        if let Some(known) = servers.get(server).and_then(|links| links.get(key)) {
            return Arc::clone(known);
        }
        let made = Arc::<InFlightRequests>::default();
        let links = servers.entry(server.clone()).or_default();
        links.insert(key.clone(), Arc::clone(&made));
        made
    }

    /// Forgets the requests in flight on a link that is gone.
    pub(crate) fn drop_link(&self, server: &ServerName, key: &LinkKey) {
        if let Some(links) = self.lock().get_mut(server) {
            links.remove(key);
        }
    }

    /// Forgets the requests in flight at a server that is replaced or removed.
    pub(crate) fn drop_server(&self, server: &ServerName) {
        self.lock().remove(server);
    }

    /// Forgets the links of conversations that have ended. Requests that were in flight at the end may have added
    /// some since.
    pub(crate) fn retain_conversations(&self, is_open: impl Fn(&str) -> bool) {
        for links in self.lock().values_mut() {
            links.retain(|key, _| match key {
                LinkKey::Conversation(conversation) => is_open(conversation),
                LinkKey::Main | LinkKey::Variant(_) => true,
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, LinkRequests>> {
        // Every change is made in one step, so the table is consistent after a panic.
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server's request for an agent that cannot receive requests directly.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    pub(crate) id: Box<RawValue>,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// The requests in flight on one link.
#[derive(Debug, Default)]
pub(crate) struct InFlightRequests {
    inner: Mutex<Inner>,
    /// Requests of the server that agents have not answered yet.
    open_requests: AtomicUsize,
    /// Responses that the server has not read yet.
    unsent_responses: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    requests: BTreeMap<u64, Entry>,
    /// Requests of the server, by its id.
    server_requests: HashMap<Box<str>, PendingServerRequest>,
}

#[derive(Debug)]
struct Entry {
    request: InFlightRequest,
    /// The agent's own progress token, as JSON text.
    token: Option<String>,
    /// The id of the request on the link.
    id: Option<i64>,
}

/// One request in flight.
#[derive(Clone, Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) context: Arc<RequestContext>,
    pub(crate) question_sender: Option<mpsc::Sender<ServerRequest>>,
    /// Closed when the request has ended; `None` if it is only likely that the message belongs to this request.
    pub(crate) end_signal: Option<watch::Receiver<()>>,
}

/// A request that counts as in flight until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    requests: Arc<InFlightRequests>,
    number: u64,
}

/// A progress notification as its agent is to see it.
pub(crate) struct ProgressUpdate {
    pub(crate) context: Arc<RequestContext>,
    pub(crate) params: Box<RawValue>,
    pub(crate) id: Option<i64>,
}

/// A request of a server that the server may cancel.
#[derive(Debug)]
pub(crate) struct PendingServerRequest {
    wait_task: AbortHandle,
    /// The id the agent knows it by.
    pub(crate) id: i64,
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) sender: Option<AgentSender>,
}

/// The most responses that wait for a server to read them. A server that does not read loses further ones.
const MAX_UNSENT_RESPONSES: usize = 256;

/// A counted request or response of a server, until this is dropped.
#[derive(Debug)]
pub(crate) struct ServerSlot {
    requests: Arc<InFlightRequests>,
    count: fn(&InFlightRequests) -> &AtomicUsize,
}

impl ServerSlot {
    fn acquire(
        flights: &Arc<InFlightRequests>,
        count: fn(&InFlightRequests) -> &AtomicUsize,
        most: usize,
    ) -> Option<Self> {
        let taken = count(flights).fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| {
            (it < most).then_some(it + 1)
        });
        taken.ok().map(|_| Self {
            requests: Arc::clone(flights),
            count,
        })
    }
}

impl Drop for ServerSlot {
    fn drop(&mut self) {
        (self.count)(&self.requests).fetch_sub(1, Ordering::AcqRel);
    }
}

impl InFlightRequests {
    /// Reserves a place for one more request of the server, if fewer than `most` wait for agents.
    pub(crate) fn request_slot(self: &Arc<Self>, most: usize) -> Option<ServerSlot> {
        ServerSlot::acquire(self, |it| &it.open_requests, most)
    }

    /// Reserves a place for one more response to the server.
    pub(crate) fn response_slot(self: &Arc<Self>) -> Option<ServerSlot> {
        ServerSlot::acquire(self, |it| &it.unsent_responses, MAX_UNSENT_RESPONSES)
    }

    pub(crate) fn begin<'p>(
        self: &Arc<Self>,
        in_flight: InFlightRequest,
        params: Option<&'p RawValue>,
    ) -> (Option<Cow<'p, RawValue>>, InFlightGuard) {
        let mut inner = self.lock();
        inner.next += 1;
        let number = inner.next;
        let (params, token) = replace_progress_token(params, number);
        inner.requests.insert(
            number,
            Entry {
                request: in_flight,
                token,
                id: None,
            },
        );
        drop(inner);
        let departed = InFlightGuard {
            requests: Arc::clone(self),
            number,
        };
        (params, departed)
    }

    /// Redirects the messages of a request in flight to a later request of the same agent.
    pub(crate) fn attach(
        &self,
        number: u64,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) {
        let members = RawObject::parse_optional(params);
        let meta = members.object("_meta");
        let token = meta.and_then(|meta| meta.get("progressToken").map(str::to_owned));
        if let Some(entry) = self.lock().requests.get_mut(&number) {
            entry.request.context = Arc::clone(context);
            if let (Some(held), Some(token)) = (&mut entry.token, token) {
                *held = token;
            }
        }
    }

    /// The request in flight, if there is only one.
    pub(crate) fn only_request(&self) -> Option<InFlightRequest> {
        let inner = self.lock();
        let mut departed = inner.requests.values();
        match (departed.next(), departed.next()) {
            (Some(entry), None) => Some(InFlightRequest {
                end_signal: None,
                ..entry.request.clone()
            }),
            _ => None,
        }
    }

    /// Finds the request that a progress notification belongs to.
    pub(crate) fn match_progress(&self, params: Option<&RawValue>) -> Option<ProgressUpdate> {
        let mut members = RawObject::parse_optional(params);
        let number = members.get("progressToken")?.parse::<u64>().ok()?;
        let inner = self.lock();
        let entry = inner.requests.get(&number)?;
        let token = entry.token.clone()?;
        members.set("progressToken", token);
        Some(ProgressUpdate {
            context: Arc::clone(&entry.request.context),
            params: members.to_raw(),
            id: entry.id,
        })
    }

    /// Stores a request of a server, in case the server cancels it.
    pub(crate) fn add_server_request(
        &self,
        id: &str,
        waits: AbortHandle,
        number: i64,
        conversation: &Arc<Conversation>,
        asked_outlet: Option<AgentSender>,
    ) {
        let ask = PendingServerRequest {
            wait_task: waits,
            id: number,
            conversation: Arc::clone(conversation),
            sender: asked_outlet,
        };
        if !ask.wait_task.is_finished() {
            self.lock().server_requests.insert(id.into(), ask);
        }
    }

    pub(crate) fn remove_server_request(&self, id: &str) {
        self.lock().server_requests.remove(id);
    }

    /// Removes a request that its server cancels.
    pub(crate) fn cancel_server_request(&self, id: &str) -> Option<PendingServerRequest> {
        let ask = self.lock().server_requests.remove(id)?;
        ask.wait_task.abort();
        Some(ask)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is made in one step, so the table is consistent after a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightGuard {
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Stores the id of the request on the link.
    pub(crate) fn set_link_id(&self, id: i64) {
        if let Some(entry) = self.requests.lock().requests.get_mut(&self.number) {
            entry.id = Some(id);
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.requests.lock().requests.remove(&self.number);
    }
}

impl InFlightRequest {
    /// Whether the agent wants a notification of a server.
    pub(crate) fn wants(&self, method: &str, log: bool, params: Option<&RawValue>) -> bool {
        let agent = &self.context.agent;
        match (agent.era, log) {
            // A stateless agent says with each request which log messages it wants.
            (Era::Stateless, true) => agent
                .log_level
                .as_deref()
                .is_some_and(|least| reaches_level(params, least)),
            (Era::Handshake, true) => {
                let level = self.context.conversation.agent.load().log_level.clone();
                level.is_none_or(|least| reaches_level(params, &least))
            }
            // Other notifications do not belong on the stream of a request, except those of tasks.
            (Era::Stateless, false) => method.starts_with("notifications/tasks"),
            (Era::Handshake, false) => true,
        }
    }
}

fn reaches_level(params: Option<&RawValue>, least: &str) -> bool {
    let rank = |level: &str| LOG_LEVELS.iter().position(|it| *it == level);
    let params = RawObject::parse_optional(params);
    let level = params.text("level");
    match (level.as_deref().and_then(rank), rank(least)) {
        (Some(level), Some(least)) => level >= least,
        // An unknown level is shown, to be safe.
        _ => true,
    }
}

/// The parameters with the gateway's number in place of the agent's progress token, and that token.
fn replace_progress_token(
    params: Option<&RawValue>,
    number: u64,
) -> (Option<Cow<'_, RawValue>>, Option<String>) {
    let Some(text) = params else {
        return (None, None);
    };
    // Most requests have no token, and searching text is cheaper than parsing it. A name may be written with
    // escapes.
    let has = |word: &[u8]| memmem::find(text.get().as_bytes(), word).is_some();
    if !has(b"progressToken") && !has(b"\\u") {
        return (Some(Cow::Borrowed(text)), None);
    }
    let mut members = RawObject::parse_optional(Some(text));
    let changed = members.object("_meta").and_then(|mut meta| {
        let token = meta.get("progressToken")?.to_owned();
        meta.set("progressToken", number.to_string());
        Some((meta.to_string(), token))
    });
    match changed {
        Some((meta, token)) => {
            members.set("_meta", meta);
            (Some(Cow::Owned(members.to_raw())), Some(token))
        }
        None => (Some(Cow::Borrowed(text)), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tokens_become_ours() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let text = raw(r#"{"name":"t","_meta":{"a":1,"progressToken":"x"}}"#);
        let (params, token) = replace_progress_token(Some(&text), 7);
        assert_eq!(
            params.unwrap().get(),
            r#"{"name":"t","_meta":{"a":1,"progressToken":7}}"#
        );
        assert_eq!(token.as_deref(), Some(r#""x""#));
        let text = raw(r#"{"_meta":{"progress\u0054oken":"y"}}"#);
        let (params, token) = replace_progress_token(Some(&text), 7);
        assert_eq!(params.unwrap().get(), r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(token.as_deref(), Some(r#""y""#));
        let text = raw(r#"{"arguments":{"progressToken":"x"}}"#);
        let (params, token) = replace_progress_token(Some(&text), 7);
        assert_eq!((params.unwrap().get(), token), (text.get(), None));
    }

    #[test]
    fn levels_are_ordered() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for (level, least, shown) in [
            ("info", "warning", false),
            ("error", "warning", true),
            ("odd", "warning", true),
        ] {
            let params = raw(&format!(r#"{{"level":"{level}"}}"#));
            assert_eq!(reaches_level(Some(&params), least), shown, "{level}");
        }
    }
}
