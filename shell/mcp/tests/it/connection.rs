//! Helpers shared by the tests of links.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolwarden_mcp::{
    ClientInfo, Endpoint, McpError, McpRequest, MessageHandler, RpcError, ServerConnection,
    ServerMessage,
};

use crate::support::short;

/// Collects the messages it receives in a queue.
#[derive(Debug)]
pub(crate) struct QueueHandler(mpsc::Sender<ServerMessage>);

impl MessageHandler for QueueHandler {
    fn handle(&self, message: ServerMessage) {
        self.0.try_send(message).unwrap();
    }
}

/// The received messages, in order.
pub(crate) struct ReceivedMessages(mpsc::Receiver<ServerMessage>);

impl ReceivedMessages {
    pub(crate) async fn next(&mut self) -> ServerMessage {
        let next = timeout(Duration::from_secs(5), self.0.recv());
        next.await.expect("no message").expect("link closed")
    }

    /// The next message, as method and parameter text.
    pub(crate) async fn next_notification(&mut self) -> (String, String) {
        match self.next().await {
            ServerMessage::Notification { method, params }
            | ServerMessage::Request { method, params, .. } => (
                method,
                params.map_or_else(String::new, |raw| raw.get().to_owned()),
            ),
        }
    }

    /// The next message, which must be a request, as id and method.
    pub(crate) async fn request(&mut self) -> (Box<RawValue>, String) {
        match self.next().await {
            ServerMessage::Request { id, method, .. } => (id, method),
            other @ ServerMessage::Notification { .. } => panic!("{other:?}"),
        }
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

pub(crate) fn queue() -> (Arc<QueueHandler>, ReceivedMessages) {
    let (sender, receiver) = mpsc::channel(1000);
    (Arc::new(QueueHandler(sender)), ReceivedMessages(receiver))
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn client_info() -> ClientInfo {
    ClientInfo {
        capabilities: raw(r#"{"elicitation":{ }}"#).into(),
        info: raw(r#"{"name":"agent","version":"7"}"#).into(),
    }
}

pub(crate) async fn open(endpoint: &Endpoint) -> (ServerConnection, ReceivedMessages) {
    let (audience, heard) = queue();
    let link = ServerConnection::open(endpoint, &short(), &client_info(), audience)
        .await
        .unwrap();
    (link, heard)
}

/// A tool call as most tests make it.
pub(crate) fn tool_call<'a>(params: Option<&'a RawValue>, limit: u64) -> McpRequest<'a> {
    let mut request = McpRequest::new("tools/call", params);
    request.timeout = Some(Duration::from_millis(limit));
    request
}

pub(crate) type RequestResult = Result<Result<Box<RawValue>, RpcError>, McpError>;

/// Calls a tool of the fixture without arguments.
pub(crate) async fn call(link: &ServerConnection, name: &str) -> RequestResult {
    let params = raw(&json!({ "name": name }).to_string());
    link.ask(tool_call(Some(&params), 5000)).await
}

/// The result of a call as a value.
pub(crate) async fn value(link: &ServerConnection, name: &str) -> Value {
    let result = call(link, name).await.unwrap().unwrap();
    serde_json::from_str(result.get()).unwrap()
}
