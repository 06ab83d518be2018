//! The shop over standard streams, or any other reader and writer.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolwarden_mcp::{Era, RawObject, RpcMessage};

use super::dispatch::{DemoResponse, dispatch};
use super::messages::{self, DemoError};
use super::request::DemoRequest;
use super::shop::{DemoEvent, Shop, SupportedEras};
use super::stateless;

/// The longest line that is read.
const LINE_BYTES: u64 = 256 << 20;
/// Outgoing messages.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Distinguishes the connections of one shop.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// Serves one client until it closes its output.
///
/// # Errors
/// The streams cannot be read or written.
pub async fn serve_stdio(
    shop: &Shop,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let session = format!("stdio-{number}");
    let (out, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let served = tokio::select! {
        read = read(shop, &session, input, out) => read,
        written = write(output, messages) => written,
    };
    shop.end_session(&session);
    served
}

/// Forwards events to a client of the handshake era, until the client is gone.
pub(super) async fn forward_events(
    shop: &Shop,
    session: &str,
    mut news: broadcast::Receiver<DemoEvent>,
    out: &mpsc::Sender<String>,
) {
    loop {
        let notice = match news.recv().await {
            Ok(DemoEvent::List(list)) => {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#)
            }
            Ok(DemoEvent::Resource(uri)) if shop.is_subscribed(session, &uri) => {
                let params = json!({"uri": &*uri});
                messages::notification("notifications/resources/updated", &params)
            }
            Ok(DemoEvent::Resource(_)) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if out.send(notice).await.is_err() {
            return;
        }
    }
}

/// Cancels the request that a notification names.
pub(super) fn handle_cancellation(shop: &Shop, session: &str, params: Option<&RawValue>) {
    let params = RawObject::parse_optional(params);
    if let Some(id) = params.get("requestId") {
        shop.cancel(&format!("{session}/{id}"));
    }
}

async fn read(
    shop: &Shop,
    session: &str,
    input: impl AsyncRead + Unpin,
    out: mpsc::Sender<String>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut tasks = JoinSet::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut input).take(LINE_BYTES);
        if bounded.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        shop.ready().await;
        while tasks.try_join_next().is_some() {}
        for message in RpcMessage::parse_all(&line).unwrap_or_default() {
            match message {
                RpcMessage::Request { id, method, params } => {
                    let asked = demo_request(session, id, method, params);
                    handle_request(shop, asked, &out, &mut tasks).await;
                }
                RpcMessage::Notification { method, params } => {
                    shop.record(|seen| seen.count(&method));
                    if method == "notifications/initialized" {
                        let (shop, session, out) = (shop.clone(), session.to_owned(), out.clone());
                        let news = shop.subscribe_events();
                        tasks.spawn(
                            async move { forward_events(&shop, &session, news, &out).await },
                        );
                    } else if method == "notifications/cancelled" {
                        handle_cancellation(shop, session, params.as_deref());
                    }
                }
                RpcMessage::Response { id, outcome } => shop.resolve_reply(&id, outcome),
            }
        }
    }
}

fn demo_request(
    session: &str,
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
) -> DemoRequest {
    let stateless = method != "initialize"
        && stateless::is_stateless(&RawObject::parse_optional(params.as_deref()));
    DemoRequest {
        era: if stateless {
            Era::Stateless
        } else {
            Era::Handshake
        },
        id,
        method,
        params,
        session: session.to_owned(),
    }
}

async fn handle_request(
    shop: &Shop,
    asked: DemoRequest,
    out: &mpsc::Sender<String>,
    tasks: &mut JoinSet<()>,
) {
    let admitted = check_request(shop, &asked);
    let outcome = match admitted.map(|()| dispatch(shop, &asked)) {
        Ok(DemoResponse::Ready(outcome)) => outcome,
        Ok(DemoResponse::Deferred(work)) => {
            shop.record(|seen| seen.last_params.clone_from(&asked.params));
            let key = asked.running_key();
            let (ours, out) = (shop.clone(), out.clone());
            let task = tasks.spawn(async move { work.run(&ours, &asked, &out).await });
            shop.set_running(key, task);
            return;
        }
        Err(refusal) => Err(refusal),
    };
    let text = messages::response(&asked.id, &outcome);
    shop.record(|seen| seen.last_params = asked.params);
    // A client that does not read is noticed by the writer.
    let _gone = out.send(text).await;
}

fn check_request(shop: &Shop, asked: &DemoRequest) -> Result<(), DemoError> {
    match (asked.era, shop.options().eras) {
        (Era::Stateless, SupportedEras::Handshake) => Err(DemoError::unknown_method(&asked.method)),
        (Era::Stateless, SupportedEras::Both | SupportedEras::Stateless) => {
            stateless::check(shop, asked, None)
        }
        (Era::Handshake, _) if asked.method == "initialize" => Ok(()),
        (Era::Handshake, SupportedEras::Stateless) => Err(DemoError::invalid("`_meta` is missing")),
        (Era::Handshake, SupportedEras::Both | SupportedEras::Handshake) => {
            if shop.has_session(&asked.session) || asked.method == "ping" {
                return Ok(());
            }
            Err(DemoError::new(-32600, "`initialize` comes first"))
        }
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(mut message) = messages.recv().await {
        message.push('\n');
        output.write_all(message.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
