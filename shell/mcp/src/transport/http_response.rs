//! The response to a POST: JSON, or an event stream with the messages that precede the answer.

use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::sleep;
use toolwarden_http::HttpResponse;
use toolwarden_model::event_stream::{EventReader, ServerSentEvent};

use super::dispatch;
use super::http_client::protocol_error;
use super::streamable_http::HttpConnection;
use crate::error::{McpError, ProtocolFault};
use crate::mcp_request::McpRequest;
use crate::message_handler::{IncomingMessage, ServerMessage};
use crate::pending_requests::RpcOutcome;
use crate::rpc_message::{InvalidMessage, RpcMessage};

/// The pause before resuming, unless the server sets one.
const DEFAULT_RESUME_DELAY: Duration = Duration::from_secs(1);
/// The shortest pause, whatever the server sets.
const MIN_RESUME_DELAY: Duration = Duration::from_millis(10);

/// The state while an answer is read.
pub(super) struct ResponseReader<'a> {
    connection: &'a HttpConnection,
    request: McpRequest<'a>,
    /// The id of an answer to another request.
    unmatched_id: Option<String>,
}

/// Where to continue reading after a stream ended.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    pub(super) last_event_id: Option<String>,
    retry_delay: Option<Duration>,
}

impl<'a> ResponseReader<'a> {
    pub(super) const fn new(connection: &'a HttpConnection, request: McpRequest<'a>) -> Self {
        Self {
            connection,
            request,
            unmatched_id: None,
        }
    }

    /// Reads an answer that is a single JSON text.
    pub(super) async fn json(mut self, response: HttpResponse) -> Result<RpcOutcome, McpError> {
        let status = response.status.as_u16();
        let read = |body: &[u8]| {
            let is_empty = body.trim_ascii().is_empty();
            (!is_empty).then(|| RpcMessage::parse_all(body))
        };
        let base = &self.connection.client;
        let Some(messages) = base.read(self.request.method, response, read).await? else {
            return Err(protocol_error(
                self.request.method,
                ProtocolFault::NoBody { status },
            ));
        };
        match self.take_messages(messages).await? {
            Some(outcome) => Ok(outcome),
            None => Err(self.no_response_error()),
        }
    }

    /// Reads an answer that arrives on an event stream, resumed as often as the server allows.
    pub(super) async fn events(mut self, response: HttpResponse) -> Result<RpcOutcome, McpError> {
        let mut place = StreamPosition::default();
        let mut stream = Some(response);
        while let Some(response) = stream.take() {
            if let Some(outcome) = self.read_stream(response, &mut place).await? {
                return Ok(outcome);
            }
            let Some(after) = &place.last_event_id else {
                break;
            };
            if let Some(aside) = self.request.handler {
                aside.on_stream_interrupted();
            }
            sleep(place.resume_delay()).await;
            // If the server cannot resume, the request has no answer, which is reported.
            stream = self.connection.get(Some(after)).await.ok();
        }
        Err(self.no_response_error())
    }

    /// Reads one stream until the answer or its end.
    async fn read_stream(
        &mut self,
        mut response: HttpResponse,
        place: &mut StreamPosition,
    ) -> Result<Option<RpcOutcome>, McpError> {
        let limit = self.connection.client.limits.message_bytes;
        let mut reader = EventReader::new(limit);
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(None),
                // A broken stream can be resumed like one that ended.
                Err(_broken) if place.last_event_id.is_some() => return Ok(None),
                Err(error) => {
                    return Err(self
                        .connection
                        .client
                        .exchange_error(self.request.method, error));
                }
            };
            let events = reader
                .feed(&chunk)
                .map_err(|_large| McpError::TooLarge { limit })?;
            for event in events {
                if let Some(data) = place.record_event(event)
                    && let Some(outcome) = self.take_messages(RpcMessage::parse_all(&data)).await?
                {
                    return Ok(Some(outcome));
                }
            }
        }
    }

    /// Processes the messages of one text: returns the answer to the call, passes the others on.
    async fn take_messages(
        &mut self,
        messages: Result<Vec<RpcMessage>, InvalidMessage>,
    ) -> Result<Option<RpcOutcome>, McpError> {
        let McpRequest {
            id: own,
            method,
            handler: aside,
            activity,
            ..
        } = self.request;
        let messages = messages.map_err(|invalid| protocol_error(method, invalid.into()))?;
        let mut answer = None;
        for received in messages {
            match received.into() {
                IncomingMessage::Response { id, outcome } => {
                    let unread = id.get() == "null" && outcome.is_err();
                    if unread || id.get() == own.to_string() {
                        answer = Some(outcome);
                    } else {
                        self.unmatched_id = Some(id.get().to_owned());
                    }
                }
                IncomingMessage::Unsolicited(message) => {
                    if is_progress(&message)
                        && let Some(activity) = activity
                    {
                        activity.notify_one();
                    }
                    let passed = dispatch(message, aside, &self.connection.dispatcher);
                    let passed =
                        passed.map_err(|_flooded| self.connection.close_for_message_rate())?;
                    if let Some(answer) = passed {
                        // If the server rejects it, the answer to the call shows that.
                        let post = self.connection.post("POST", None, HeaderMap::new(), answer);
                        let _refused = post.await;
                    }
                }
            }
        }
        Ok(answer)
    }

    fn no_response_error(self) -> McpError {
        let expected = self.request.id;
        let reason =
            self.unmatched_id
                .map_or(ProtocolFault::NoAnswer, |got| ProtocolFault::WrongId {
                    expected,
                    got,
                });
        protocol_error(self.request.method, reason)
    }
}

impl StreamPosition {
    /// Remembers the position in the stream and returns the text of a message.
    pub(super) fn record_event(&mut self, event: ServerSentEvent) -> Option<Vec<u8>> {
        let ServerSentEvent {
            name,
            data,
            id,
            retry,
        } = event;
        if id.is_some() {
            self.last_event_id = id;
        }
        self.retry_delay = retry.or(self.retry_delay);
        let is_message = name.is_empty() || name == "message";
        // Servers send an empty event first so that the stream can be resumed.
        (is_message && !data.is_empty()).then_some(data)
    }

    pub(super) fn resume_delay(&self) -> Duration {
        self.retry_delay
            .unwrap_or(DEFAULT_RESUME_DELAY)
            .max(MIN_RESUME_DELAY)
    }
}

fn is_progress(message: &ServerMessage) -> bool {
    matches!(
        message,
        ServerMessage::Notification { method, .. } if method == "notifications/progress"
    )
}
