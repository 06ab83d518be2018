//! Requests under time-outs, in the form of either era.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::audience::Audience;
use crate::correlate::Outcome;
use crate::error::{McpError, ProtocolFault};
use crate::limits::Limits;
use crate::members::Members;
use crate::message::RpcError;
use crate::protocol::{Era, name_member};
use crate::serve::answer;
use crate::transport::{Call, Cancellation, Transport};

/// A transport with numbered requests.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) transport: Transport,
    pub(crate) limits: Limits,
    next_id: AtomicI64,
    is_closed: AtomicBool,
}

/// One request before it has an id.
pub(crate) struct Asking<'a> {
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    /// The text of the parameters as it is sent.
    pub(crate) params: Option<&'a RawValue>,
    /// Headers beyond those that the era demands.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) limit: Duration,
    pub(crate) aside: Option<&'a dyn Audience>,
    pub(crate) sent: Option<&'a (dyn Fn(i64) + Sync)>,
}

impl Wire {
    pub(crate) fn new(transport: Transport, limits: &Limits) -> Self {
        Self {
            transport,
            limits: limits.clone(),
            next_id: AtomicI64::new(1),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Sends a request and waits for its outcome. Dropping the future gives the request up.
    pub(crate) async fn ask(&self, asking: Asking<'_>) -> Result<Outcome, McpError> {
        self.check_open()?;
        let Asking {
            era,
            method,
            params,
            headers,
            limit,
            aside,
            sent,
        } = asking;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let signs = Arc::<Notify>::default();
        let call = Call {
            id,
            method,
            body: answer::request(&id.to_string(), method, params),
            era,
            name: self.name(era, method, params),
            headers,
            aside,
            signs: &signs,
        };
        let mut waiting = Waiting {
            wire: self,
            era,
            id,
            method,
            reason: Some("given up"),
        };
        if let Some(sent) = sent {
            sent(id);
        }
        let mut exchange = Box::pin(self.transport.exchange(call));
        loop {
            tokio::select! {
                biased;
                outcome = &mut exchange => {
                    waiting.reason = None;
                    return outcome;
                }
                // The server works on it, so the wait starts anew.
                () = signs.notified() => {}
                () = sleep(limit) => {
                    waiting.reason = Some("time-out");
                    return Err(self.silence(id, method, limit));
                }
            }
        }
    }

    /// Sends a message that wants no answer.
    pub(crate) async fn notify(
        &self,
        era: Era,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), McpError> {
        let body = answer::notification(method, params);
        let header = (era == Era::Stateless).then_some(method);
        self.tell(method, header, body).await
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(
        &self,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), McpError> {
        self.tell("an answer", None, answer::outcome(id, outcome))
            .await
    }

    /// Ends the connection; all who hold it are told.
    pub(crate) async fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.transport.close().await;
        }
    }

    /// The error for a step that took too long.
    pub(crate) fn timed_out(&self, method: &str, after: Duration) -> McpError {
        McpError::Timeout {
            method: method.to_owned(),
            after,
            evidence: self.transport.evidence(),
        }
    }

    async fn tell(&self, step: &str, header: Option<&str>, body: String) -> Result<(), McpError> {
        self.check_open()?;
        let limit = self.limits.request;
        match timeout(limit, self.transport.tell(step, header, body)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(self.timed_out(step, limit)),
        }
    }

    fn check_open(&self) -> Result<(), McpError> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(McpError::Closed)
        } else {
            Ok(())
        }
    }

    /// What a header repeats of the parameters.
    fn name(&self, era: Era, method: &str, params: Option<&RawValue>) -> Option<String> {
        if era == Era::Handshake || !self.transport.has_headers() {
            return None;
        }
        let member = name_member(method)?;
        Members::of_optional(params)
            .text(member)
            .map(Cow::into_owned)
    }

    /// The error for a missing answer; one with a wrong id explains why it is missing.
    fn silence(&self, id: i64, method: &str, after: Duration) -> McpError {
        match self.transport.stray() {
            Some(got) => McpError::Protocol {
                method: method.to_owned(),
                fault: ProtocolFault::WrongId { expected: id, got },
                evidence: self.transport.evidence(),
            },
            None => self.timed_out(method, after),
        }
    }
}

/// A request whose answer is awaited; the server is told when nobody waits any more.
struct Waiting<'a> {
    wire: &'a Wire,
    era: Era,
    id: i64,
    method: &'a str,
    /// Why it would be given up now; absent when it is answered.
    reason: Option<&'static str>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // The specification forbids it for the opening requests.
        if matches!(self.method, "initialize" | "server/discover") {
            return;
        }
        if let Some(reason) = self.reason {
            self.wire.transport.cancel(Cancellation {
                era: self.era,
                id: self.id,
                reason,
            });
        }
    }
}
