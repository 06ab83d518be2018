//! The HTTP+SSE transport of 2024-11-05: answers arrive on one long event stream.

use std::sync::Arc;

use reqwest::Method;
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolwarden_http::{Address, Answer};
use toolwarden_model::event_stream::{Event, EventReader};

use super::http_base::{HttpBase, Outgoing, content_type, fault, same_origin};
use super::{Call, OwnedTask};
use crate::audience::{Ear, Received};
use crate::correlate::{Correlator, Ended, Outcome};
use crate::error::{McpError, ProtocolFault};
use crate::message::{Message, RpcError};

/// A server spoken to by POST and heard on an event stream.
#[derive(Debug)]
pub(crate) struct LegacySse {
    outward: Outward,
    requests: Arc<Correlator>,
    reader: OwnedTask,
}

/// Where messages to the server go.
#[derive(Debug, Clone)]
struct Outward {
    base: HttpBase,
    address: Address,
}

/// An open stream with events read but not yet used.
struct Stream {
    response: Answer,
    reader: EventReader,
    events: std::vec::IntoIter<Event>,
}

impl LegacySse {
    /// Opens the stream and waits for the address to post to. The caller sets the time-out.
    pub(crate) async fn open(base: HttpBase, ear: &Arc<Ear>) -> Result<Self, McpError> {
        const STEP: &str = "GET";
        let get = Outgoing {
            verb: Method::GET,
            address: base.address(),
            headers: base.stream_headers(),
            body: None,
        };
        let response = base.send(STEP, get).await?;
        let content_type = content_type(&response);
        if content_type != "text/event-stream" {
            return Err(fault(STEP, ProtocolFault::ContentType { content_type }));
        }
        let mut stream = Stream {
            response,
            reader: EventReader::new(base.limits.message_bytes),
            events: Vec::new().into_iter(),
        };
        let address = loop {
            match stream.next().await {
                Ok(event) if event.name == "endpoint" => break join(base.address(), &event.data)?,
                Ok(_other) => {}
                Err(_ended) => return Err(fault(STEP, ProtocolFault::NoAnswer)),
            }
        };
        let outward = Outward { base, address };
        let requests = Arc::new(Correlator::default());
        let task = read(
            stream,
            outward.clone(),
            Arc::clone(&requests),
            Arc::clone(ear),
        );
        Ok(Self {
            outward,
            requests,
            reader: OwnedTask(tokio::spawn(task)),
        })
    }

    pub(super) async fn exchange(&self, call: Call<'_>) -> Result<Outcome, McpError> {
        let request = self.requests.open(call.id, Arc::clone(call.signs));
        match self.outward.post(call.method, call.body).await {
            // The error in the body of a refusal is an answer.
            Err(McpError::Rpc {
                code,
                message,
                data,
                ..
            }) => {
                return Ok(Err(RpcError {
                    code,
                    message,
                    data,
                }));
            }
            posted => posted?,
        }
        match request.answer().await {
            Some(outcome) => Ok(outcome),
            None => Err(match self.requests.ended() {
                Some(Ended::TooLarge) => McpError::TooLarge {
                    limit: self.outward.base.limits.message_bytes,
                },
                Some(Ended::Flooded) => self.outward.base.limits.flooded(),
                Some(Ended::Closed) => McpError::Closed,
                Some(Ended::ByServer | Ended::TooNoisy) | None => {
                    fault(call.method, ProtocolFault::NoAnswer)
                }
            }),
        }
    }

    pub(super) async fn tell(&self, step: &str, body: String) -> Result<(), McpError> {
        self.outward.post(step, body).await
    }

    pub(super) fn tell_later(&self, body: String) {
        let outward = self.outward.clone();
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { outward.try_post(body).await });
        }
    }

    pub(super) fn requests(&self) -> &Correlator {
        &self.requests
    }

    pub(super) fn close(&self) {
        self.reader.abort();
        self.requests.end(Ended::Closed);
    }
}

impl Stream {
    async fn next(&mut self) -> Result<Event, Ended> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(event);
            }
            let Ok(Some(chunk)) = self.response.chunk().await else {
                return Err(Ended::ByServer);
            };
            let events = self.reader.feed(&chunk).map_err(|_large| Ended::TooLarge)?;
            self.events = events.into_iter();
        }
    }
}

impl Outward {
    async fn post(&self, step: &str, body: String) -> Result<(), McpError> {
        let post = Outgoing {
            verb: Method::POST,
            address: &self.address,
            headers: self.base.message_headers(),
            body: Some(body),
        };
        self.base.send(step, post).await.map(drop)
    }

    /// Posts what may be lost.
    async fn try_post(&self, body: String) {
        let _lost = timeout(self.base.limits.request, self.post("POST", body)).await;
    }
}

async fn read(mut stream: Stream, outward: Outward, requests: Arc<Correlator>, ear: Arc<Ear>) {
    let reason = 'stream: loop {
        let event = match stream.next().await {
            Ok(event) => event,
            Err(reason) => break reason,
        };
        // A text that is no message answers nothing; its request runs into its time-out.
        for received in Message::parse_all(&event.data).into_iter().flatten() {
            match received.into() {
                Received::Answer { id, outcome } => requests.settle(&id, outcome),
                Received::Other(message) => match ear.hear(message) {
                    Ok(Some(answer)) => outward.try_post(answer).await,
                    Ok(None) => {}
                    Err(_flooded) => break 'stream Ended::Flooded,
                },
            }
        }
    };
    requests.end(reason);
}

/// The address for messages, which must not lead credentials to another origin.
fn join(from: &Address, address: &[u8]) -> Result<Address, McpError> {
    let text = String::from_utf8_lossy(address);
    match from.url().join(text.trim()) {
        Ok(joined) if same_origin(from.url(), &joined) => Ok(Address::new(joined)),
        Ok(_) | Err(_) => Err(fault(
            "GET",
            ProtocolFault::ForeignAddress {
                address: text.into_owned(),
            },
        )),
    }
}
