//! Requests that wait for an agent which can only be told to ask again: between a server that asks
//! while it works and an agent of the stateless era.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::{Members, RpcError};
use toolwarden_model::Fingerprint;
use toolwarden_warden::guard::OpenCall;

use super::asked::Asked;
use super::call::Called;
use super::exchange::{Exchanged, Outgoing};
use super::hearing::{Aside, ServerAsk, send_answer};
use super::{Gateway, Reply};
use crate::catalogue::Shelf;
use crate::upstream::{LinkKey, UpstreamError};

/// What our request states begin with.
const PREFIX: &str = "tw1.";
/// How long a request waits for its agent to ask again.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most requests that wait.
const MOST: usize = 10_000;
/// How long further questions of a server are waited for, so that they go out together.
const TOGETHER: Duration = Duration::from_millis(20);

type Outcome = (
    Option<OpenCall>,
    Result<Result<Box<RawValue>, RpcError>, UpstreamError>,
);

/// The requests that wait.
#[derive(Debug, Default)]
pub struct Parking {
    waiting: Mutex<HashMap<String, Parked>>,
}

/// A request that goes on while its agent is asked.
#[derive(Debug)]
pub(super) struct Parked {
    /// Whose it is and what was asked, so that nobody goes on with another's.
    bound: Fingerprint,
    shelf: Arc<Shelf>,
    key: LinkKey,
    /// What the server calls the tool or prompt; empty where there is none.
    tool: Arc<str>,
    /// Hears the server meanwhile.
    aside: Arc<Aside>,
    outcome: oneshot::Receiver<Outcome>,
    asks: mpsc::Receiver<ServerAsk>,
    /// What the server waits for, by the name the agent was given.
    open: Vec<(String, ServerAsk)>,
    next: usize,
    /// Ends with this value.
    _work: Work,
    since: Instant,
}

/// A request that went on after its agent was asked.
pub(super) struct Resumed {
    shelf: Arc<Shelf>,
    tool: Arc<str>,
    pub(super) open: Option<OpenCall>,
    pub(super) exchanged: Exchanged,
}

/// Work that ends when nobody waits for it.
#[derive(Debug)]
struct Work(AbortHandle);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Parking {
    /// Whether a request state was made here.
    #[must_use]
    pub fn is_ours(state: &str) -> bool {
        state.starts_with(PREFIX)
    }

    /// Lets go of what nobody came back for.
    pub(crate) fn expire(&self, now: Instant) {
        let expired: Vec<_> = self
            .lock()
            .extract_if(|_, parked| now.duration_since(parked.since) > PATIENCE)
            .collect();
        drop(expired);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        // A map that is changed in one step is whole after a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Sends a request whose server may ask the agent meanwhile.
    pub(super) async fn exchange_parked(
        &self,
        asked: &Arc<Asked>,
        outgoing: Outgoing,
        open: Option<OpenCall>,
    ) -> (Option<OpenCall>, Exchanged) {
        let (asks_in, asks) = mpsc::channel(64);
        let (outcome_in, outcome) = oneshot::channel();
        let named = Members::of_optional(outgoing.params.as_deref());
        let tool = Arc::from(named.text("name").as_deref().unwrap_or_default());
        let bound = bound(asked, &outgoing.method, outgoing.params.as_deref());
        let (shelf, key) = (Arc::clone(&outgoing.shelf), outgoing.looking.key.clone());
        let (gateway, for_work) = (self.clone(), Arc::clone(asked));
        let aside = Arc::new(Aside::new(self, &outgoing, asked).parking(asks_in));
        let hears = Arc::clone(&aside);
        let work = tokio::spawn(async move {
            let answered = gateway
                .exchange_with(&for_work, &outgoing, &hears, open.as_ref())
                .await;
            // Nobody is there if the agent left.
            drop(outcome_in.send((open, answered)));
        });
        let parked = Parked {
            bound,
            shelf,
            key,
            tool,
            aside,
            outcome,
            asks,
            open: Vec::new(),
            next: 1,
            _work: Work(work.abort_handle()),
            since: Instant::now(),
        };
        self.wait(parked).await
    }

    /// Goes on with a call for which the agent was asked.
    pub(super) async fn resume_call(
        &self,
        asked: &Arc<Asked>,
        called: &Called<'_>,
        state: &str,
    ) -> Reply {
        // The name is not part of what the state is bound to, for the server has its own.
        let named = self.named(&called.name);
        let is_same = |parked: &Parked| {
            let shelf = named.as_ref().and_then(|it| self.shelf(&it.server));
            let named = shelf.zip(named.as_ref());
            named.is_some_and(|(shelf, it)| parked.is_at(&shelf, &it.name))
        };
        let resumed = self.resume(asked, "tools/call", Some(called.params), state, is_same);
        match resumed.await {
            Err(reply) => reply,
            Ok(Resumed {
                shelf,
                tool,
                open: Some(open),
                exchanged,
            }) => self.settle(asked, &shelf, &tool, open, exchanged).await,
            Ok(Resumed {
                exchanged: Exchanged::Parked(reply),
                ..
            }) => reply,
            Ok(_) => Reply::Nothing,
        }
    }

    /// Goes on with a request for which the agent was asked.
    pub(super) async fn resume(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
        state: &str,
        is_same: impl Fn(&Parked) -> bool,
    ) -> Result<Resumed, Reply> {
        let unknown = || {
            let text = "requestState is unknown, used up or expired; start the request again";
            Reply::error(INVALID_PARAMS, text)
        };
        let bound = bound(asked, method, params);
        let mut parked = {
            let mut waiting = self.shared.parking.lock();
            let found = waiting
                .get(state)
                .is_some_and(|it| it.bound == bound && is_same(it));
            let taken = if found { waiting.remove(state) } else { None };
            taken.ok_or_else(unknown)?
        };
        parked.aside.hand_over(asked, params);
        let members = Members::of_optional(params);
        let responses = members.object("inputResponses").unwrap_or_default();
        let mut left = Vec::new();
        for (name, ask) in std::mem::take(&mut parked.open) {
            match responses.get(&name) {
                Some(response) => {
                    let response = RawValue::from_string(response.to_owned());
                    let response = response.map_err(|_| unknown())?;
                    let upstream = &parked.shelf.upstream;
                    send_answer(upstream, &parked.key, &ask.id, Ok(response)).await;
                }
                None => left.push((name, ask)),
            }
        }
        parked.open = left;
        let (shelf, tool) = (Arc::clone(&parked.shelf), Arc::clone(&parked.tool));
        let (open, exchanged) = self.wait(parked).await;
        Ok(Resumed {
            shelf,
            tool,
            open,
            exchanged,
        })
    }

    /// Waits until the server answers or asks.
    async fn wait(&self, mut parked: Parked) -> (Option<OpenCall>, Exchanged) {
        if parked.open.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut parked.outcome => return ended(outcome),
                ask = parked.asks.recv() => match ask {
                    Some(ask) => parked.take(ask),
                    None => {
                        let outcome = (&mut parked.outcome).await;
                        return ended(outcome);
                    }
                },
            }
            let more = async {
                while let Some(ask) = parked.asks.recv().await {
                    let name = parked.next.to_string();
                    parked.next += 1;
                    parked.open.push((name, ask));
                }
            };
            // What comes later is asked for in the next round.
            drop(tokio::time::timeout(TOGETHER, more).await);
        }
        (None, Exchanged::Parked(self.park(parked)))
    }

    fn park(&self, mut parked: Parked) -> Reply {
        let requests: serde_json::Map<String, Value> = parked
            .open
            .iter()
            .map(|(name, ask)| {
                let params = ask.params.as_ref();
                let params = params.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
                let request = json!({"method": ask.method, "params": params.unwrap_or(json!({}))});
                (name.clone(), request)
            })
            .collect();
        let mut bytes = [0_u8; 16];
        if let Err(error) = getrandom::fill(&mut bytes) {
            return Reply::error(toolwarden_mcp::codes::INTERNAL_ERROR, error.to_string());
        }
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let state = format!("{PREFIX}{token}");
        parked.since = Instant::now();
        let mut waiting = self.shared.parking.lock();
        if waiting.len() >= MOST {
            let text = "too many requests wait for their agents; try again later";
            return Reply::error(toolwarden_mcp::codes::INTERNAL_ERROR, text);
        }
        waiting.insert(state.clone(), parked);
        let result = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state,
        });
        Reply::Result(result.to_string())
    }
}

impl Parked {
    /// Whether it is a request to a server.
    pub(super) fn is_to(&self, shelf: &Shelf) -> bool {
        self.shelf.upstream.name() == shelf.upstream.name()
    }

    /// Whether it is a request for something of a server.
    pub(super) fn is_at(&self, shelf: &Shelf, name: &str) -> bool {
        self.shelf.upstream.name() == shelf.upstream.name() && *self.tool == *name
    }

    fn take(&mut self, ask: ServerAsk) {
        let name = self.next.to_string();
        self.next += 1;
        self.open.push((name, ask));
    }
}

fn ended(outcome: Result<Outcome, oneshot::error::RecvError>) -> (Option<OpenCall>, Exchanged) {
    match outcome {
        Ok((open, Ok(answered))) => (open, Exchanged::Answered(answered)),
        Ok((open, Err(error))) => (open, Exchanged::Failed(error)),
        Err(_dropped) => {
            let text = "the request ended without an answer";
            let reply = Reply::error(toolwarden_mcp::codes::INTERNAL_ERROR, text);
            (None, Exchanged::Parked(reply))
        }
    }
}

/// What names a request whatever its agent says in answer to it.
fn bound(asked: &Asked, method: &str, params: Option<&RawValue>) -> Fingerprint {
    let mut members = Members::of_optional(params);
    for key in ["inputResponses", "requestState", "_meta", "name"] {
        members.remove(key);
    }
    let conversation = &asked.conversation;
    Fingerprint::tagged(
        "toolwarden/parked",
        [&*conversation.id, method, &members.to_string()],
    )
}
