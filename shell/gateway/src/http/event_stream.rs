//! Event streams to agents.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::serve::sse_event::{SseEvent, comment};

use super::channel_body::ChannelBody;
use crate::conversation::{Conversation, EventLog, StreamEvent};

/// The interval of keep-alive comments on a silent stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an agent waits before it reopens a lost stream.
const RETRY: Duration = Duration::from_secs(1);

/// The name of the standing stream in event ids.
const STANDALONE: &str = "s";

/// A response that is an event stream.
pub(super) fn event_stream_response(body: ChannelBody) -> Response {
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The position from which an agent resumes a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventPosition {
    /// The stream; `None` is the standing one.
    pub(super) stream: Option<u64>,
    /// The last event that the agent received.
    pub(super) after: u64,
}

impl EventPosition {
    /// Parses an event id.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (stream, after) = id.split_once('-')?;
        Some(Self {
            stream: match stream {
                STANDALONE => None,
                number => Some(number.parse().ok()?),
            },
            after: after.parse().ok()?,
        })
    }

    fn event_id(&self, event: &StreamEvent) -> String {
        match self.stream {
            None => format!("{STANDALONE}-{}", event.number),
            Some(stream) => format!("{stream}-{}", event.number),
        }
    }
}

/// Sends the messages of a stream as they arrive, until it ends or the agent is gone.
pub(super) async fn send_events(
    log: Arc<EventLog>,
    mut place: EventPosition,
    pieces: mpsc::Sender<Bytes>,
    over: impl Future<Output = ()>,
) -> bool {
    tokio::pin!(over);
    loop {
        let alive = sleep_until(Instant::now() + KEEP_ALIVE);
        let piece = tokio::select! {
            event = log.next_after(place.after) => match event {
                Some(event) => {
                    let id = place.event_id(&event);
                    place.after = event.number;
                    message_event(Some(&id), &event.text)
                }
                None => return true,
            },
            () = alive => comment("").into(),
            () = &mut over => return false,
            () = pieces.closed() => return false,
        };
        if pieces.send(piece).await.is_err() {
            return false;
        }
    }
}

/// The first event of a resumable stream: it carries the position and the retry delay.
pub(super) fn priming_event(stream: Option<u64>, after: u64) -> Bytes {
    let place = EventPosition { stream, after };
    let id = place.event_id(&StreamEvent {
        number: after,
        text: "".into(),
    });
    let event = SseEvent {
        id: Some(&id),
        retry: Some(RETRY),
        ..SseEvent::default()
    };
    event.text().into()
}

/// A message as an event.
pub(super) fn message_event(id: Option<&str>, text: &str) -> Bytes {
    let event = SseEvent {
        id,
        name: Some("message"),
        data: text,
        ..SseEvent::default()
    };
    event.text().into()
}

/// The standing stream of a conversation, from where its agent left off. A newer reader replaces an older one.
pub(super) fn standalone_stream(
    conversation: Arc<Conversation>,
    after: Option<u64>,
    primes: bool,
) -> Response {
    let (pieces, body) = ChannelBody::channel();
    tokio::spawn(async move {
        let reader = conversation.start_reading();
        let mut after = after.unwrap_or_else(|| conversation.delivered());
        if primes && pieces.send(priming_event(None, after)).await.is_err() {
            conversation.stop_reading(reader);
            return;
        }
        loop {
            let alive = sleep_until(Instant::now() + KEEP_ALIVE);
            let piece = tokio::select! {
                event = conversation.standalone_stream.next_after(after) => match event {
                    Some(event) if conversation.is_reader(reader) => {
                        after = event.number;
                        let place = EventPosition { stream: None, after };
                        message_event(Some(&place.event_id(&event)), &event.text)
                    }
                    _ => break,
                },
                () = alive => comment("").into(),
                () = pieces.closed() => break,
            };
            if pieces.send(piece).await.is_err() {
                break;
            }
            conversation.set_delivered(after);
        }
        conversation.stop_reading(reader);
    });
    event_stream_response(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_back() {
        for (stream, after) in [(None, 0), (None, 7), (Some(3), 12)] {
            let place = EventPosition { stream, after };
            let event = StreamEvent {
                number: after,
                text: "".into(),
            };
            assert_eq!(EventPosition::parse(&place.event_id(&event)), Some(place));
        }
        for id in ["", "7", "x-1", "1-x", "-"] {
            assert_eq!(EventPosition::parse(id), None, "{id}");
        }
    }
}
