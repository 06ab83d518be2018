//! The stream on which a server of the handshake era speaks by itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolwarden_http::Answer;
use toolwarden_model::event_stream::EventReader;

use super::http::Core;
use super::http_stream::Place;
use crate::audience::Received;
use crate::error::{McpError, ProtocolFault};
use crate::message::Message;
use reqwest::header::HeaderMap;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the head of the answer may take. Long, for some servers send it with the first event.
const OPENING: Duration = Duration::from_secs(600);

/// Hears the server for as long as the task lives; ends only if the server has no such stream.
pub(super) async fn listen(core: Arc<Core>) {
    let mut place = Place::default();
    let mut failures = 0;
    loop {
        let opened = timeout(OPENING, core.get(place.after.as_deref())).await;
        match opened {
            Ok(Ok(response)) => {
                let heard = hear(&core, response, &mut place).await;
                if core.has_ended() {
                    return;
                }
                if heard {
                    failures = 0;
                } else {
                    failures += 1;
                }
            }
            Ok(Err(error)) if means_never(&error) => return,
            Ok(Err(_)) | Err(_) => {
                failures += 1;
                // A server that was started anew does not know the events of before.
                place.after = None;
            }
        }
        sleep(pause(&place, failures)).await;
    }
}

/// Hears one stream until its end; tells whether anything came.
async fn hear(core: &Core, mut response: Answer, place: &mut Place) -> bool {
    let mut reader = EventReader::new(core.base.limits.message_bytes);
    let mut heard = false;
    while let Ok(Some(chunk)) = response.chunk().await {
        let Ok(events) = reader.feed(&chunk) else {
            break;
        };
        for event in events {
            heard = true;
            let Some(data) = place.pass(event) else {
                continue;
            };
            // An answer here belongs to no request, and a text that is no message says nothing.
            for message in Message::parse_all(&data).into_iter().flatten() {
                let Received::Other(message) = message.into() else {
                    continue;
                };
                match core.ear.hear(message) {
                    Ok(Some(answer)) => {
                        let post = core.post("POST", None, HeaderMap::new(), answer);
                        let _lost = timeout(core.base.limits.request, post).await;
                    }
                    Ok(None) => {}
                    Err(_flooded) => {
                        let _reason = core.end_flooded();
                        return heard;
                    }
                }
            }
        }
    }
    heard
}

fn means_never(error: &McpError) -> bool {
    matches!(
        error,
        McpError::Http {
            status: 405 | 501,
            ..
        } | McpError::Protocol {
            fault: ProtocolFault::ContentType { .. },
            ..
        }
    )
}

/// The server's own pause, doubled with every failure in a row.
fn pause(place: &Place, failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    place.pause().saturating_mul(doubled).min(LONGEST_PAUSE)
}
