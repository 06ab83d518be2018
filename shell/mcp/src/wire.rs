//! Requests under time-outs, in the form of either era.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::error::{McpError, ProtocolFault};
use crate::limits::Limits;
use crate::message;
use crate::protocol::{
    Era, METHOD_HEADER, NAME_HEADER, STATELESS_VERSION, VERSION_HEADER, header_value, name_member,
    stamp_meta,
};
use crate::transport::{Call, Transport};

/// A transport with numbered requests.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) transport: Transport,
    pub(crate) limits: Limits,
    next_id: AtomicI64,
}

/// One request before it has an id.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    /// An object, or `null` for none.
    pub(crate) params: Value,
    /// Headers beyond those that the era demands.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) limit: Duration,
}

impl Wire {
    pub(crate) fn new(transport: Transport, limits: &Limits) -> Self {
        Self {
            transport,
            limits: limits.clone(),
            next_id: AtomicI64::new(1),
        }
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn ask(&self, asking: Asking<'_>) -> Result<Box<RawValue>, McpError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let limit = asking.limit;
        let call = call(id, asking)?;
        match timeout(limit, self.transport.exchange(&call)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => {
                if let Some(cancellation) = cancellation(id, &call.method) {
                    self.transport.cancel(cancellation);
                }
                Err(self.silence(call, limit))
            }
        }
    }

    /// Sends a message that wants no answer.
    pub(crate) async fn notify(&self, method: &str) -> Result<(), McpError> {
        let body = message::notification(method, None);
        let limit = self.limits.request;
        match timeout(limit, self.transport.notify(method, body)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(self.timed_out(method, limit)),
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

    /// The error for a missing answer; one with a wrong id explains why it is missing.
    fn silence(&self, call: Call, after: Duration) -> McpError {
        match self.transport.stray() {
            Some(got) => McpError::Protocol {
                method: call.method,
                fault: ProtocolFault::WrongId {
                    expected: call.id,
                    got,
                },
                evidence: self.transport.evidence(),
            },
            None => self.timed_out(&call.method, after),
        }
    }
}

fn call(id: i64, asking: Asking<'_>) -> Result<Call, McpError> {
    let method = asking.method;
    let mut params = match asking.params {
        Value::Object(params) => Some(params),
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(McpError::InvalidParams {
                method: method.to_owned(),
            });
        }
    };
    let mut headers = asking.headers;
    if asking.era == Era::Stateless {
        stamp_meta(params.get_or_insert_default());
        headers.push((VERSION_HEADER.to_owned(), STATELESS_VERSION.to_owned()));
        headers.push((METHOD_HEADER.to_owned(), header_value(method)));
        let name = name_member(method).and_then(|member| params.as_ref()?.get(member)?.as_str());
        if let Some(name) = name {
            headers.push((NAME_HEADER.to_owned(), header_value(name)));
        }
    }
    let params = params.map(Value::Object);
    Ok(Call {
        id,
        method: method.to_owned(),
        body: message::request(id, method, params.as_ref()),
        headers,
    })
}

/// Tells the server that nobody waits; the specification forbids it for the opening requests.
fn cancellation(id: i64, method: &str) -> Option<String> {
    if matches!(method, "initialize" | "server/discover") {
        return None;
    }
    let params = json!({"requestId": id, "reason": "time-out"});
    Some(message::notification(
        "notifications/cancelled",
        Some(&params),
    ))
}
