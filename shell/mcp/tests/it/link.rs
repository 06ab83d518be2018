//! What the tests of links share.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolwarden_mcp::{Audience, Endpoint, Face, FromServer, Link, LinkAsking, McpError, RpcError};

use crate::support::short;

/// Keeps what it hears in a queue.
#[derive(Debug)]
pub(crate) struct Queue(mpsc::Sender<FromServer>);

impl Audience for Queue {
    fn hear(&self, message: FromServer) {
        self.0.try_send(message).unwrap();
    }
}

/// What was heard, in order.
pub(crate) struct Heard(mpsc::Receiver<FromServer>);

impl Heard {
    pub(crate) async fn next(&mut self) -> FromServer {
        let next = timeout(Duration::from_secs(5), self.0.recv());
        next.await.expect("nothing came").expect("nobody speaks")
    }

    /// The next message as method and text of the parameters.
    pub(crate) async fn told(&mut self) -> (String, String) {
        match self.next().await {
            FromServer::Notification { method, params }
            | FromServer::Request { method, params, .. } => (
                method,
                params.map_or_else(String::new, |raw| raw.get().to_owned()),
            ),
        }
    }

    /// The next message, which must be a request, as id and method.
    pub(crate) async fn request(&mut self) -> (Box<RawValue>, String) {
        match self.next().await {
            FromServer::Request { id, method, .. } => (id, method),
            other @ FromServer::Notification { .. } => panic!("{other:?}"),
        }
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

pub(crate) fn queue() -> (Arc<Queue>, Heard) {
    let (sender, receiver) = mpsc::channel(1000);
    (Arc::new(Queue(sender)), Heard(receiver))
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn face() -> Face {
    Face {
        capabilities: raw(r#"{"elicitation":{ }}"#).into(),
        info: raw(r#"{"name":"agent","version":"7"}"#).into(),
    }
}

pub(crate) async fn open(endpoint: &Endpoint) -> (Link, Heard) {
    let (audience, heard) = queue();
    let link = Link::open(endpoint, &short(), &face(), audience)
        .await
        .unwrap();
    (link, heard)
}

/// A call of a tool as most tests make it.
pub(crate) fn asking<'a>(params: Option<&'a RawValue>, limit: u64) -> LinkAsking<'a> {
    LinkAsking {
        method: "tools/call",
        params,
        headers: Vec::new(),
        limit: Duration::from_millis(limit),
        aside: None,
        sent: None,
    }
}

pub(crate) type Outcome = Result<Result<Box<RawValue>, RpcError>, McpError>;

/// Calls a tool of the fixture without arguments.
pub(crate) async fn call(link: &Link, name: &str) -> Outcome {
    let params = raw(&json!({ "name": name }).to_string());
    link.ask(asking(Some(&params), 5000)).await
}

/// The result of a call as a value.
pub(crate) async fn value(link: &Link, name: &str) -> Value {
    let result = call(link, name).await.unwrap().unwrap();
    serde_json::from_str(result.get()).unwrap()
}
