//! The stream on which a server of the handshake era sends its own messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolwarden_http::HttpResponse;
use toolwarden_model::event_stream::EventReader;

use super::http_response::StreamPosition;
use super::streamable_http::HttpConnection;
use crate::error::{McpError, ProtocolFault};
use crate::message_handler::IncomingMessage;
use crate::rpc_message::RpcMessage;
use reqwest::header::HeaderMap;

/// The longest backoff between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The timeout for the response headers. Long, because some servers send them with the first event.
const OPEN_TIMEOUT: Duration = Duration::from_secs(600);

/// Receives the server's messages while the task runs; returns only if the server offers no such
/// stream.
pub(super) async fn listen(core: Arc<HttpConnection>) {
    let mut place = StreamPosition::default();
    let mut failures = 0;
    loop {
        let opened = timeout(OPEN_TIMEOUT, core.get(place.last_event_id.as_deref())).await;
        match opened {
            Ok(Ok(response)) => {
                let heard = read_stream(&core, response, &mut place).await;
                if core.is_closed() {
                    return;
                }
                if heard {
                    failures = 0;
                } else {
                    failures += 1;
                }
            }
            Ok(Err(error)) if is_unsupported(&error) => return,
            Ok(Err(_)) | Err(_) => {
                failures += 1;
                // A restarted server does not know the earlier events.
                place.last_event_id = None;
            }
        }
        sleep(retry_delay(&place, failures)).await;
    }
}

/// Reads one stream to its end; returns whether any event arrived.
async fn read_stream(
    core: &HttpConnection,
    mut response: HttpResponse,
    place: &mut StreamPosition,
) -> bool {
    let mut reader = EventReader::new(core.client.limits.message_bytes);
    let mut heard = false;
    while let Ok(Some(chunk)) = response.chunk().await {
        let Ok(events) = reader.feed(&chunk) else {
            break;
        };
        for event in events {
            heard = true;
            let Some(data) = place.record_event(event) else {
                continue;
            };
            // A response here matches no request, and a text that is not a message is ignored.
            for message in RpcMessage::parse_all(&data).into_iter().flatten() {
                let IncomingMessage::Unsolicited(message) = message.into() else {
                    continue;
                };
                match core.dispatcher.dispatch(message) {
                    Ok(Some(answer)) => {
                        let post = core.post("POST", None, HeaderMap::new(), answer);
                        let _lost = timeout(core.client.limits.request, post).await;
                    }
                    Ok(None) => {}
                    Err(_flooded) => {
                        let _reason = core.close_for_message_rate();
                        return heard;
                    }
                }
            }
        }
    }
    heard
}

fn is_unsupported(error: &McpError) -> bool {
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

/// The server's retry delay, doubled with every consecutive failure.
fn retry_delay(place: &StreamPosition, failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    place
        .resume_delay()
        .saturating_mul(doubled)
        .min(MAX_RETRY_DELAY)
}
