//! The HTTP+SSE transport of 2024-11-05: answers arrive on one long event stream.

use std::sync::Arc;

use reqwest::Method;
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolwarden_http::{HttpAddress, HttpResponse};
use toolwarden_model::event_stream::{EventReader, ServerSentEvent};

use super::AbortOnDrop;
use super::http_client::{
    ServerHttpClient, ServerHttpRequest, content_type, protocol_error, same_origin,
};
use crate::error::{McpError, ProtocolFault};
use crate::mcp_request::McpRequest;
use crate::message_handler::{IncomingMessage, MessageDispatcher};
use crate::pending_requests::{CloseReason, PendingRequests, RpcOutcome};
use crate::rpc_message::{RpcError, RpcMessage};

/// A server that receives messages by POST and sends its own on an event stream.
#[derive(Debug)]
pub(crate) struct LegacySse {
    sender: MessageSender,
    requests: Arc<PendingRequests>,
    reader: AbortOnDrop,
}

/// Sends messages to the server.
#[derive(Debug, Clone)]
struct MessageSender {
    base: ServerHttpClient,
    address: HttpAddress,
}

/// An open stream with events that were read but not yet processed.
struct OpenEventStream {
    response: HttpResponse,
    reader: EventReader,
    events: std::vec::IntoIter<ServerSentEvent>,
}

impl LegacySse {
    /// Opens the stream and waits for the address to post to. The caller sets the timeout.
    pub(crate) async fn open(
        base: ServerHttpClient,
        ear: &Arc<MessageDispatcher>,
    ) -> Result<Self, McpError> {
        const STEP: &str = "GET";
        let get = ServerHttpRequest {
            verb: Method::GET,
            address: base.address(),
            headers: base.stream_headers(),
            body: None,
        };
        let response = base.send(STEP, get).await?;
        let content_type = content_type(&response);
        if content_type != "text/event-stream" {
            return Err(protocol_error(
                STEP,
                ProtocolFault::ContentType { content_type },
            ));
        }
        let mut stream = OpenEventStream {
            response,
            reader: EventReader::new(base.limits.message_bytes),
            events: Vec::new().into_iter(),
        };
        let address = loop {
            match stream.next().await {
                Ok(event) if event.name == "endpoint" => {
                    break resolve_message_address(base.address(), &event.data)?;
                }
                Ok(_other) => {}
                Err(_ended) => return Err(protocol_error(STEP, ProtocolFault::NoAnswer)),
            }
        };
        let outward = MessageSender { base, address };
        let requests = Arc::new(PendingRequests::default());
        let task = read(
            stream,
            outward.clone(),
            Arc::clone(&requests),
            Arc::clone(ear),
        );
        Ok(Self {
            sender: outward,
            requests,
            reader: AbortOnDrop(tokio::spawn(task)),
        })
    }

    pub(super) async fn exchange(&self, request: McpRequest<'_>) -> Result<RpcOutcome, McpError> {
        let pending = self.requests.open(request.id, request.activity());
        match self.sender.post(request.method, request.body()).await {
            // A JSON-RPC error in the body of a refusal is an answer.
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
        match pending.response().await {
            Some(outcome) => Ok(outcome),
            None => Err(match self.requests.close_reason() {
                Some(CloseReason::TooLarge) => McpError::TooLarge {
                    limit: self.sender.base.limits.message_bytes,
                },
                Some(CloseReason::TooManyMessages) => self.sender.base.limits.message_rate_error(),
                Some(CloseReason::ByClient) => McpError::Closed,
                Some(CloseReason::ByServer | CloseReason::TooNoisy) | None => {
                    protocol_error(request.method, ProtocolFault::NoAnswer)
                }
            }),
        }
    }

    pub(super) async fn send_message(&self, step: &str, body: String) -> Result<(), McpError> {
        self.sender.post(step, body).await
    }

    pub(super) fn send_in_background(&self, body: String) {
        let outward = self.sender.clone();
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { outward.try_post(body).await });
        }
    }

    pub(super) fn requests(&self) -> &PendingRequests {
        &self.requests
    }

    pub(super) fn close(&self) {
        self.reader.abort();
        self.requests.fail_all(CloseReason::ByClient);
    }
}

impl OpenEventStream {
    async fn next(&mut self) -> Result<ServerSentEvent, CloseReason> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(event);
            }
            let Ok(Some(chunk)) = self.response.chunk().await else {
                return Err(CloseReason::ByServer);
            };
            let events = self
                .reader
                .feed(&chunk)
                .map_err(|_large| CloseReason::TooLarge)?;
            self.events = events.into_iter();
        }
    }
}

impl MessageSender {
    async fn post(&self, step: &str, body: String) -> Result<(), McpError> {
        let post = ServerHttpRequest {
            verb: Method::POST,
            address: &self.address,
            headers: self.base.message_headers(),
            body: Some(body),
        };
        self.base.send(step, post).await.map(drop)
    }

    /// Posts a message that may be lost.
    async fn try_post(&self, body: String) {
        let _lost = timeout(self.base.limits.request, self.post("POST", body)).await;
    }
}

async fn read(
    mut stream: OpenEventStream,
    outward: MessageSender,
    requests: Arc<PendingRequests>,
    ear: Arc<MessageDispatcher>,
) {
    let reason = 'stream: loop {
        let event = match stream.next().await {
            Ok(event) => event,
            Err(reason) => break reason,
        };
        // A text that is not a message answers nothing; its request times out.
        for received in RpcMessage::parse_all(&event.data).into_iter().flatten() {
            match received.into() {
                IncomingMessage::Response { id, outcome } => requests.complete(&id, outcome),
                IncomingMessage::Unsolicited(message) => match ear.dispatch(message) {
                    Ok(Some(answer)) => outward.try_post(answer).await,
                    Ok(None) => {}
                    Err(_flooded) => break 'stream CloseReason::TooManyMessages,
                },
            }
        }
    };
    requests.fail_all(reason);
}

/// The address for messages, which must not send credentials to another origin.
fn resolve_message_address(from: &HttpAddress, address: &[u8]) -> Result<HttpAddress, McpError> {
    let text = String::from_utf8_lossy(address);
    match from.url().join(text.trim()) {
        Ok(joined) if same_origin(from.url(), &joined) => Ok(HttpAddress::new(joined)),
        Ok(_) | Err(_) => Err(protocol_error(
            "GET",
            ProtocolFault::ForeignAddress {
                address: text.into_owned(),
            },
        )),
    }
}
