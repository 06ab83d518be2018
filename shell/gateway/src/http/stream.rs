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
use toolwarden_mcp::serve::events::{OutgoingEvent, comment};

use super::body::Pieces;
use crate::conversation::{Conversation, Event, EventLog};

/// How often a silent stream shows that it is alive.
pub(super) const ALIVE: Duration = Duration::from_secs(15);
/// How long an agent waits before it opens a lost stream again.
const RETRY: Duration = Duration::from_secs(1);

/// The name of the standing stream in the ids of events.
const STANDING: &str = "s";

/// An answer that is a stream of events.
pub(super) fn events(body: Pieces) -> Response {
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

/// Where an agent goes on reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which stream; none is the standing one.
    pub(super) stream: Option<u64>,
    /// After which event.
    pub(super) after: u64,
}

impl Place {
    /// Reads the id of an event.
    pub(super) fn read(id: &str) -> Option<Self> {
        let (stream, after) = id.split_once('-')?;
        Some(Self {
            stream: match stream {
                STANDING => None,
                number => Some(number.parse().ok()?),
            },
            after: after.parse().ok()?,
        })
    }

    fn id(&self, event: &Event) -> String {
        match self.stream {
            None => format!("{STANDING}-{}", event.number),
            Some(stream) => format!("{stream}-{}", event.number),
        }
    }
}

/// Sends the messages of a stream as they come, until it ends or the agent is gone.
pub(super) async fn follow(
    log: Arc<EventLog>,
    mut place: Place,
    pieces: mpsc::Sender<Bytes>,
    over: impl Future<Output = ()>,
) -> bool {
    tokio::pin!(over);
    loop {
        let alive = sleep_until(Instant::now() + ALIVE);
        let piece = tokio::select! {
            event = log.after(place.after) => match event {
                Some(event) => {
                    let id = place.id(&event);
                    place.after = event.number;
                    message(Some(&id), &event.text)
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

/// The first event of a stream that can be read again: it says from where, and how soon.
pub(super) fn priming(stream: Option<u64>, after: u64) -> Bytes {
    let place = Place { stream, after };
    let id = place.id(&Event {
        number: after,
        text: "".into(),
    });
    let event = OutgoingEvent {
        id: Some(&id),
        retry: Some(RETRY),
        ..OutgoingEvent::default()
    };
    event.text().into()
}

/// A message as an event.
pub(super) fn message(id: Option<&str>, text: &str) -> Bytes {
    let event = OutgoingEvent {
        id,
        name: Some("message"),
        data: text,
        ..OutgoingEvent::default()
    };
    event.text().into()
}

/// The standing stream of a conversation, from where its agent left off. A newer reader takes it over.
pub(super) fn standing(
    conversation: Arc<Conversation>,
    after: Option<u64>,
    primes: bool,
) -> Response {
    let (pieces, body) = Pieces::channel();
    tokio::spawn(async move {
        let reader = conversation.stand();
        let mut after = after.unwrap_or_else(|| conversation.delivered());
        if primes && pieces.send(priming(None, after)).await.is_err() {
            conversation.leave(reader);
            return;
        }
        loop {
            let alive = sleep_until(Instant::now() + ALIVE);
            let piece = tokio::select! {
                event = conversation.standing.after(after) => match event {
                    Some(event) if conversation.is_reader(reader) => {
                        after = event.number;
                        let place = Place { stream: None, after };
                        message(Some(&place.id(&event)), &event.text)
                    }
                    _ => break,
                },
                () = alive => comment("").into(),
                () = pieces.closed() => break,
            };
            if pieces.send(piece).await.is_err() {
                break;
            }
            conversation.deliver(after);
        }
        conversation.leave(reader);
    });
    events(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_back() {
        for (stream, after) in [(None, 0), (None, 7), (Some(3), 12)] {
            let place = Place { stream, after };
            let event = Event {
                number: after,
                text: "".into(),
            };
            assert_eq!(Place::read(&place.id(&event)), Some(place));
        }
        for id in ["", "7", "x-1", "1-x", "-"] {
            assert_eq!(Place::read(id), None, "{id}");
        }
    }
}
