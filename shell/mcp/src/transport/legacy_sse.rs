//! The HTTP+SSE transport of 2024-11-05: answers arrive on one long event stream.

use std::sync::Arc;

use reqwest::{Method, Response};
use serde_json::value::RawValue;
use toolwarden_model::event_stream::{Event, EventReader};

use super::http_base::{EVENTS, HttpBase, JSON_OR_EVENTS, Post, content_type, fault, same_origin};
use super::{Call, OwnedTask};
use crate::correlate::{Correlator, Ended};
use crate::error::{McpError, ProtocolFault};
use crate::message::{self, Message};

/// A server spoken to by POST and heard on an event stream.
#[derive(Debug)]
pub(crate) struct LegacySse {
    base: HttpBase,
    address: reqwest::Url,
    requests: Arc<Correlator>,
    _reader: OwnedTask,
}

/// An open stream with events read but not yet used.
struct Stream {
    response: Response,
    reader: EventReader,
    events: std::vec::IntoIter<Event>,
}

impl LegacySse {
    /// Opens the stream and waits for the address to post to. The caller sets the time-out.
    pub(crate) async fn open(base: HttpBase) -> Result<Self, McpError> {
        const STEP: &str = "GET";
        let post = Post {
            verb: Method::GET,
            url: base.url(),
            accept: EVENTS,
            headers: &[],
            body: None,
        };
        let response = base.send(STEP, post).await?;
        let content_type = content_type(&response);
        if content_type != EVENTS {
            return Err(fault(STEP, ProtocolFault::ContentType { content_type }));
        }
        let mut stream = Stream {
            response,
            reader: EventReader::new(base.limits.message_bytes),
            events: Vec::new().into_iter(),
        };
        let address = loop {
            match stream.next().await {
                Ok(event) if event.name == "endpoint" => break join(base.url(), &event.data)?,
                Ok(_other) => {}
                Err(_ended) => return Err(fault(STEP, ProtocolFault::NoAnswer)),
            }
        };
        let requests = Arc::new(Correlator::default());
        let task = read(stream, base.clone(), address.clone(), Arc::clone(&requests));
        Ok(Self {
            base,
            address,
            requests,
            _reader: OwnedTask(tokio::spawn(task)),
        })
    }

    pub(super) async fn exchange(&self, call: &Call) -> Result<Box<RawValue>, McpError> {
        let request = self.requests.open(call.id);
        post(&self.base, &self.address, &call.method, call.body.clone()).await?;
        match request.answer().await {
            Some(outcome) => outcome.map_err(|error| error.for_method(&call.method)),
            None => Err(match self.requests.ended() {
                Some(Ended::TooLarge) => McpError::TooLarge {
                    limit: self.base.limits.message_bytes,
                },
                Some(Ended::ByServer | Ended::TooNoisy) | None => {
                    fault(&call.method, ProtocolFault::NoAnswer)
                }
            }),
        }
    }

    pub(super) async fn notify(&self, method: &str, body: String) -> Result<(), McpError> {
        post(&self.base, &self.address, method, body).await
    }

    pub(super) fn stray(&self) -> Option<String> {
        self.requests.stray()
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

async fn read(
    mut stream: Stream,
    base: HttpBase,
    address: reqwest::Url,
    requests: Arc<Correlator>,
) {
    let reason = loop {
        let event = match stream.next().await {
            Ok(event) => event,
            Err(reason) => break reason,
        };
        // A text that is no message answers nothing; its request runs into its time-out.
        for received in Message::parse_all(&event.data).into_iter().flatten() {
            match received {
                Message::Response { id, outcome } => requests.settle(&id, outcome),
                Message::Request {
                    id,
                    method,
                    params: _,
                } => {
                    let answer = message::answer(&id, &method);
                    let sent = post(&base, &address, &method, answer);
                    let _refused = tokio::time::timeout(base.limits.request, sent).await;
                }
                Message::Notification { .. } => {}
            }
        }
    };
    requests.end(reason);
}

async fn post(
    base: &HttpBase,
    address: &reqwest::Url,
    method: &str,
    body: String,
) -> Result<(), McpError> {
    let post = Post {
        verb: Method::POST,
        url: address,
        accept: JSON_OR_EVENTS,
        headers: &[],
        body: Some(body),
    };
    base.send(method, post).await.map(drop)
}

/// The address for messages, which must not lead credentials to another origin.
fn join(url: &reqwest::Url, address: &[u8]) -> Result<reqwest::Url, McpError> {
    let text = String::from_utf8_lossy(address);
    match url.join(text.trim()) {
        Ok(joined) if same_origin(url, &joined) => Ok(joined),
        Ok(_) | Err(_) => Err(fault(
            "GET",
            ProtocolFault::ForeignAddress {
                address: text.into_owned(),
            },
        )),
    }
}
