//! The answer to a POST: JSON, or an event stream with all that comes before the answer.

use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::sleep;
use toolwarden_http::Answer;
use toolwarden_model::event_stream::{Event, EventReader};

use super::http::Core;
use super::http_base::fault;
use super::{Call, pass_on};
use crate::audience::{FromServer, Received};
use crate::correlate::Outcome;
use crate::error::{McpError, ProtocolFault};
use crate::message::{InvalidMessage, Message};

/// The pause before resuming, unless the server names one.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// The shortest pause, whatever the server names.
const RESUME_SOONEST: Duration = Duration::from_millis(10);

/// What is known while an answer is read.
pub(super) struct Reading<'a> {
    core: &'a Core,
    call: &'a Call<'a>,
    /// The id of an answer to another request.
    stray: Option<String>,
}

/// Where to go on reading after a stream ended.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) after: Option<String>,
    pause: Option<Duration>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(core: &'a Core, call: &'a Call<'a>) -> Self {
        Self {
            core,
            call,
            stray: None,
        }
    }

    /// Reads an answer that is one JSON text.
    pub(super) async fn json(mut self, response: Answer) -> Result<Outcome, McpError> {
        let status = response.status.as_u16();
        let read = |body: &[u8]| {
            let is_empty = body.trim_ascii().is_empty();
            (!is_empty).then(|| Message::parse_all(body))
        };
        let base = &self.core.base;
        let Some(messages) = base.read(self.call.method, response, read).await? else {
            return Err(fault(self.call.method, ProtocolFault::NoBody { status }));
        };
        match self.take(messages).await? {
            Some(outcome) => Ok(outcome),
            None => Err(self.unanswered()),
        }
    }

    /// Reads an answer that comes on an event stream, resumed as often as the server lets it.
    pub(super) async fn events(mut self, response: Answer) -> Result<Outcome, McpError> {
        let mut place = Place::default();
        let mut stream = Some(response);
        while let Some(response) = stream.take() {
            if let Some(outcome) = self.follow(response, &mut place).await? {
                return Ok(outcome);
            }
            let Some(after) = &place.after else { break };
            if let Some(aside) = self.call.aside {
                aside.interrupted();
            }
            sleep(place.pause()).await;
            // A server that cannot resume leaves the request without an answer, which is reported.
            stream = self.core.get(Some(after)).await.ok();
        }
        Err(self.unanswered())
    }

    /// Reads one stream until the answer or its end.
    async fn follow(
        &mut self,
        mut response: Answer,
        place: &mut Place,
    ) -> Result<Option<Outcome>, McpError> {
        let limit = self.core.base.limits.message_bytes;
        let mut reader = EventReader::new(limit);
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(None),
                // A broken stream can be resumed like one that ended.
                Err(_broken) if place.after.is_some() => return Ok(None),
                Err(error) => return Err(self.core.base.broken(self.call.method, error)),
            };
            let events = reader
                .feed(&chunk)
                .map_err(|_large| McpError::TooLarge { limit })?;
            for event in events {
                if let Some(data) = place.pass(event)
                    && let Some(outcome) = self.take(Message::parse_all(&data)).await?
                {
                    return Ok(Some(outcome));
                }
            }
        }
    }

    /// Takes the messages of one text: returns the answer to the call, passes the rest on.
    async fn take(
        &mut self,
        messages: Result<Vec<Message>, InvalidMessage>,
    ) -> Result<Option<Outcome>, McpError> {
        let Call {
            id: own,
            method,
            aside,
            signs,
            ..
        } = *self.call;
        let messages = messages.map_err(|invalid| fault(method, invalid.into()))?;
        let mut answer = None;
        for received in messages {
            match received.into() {
                Received::Answer { id, outcome } => {
                    let unread = id.get() == "null" && outcome.is_err();
                    if unread || id.get() == own.to_string() {
                        answer = Some(outcome);
                    } else {
                        self.stray = Some(id.get().to_owned());
                    }
                }
                Received::Other(message) => {
                    if is_progress(&message) {
                        signs.notify_one();
                    }
                    let passed = pass_on(message, aside, &self.core.ear);
                    let passed = passed.map_err(|_flooded| self.core.end_flooded())?;
                    if let Some(answer) = passed {
                        // Whether the server takes it shows in the answer to the call.
                        let post = self.core.post("POST", None, HeaderMap::new(), answer);
                        let _refused = post.await;
                    }
                }
            }
        }
        Ok(answer)
    }

    fn unanswered(self) -> McpError {
        let expected = self.call.id;
        let reason = self
            .stray
            .map_or(ProtocolFault::NoAnswer, |got| ProtocolFault::WrongId {
                expected,
                got,
            });
        fault(self.call.method, reason)
    }
}

impl Place {
    /// Keeps where the stream is, and returns the text of a message.
    pub(super) fn pass(&mut self, event: Event) -> Option<Vec<u8>> {
        let Event {
            name,
            data,
            id,
            retry,
        } = event;
        if id.is_some() {
            self.after = id;
        }
        self.pause = retry.or(self.pause);
        let is_message = name.is_empty() || name == "message";
        // Servers send an empty event first so that the stream can be resumed.
        (is_message && !data.is_empty()).then_some(data)
    }

    pub(super) fn pause(&self) -> Duration {
        self.pause.unwrap_or(RESUME_AFTER).max(RESUME_SOONEST)
    }
}

fn is_progress(message: &FromServer) -> bool {
    matches!(
        message,
        FromServer::Notification { method, .. } if method == "notifications/progress"
    )
}
