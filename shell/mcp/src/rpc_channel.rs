//! Requests with timeouts, in the form of either era.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::connection_limits::ConnectionLimits;
use crate::error::{McpError, ProtocolFault};
use crate::mcp_request::McpRequest;
use crate::pending_requests::RpcOutcome;
use crate::protocol::Era;
use crate::rpc_message::RpcError;
use crate::serve::encode;
use crate::transport::{Cancellation, Transport};

/// A transport with numbered requests.
#[derive(Debug)]
pub(crate) struct RpcChannel {
    pub(crate) transport: Transport,
    pub(crate) limits: ConnectionLimits,
    next_id: AtomicI64,
    is_closed: AtomicBool,
}

impl RpcChannel {
    pub(crate) fn new(transport: Transport, limits: &ConnectionLimits) -> Self {
        Self {
            transport,
            limits: limits.clone(),
            next_id: AtomicI64::new(1),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Sends a request and waits for its outcome. Dropping the future cancels the request.
    pub(crate) async fn request(
        &self,
        mut request: McpRequest<'_>,
    ) -> Result<RpcOutcome, McpError> {
        self.check_open()?;
        let signs = Arc::<Notify>::default();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        request.id = id;
        request.activity = Some(&signs);
        let McpRequest { era, method, .. } = request;
        let limit = request.timeout.unwrap_or(self.limits.request);
        let mut waiting = CancelOnDrop {
            channel: self,
            era,
            id,
            method,
            reason: Some("given up"),
        };
        if let Some(on_sent) = request.on_sent {
            on_sent(id);
        }
        let mut exchange = Box::pin(self.transport.exchange(request));
        loop {
            tokio::select! {
                biased;
                outcome = &mut exchange => {
                    waiting.reason = None;
                    return outcome;
                }
                // The server is working on it, so the timeout restarts.
                () = signs.notified() => {}
                () = sleep(limit) => {
                    waiting.reason = Some("time-out");
                    return Err(self.no_response_error(id, method, limit));
                }
            }
        }
    }

    /// Sends a notification.
    pub(crate) async fn notify(
        &self,
        era: Era,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), McpError> {
        let body = encode::notification(method, params);
        let header = (era == Era::Stateless).then_some(method);
        self.send_message(method, header, body).await
    }

    /// Answers a request from the server.
    pub(crate) async fn respond(
        &self,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), McpError> {
        self.send_message("an answer", None, encode::response(id, outcome))
            .await
    }

    /// Closes the connection and wakes all tasks that wait for its end.
    pub(crate) async fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.transport.close().await;
        }
    }

    /// The error for a step that timed out.
    pub(crate) fn timeout_error(&self, method: &str, after: Duration) -> McpError {
        McpError::Timeout {
            method: method.to_owned(),
            after,
            evidence: self.transport.diagnostics(),
        }
    }

    async fn send_message(
        &self,
        step: &str,
        header: Option<&str>,
        body: String,
    ) -> Result<(), McpError> {
        self.check_open()?;
        let limit = self.limits.request;
        match timeout(limit, self.transport.send_message(step, header, body)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(self.timeout_error(step, limit)),
        }
    }

    fn check_open(&self) -> Result<(), McpError> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(McpError::Closed)
        } else {
            Ok(())
        }
    }

    /// The error for a missing response; a response with a wrong id explains why it is missing.
    fn no_response_error(&self, id: i64, method: &str, after: Duration) -> McpError {
        match self.transport.unmatched_id() {
            Some(got) => McpError::Protocol {
                method: method.to_owned(),
                fault: ProtocolFault::WrongId { expected: id, got },
                evidence: self.transport.diagnostics(),
            },
            None => self.timeout_error(method, after),
        }
    }
}

/// A request in flight; dropping it before the response cancels it at the server.
struct CancelOnDrop<'a> {
    channel: &'a RpcChannel,
    era: Era,
    id: i64,
    method: &'a str,
    /// The reason to send if the request is cancelled now; absent when it is answered.
    reason: Option<&'static str>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // The specification forbids cancelling the opening requests.
        if matches!(self.method, "initialize" | "server/discover") {
            return;
        }
        if let Some(reason) = self.reason {
            self.channel.transport.cancel(Cancellation {
                era: self.era,
                id: self.id,
                reason,
            });
        }
    }
}
