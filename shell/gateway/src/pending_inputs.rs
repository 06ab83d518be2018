//! Requests in flight whose agent has to retry them with input that the server asked for.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use toolwarden_live_guard::OpenCall;
use toolwarden_mcp::RpcError;
use toolwarden_model::{Fingerprint, OwnName};

use crate::catalog::ServerCatalog;
use crate::in_flight::ServerRequest;
use crate::request_context::RequestContext;
use crate::upstream::{LinkKey, UpstreamError};

/// What our request states begin with.
pub(crate) const STATE_PREFIX: &str = "tw1.";
/// How long a request waits for its agent to ask again.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(600);
/// The most requests that wait.
pub(crate) const MAX_PENDING: usize = 10_000;
/// How a request ended, with its call if it was one.
pub(crate) type ForwardResult = (
    Option<OpenCall>,
    Result<Result<Box<RawValue>, RpcError>, UpstreamError>,
);

/// Requests that wait for input from their agent.
#[derive(Debug, Default)]
pub(crate) struct PendingInputs {
    by_state: Mutex<HashMap<String, PendingInput>>,
}

/// A request in flight that waits for input from its agent.
#[derive(Debug)]
pub(crate) struct PendingInput {
    /// The conversation and the request, so that no other request can resume it.
    pub(crate) binding: Fingerprint,
    pub(crate) catalog: Arc<ServerCatalog>,
    pub(crate) key: LinkKey,
    /// What the server calls the tool or prompt; empty where there is none.
    pub(crate) tool: OwnName,
    /// Hears the server meanwhile.
    pub(crate) handler: Arc<dyn ResumableHandler>,
    pub(crate) outcome: oneshot::Receiver<ForwardResult>,
    pub(crate) questions: mpsc::Receiver<ServerRequest>,
    /// What the server waits for, by the name the agent was given.
    pub(crate) pending_questions: Vec<(String, ServerRequest)>,
    pub(crate) next: usize,
    /// Ends with this value.
    pub(crate) _task: TaskGuard,
    pub(crate) since: Instant,
}

/// Receives the messages of a server while a request waits.
pub(crate) trait ResumableHandler: Send + Sync + Debug {
    /// Redirects the server's messages to a later request of the same agent, which continues this one.
    fn attach(&self, context: &Arc<RequestContext>, params: Option<&RawValue>);
}

/// A task that is aborted when its request is dropped.
#[derive(Debug)]
pub(crate) struct TaskGuard(pub(crate) AbortHandle);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PendingInputs {
    /// Whether a request state was made here.
    #[must_use]
    pub(crate) fn owns_state(state: &str) -> bool {
        state.starts_with(STATE_PREFIX)
    }

    /// Drops requests whose agent did not come back in time.
    pub(crate) fn expire(&self, now: Instant) {
        let expired: Vec<_> = self
            .lock()
            .extract_if(|_, parked| now.duration_since(parked.since) > MAX_WAIT)
            .collect();
        drop(expired);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingInput>> {
        // A map that is changed in one step is whole after a panic.
        self.by_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingInput {
    /// Whether it is a request to a server.
    pub(crate) fn is_for_server(&self, catalog: &ServerCatalog) -> bool {
        self.catalog.upstream.name() == catalog.upstream.name()
    }

    /// Whether it is a request for something of a server.
    pub(crate) fn is_for_item(&self, catalog: &ServerCatalog, name: &OwnName) -> bool {
        self.catalog.upstream.name() == catalog.upstream.name() && self.tool == *name
    }

    pub(crate) fn add_question(&mut self, ask: ServerRequest) {
        let name = self.next.to_string();
        self.next += 1;
        self.pending_questions.push((name, ask));
    }
}
