//! Requests under way on one link, for what servers send meanwhile.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use memchr::memmem;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use toolwarden_mcp::{Era, Members};

use super::asked::Asked;
use super::hearing::ServerAsk;
use super::pass::LEVELS;
use crate::conversation::Conversation;
use crate::outlet::Outlet;

/// The requests under way on one link.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    inner: Mutex<Inner>,
    /// Requests of the server that agents have not answered yet.
    open_requests: AtomicUsize,
    /// Answers that the server has not read yet.
    unsent_answers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    departed: BTreeMap<u64, Entry>,
    /// What the server asked, by its id.
    asks: HashMap<Box<str>, GivenUp>,
}

#[derive(Debug)]
struct Entry {
    flight: Flight,
    /// The agent's own progress token, as JSON text.
    token: Option<String>,
    /// The id of the request on the link.
    id: Option<i64>,
}

/// One request under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(super) asked: Arc<Asked>,
    pub(super) parking: Option<mpsc::Sender<ServerAsk>>,
    /// Closed when it is over; none where it is only likely that this request is meant.
    pub(super) over: Option<watch::Receiver<()>>,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Departed {
    flights: Arc<Flights>,
    number: u64,
}

/// Progress of a request, as its agent is to see it.
pub(crate) struct Progress {
    pub(super) asked: Arc<Asked>,
    pub(super) params: Box<RawValue>,
    pub(super) id: Option<i64>,
}

/// What a server asked and may give up.
#[derive(Debug)]
pub(crate) struct GivenUp {
    waits: AbortHandle,
    /// The id the agent knows it by.
    pub(super) id: i64,
    pub(super) conversation: Arc<Conversation>,
    pub(super) asked_outlet: Option<Outlet>,
}

/// The most answers that wait for a server to read them. A server that does not read loses the rest.
const MOST_ANSWERS: usize = 256;

/// A place among the requests or the answers of a server, until this is dropped.
#[derive(Debug)]
pub(super) struct ServerPlace {
    flights: Arc<Flights>,
    count: fn(&Flights) -> &AtomicUsize,
}

impl ServerPlace {
    fn take(
        flights: &Arc<Flights>,
        count: fn(&Flights) -> &AtomicUsize,
        most: usize,
    ) -> Option<Self> {
        let taken = count(flights).fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| {
            (it < most).then_some(it + 1)
        });
        taken.ok().map(|_| Self {
            flights: Arc::clone(flights),
            count,
        })
    }
}

impl Drop for ServerPlace {
    fn drop(&mut self) {
        (self.count)(&self.flights).fetch_sub(1, Ordering::AcqRel);
    }
}

impl Flights {
    /// A place for one more request of the server, where fewer than so many wait for agents.
    pub(super) fn place_for_request(self: &Arc<Self>, most: usize) -> Option<ServerPlace> {
        ServerPlace::take(self, |it| &it.open_requests, most)
    }

    /// A place for one more answer to the server.
    pub(super) fn place_for_answer(self: &Arc<Self>) -> Option<ServerPlace> {
        ServerPlace::take(self, |it| &it.unsent_answers, MOST_ANSWERS)
    }

    pub(super) fn depart<'p>(
        self: &Arc<Self>,
        flight: Flight,
        params: Option<&'p RawValue>,
    ) -> (Option<Cow<'p, RawValue>>, Departed) {
        let mut inner = self.lock();
        inner.next += 1;
        let number = inner.next;
        let (params, token) = with_token(params, number);
        inner.departed.insert(
            number,
            Entry {
                flight,
                token,
                id: None,
            },
        );
        drop(inner);
        let departed = Departed {
            flights: Arc::clone(self),
            number,
        };
        (params, departed)
    }

    /// Lets a later request of the same agent hear of one under way.
    pub(super) fn hand_over(&self, number: u64, asked: &Arc<Asked>, params: Option<&RawValue>) {
        let members = Members::of_optional(params);
        let meta = members.object("_meta");
        let token = meta.and_then(|meta| meta.get("progressToken").map(str::to_owned));
        if let Some(entry) = self.lock().departed.get_mut(&number) {
            entry.flight.asked = Arc::clone(asked);
            if let (Some(held), Some(token)) = (&mut entry.token, token) {
                *held = token;
            }
        }
    }

    /// The only request under way.
    pub(super) fn only(&self) -> Option<Flight> {
        let inner = self.lock();
        let mut departed = inner.departed.values();
        match (departed.next(), departed.next()) {
            (Some(entry), None) => Some(Flight {
                over: None,
                ..entry.flight.clone()
            }),
            _ => None,
        }
    }

    /// Whose progress it is.
    pub(super) fn progressed(&self, params: Option<&RawValue>) -> Option<Progress> {
        let mut members = Members::of_optional(params);
        let number = members.get("progressToken")?.parse::<u64>().ok()?;
        let inner = self.lock();
        let entry = inner.departed.get(&number)?;
        let token = entry.token.clone()?;
        members.set("progressToken", token);
        Some(Progress {
            asked: Arc::clone(&entry.flight.asked),
            params: members.to_raw(),
            id: entry.id,
        })
    }

    /// Remembers what a server asked, in case that it gives it up.
    pub(super) fn asking(
        &self,
        id: &str,
        waits: AbortHandle,
        number: i64,
        conversation: &Arc<Conversation>,
        asked_outlet: Option<Outlet>,
    ) {
        let ask = GivenUp {
            waits,
            id: number,
            conversation: Arc::clone(conversation),
            asked_outlet,
        };
        if !ask.waits.is_finished() {
            self.lock().asks.insert(id.into(), ask);
        }
    }

    pub(super) fn answered(&self, id: &str) {
        self.lock().asks.remove(id);
    }

    /// Stops waiting for what a server asked.
    pub(super) fn give_up(&self, id: &str) -> Option<GivenUp> {
        let ask = self.lock().asks.remove(id)?;
        ask.waits.abort();
        Some(ask)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is made in one step, so what a panic leaves behind is whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Departed {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Takes the id the request has on the link.
    pub(super) fn sent(&self, id: i64) {
        if let Some(entry) = self.flights.lock().departed.get_mut(&self.number) {
            entry.id = Some(id);
        }
    }
}

impl Drop for Departed {
    fn drop(&mut self) {
        self.flights.lock().departed.remove(&self.number);
    }
}

impl Flight {
    /// Whether the agent wants a notification of a server.
    pub(super) fn wants(&self, method: &str, log: bool, params: Option<&RawValue>) -> bool {
        let agent = &self.asked.agent;
        match (agent.era, log) {
            // It says for each request which messages it wants.
            (Era::Stateless, true) => agent
                .log_level
                .as_deref()
                .is_some_and(|least| reaches(params, least)),
            (Era::Handshake, true) => {
                let level = self.asked.conversation.agent.load().log_level.clone();
                level.is_none_or(|least| reaches(params, &least))
            }
            // Others have no place on the stream of a request, but for tasks.
            (Era::Stateless, false) => method.starts_with("notifications/tasks"),
            (Era::Handshake, false) => true,
        }
    }
}

fn reaches(params: Option<&RawValue>, least: &str) -> bool {
    let rank = |level: &str| LEVELS.iter().position(|it| *it == level);
    let params = Members::of_optional(params);
    let level = params.text("level");
    match (level.as_deref().and_then(rank), rank(least)) {
        (Some(level), Some(least)) => level >= least,
        // A level nobody knows is better shown.
        _ => true,
    }
}

/// The parameters with our number in place of the agent's progress token, and that token.
fn with_token(
    params: Option<&RawValue>,
    number: u64,
) -> (Option<Cow<'_, RawValue>>, Option<String>) {
    let Some(text) = params else {
        return (None, None);
    };
    // Most requests have none, and searching text is cheaper than taking it apart. A name may be written
    // with escapes.
    let has = |word: &[u8]| memmem::find(text.get().as_bytes(), word).is_some();
    if !has(b"progressToken") && !has(b"\\u") {
        return (Some(Cow::Borrowed(text)), None);
    }
    let mut members = Members::of_optional(Some(text));
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
        let (params, token) = with_token(Some(&text), 7);
        assert_eq!(
            params.unwrap().get(),
            r#"{"name":"t","_meta":{"a":1,"progressToken":7}}"#
        );
        assert_eq!(token.as_deref(), Some(r#""x""#));
        let text = raw(r#"{"_meta":{"progress\u0054oken":"y"}}"#);
        let (params, token) = with_token(Some(&text), 7);
        assert_eq!(params.unwrap().get(), r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(token.as_deref(), Some(r#""y""#));
        let text = raw(r#"{"arguments":{"progressToken":"x"}}"#);
        let (params, token) = with_token(Some(&text), 7);
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
            assert_eq!(reaches(Some(&params), least), shown, "{level}");
        }
    }
}
