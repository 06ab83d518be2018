//! The shop over standard streams, or whatever reads and writes like them.

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
use toolwarden_mcp::{Era, Members, Message};

use super::answer::{Answer, Asked, answer};
use super::http::running_key;
use super::page::{self, Refusal};
use super::shop::{Eras, News, Shop};
use super::stateless;

/// The longest line that is read.
const LINE_BYTES: u64 = 256 << 20;
/// Messages on the way out.
const ON_THE_WAY: usize = 64;

/// Tells connections of one shop apart.
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
    let (out, messages) = mpsc::channel(ON_THE_WAY);
    let served = tokio::select! {
        read = read(shop, &session, input, out) => read,
        written = write(output, messages) => written,
    };
    shop.end_session(&session);
    served
}

/// Passes news on to a client of the handshake era, until there is nobody to tell.
pub(super) async fn tell_news(
    shop: &Shop,
    session: &str,
    mut news: broadcast::Receiver<News>,
    out: &mpsc::Sender<String>,
) {
    loop {
        let notice = match news.recv().await {
            Ok(News::List(list)) => {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#)
            }
            Ok(News::Resource(uri)) if shop.is_subscribed(session, &uri) => {
                let params = json!({"uri": &*uri});
                page::notification("notifications/resources/updated", &params)
            }
            Ok(News::Resource(_)) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if out.send(notice).await.is_err() {
            return;
        }
    }
}

/// Gives up the request that a notification names.
pub(super) fn cancelled(shop: &Shop, session: &str, params: Option<&RawValue>) {
    let params = Members::of_optional(params);
    if let Some(id) = params.get("requestId") {
        shop.give_up(&format!("{session}/{id}"));
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
        for message in Message::parse_all(&line).unwrap_or_default() {
            match message {
                Message::Request { id, method, params } => {
                    let asked = asked(session, id, method, params);
                    take(shop, asked, &out, &mut tasks).await;
                }
                Message::Notification { method, params } => {
                    shop.note(|seen| seen.count(&method));
                    if method == "notifications/initialized" {
                        let (shop, session, out) = (shop.clone(), session.to_owned(), out.clone());
                        let news = shop.news();
                        tasks.spawn(async move { tell_news(&shop, &session, news, &out).await });
                    } else if method == "notifications/cancelled" {
                        cancelled(shop, session, params.as_deref());
                    }
                }
                Message::Response { id, outcome } => shop.settle(&id, outcome),
            }
        }
    }
}

fn asked(session: &str, id: Box<RawValue>, method: String, params: Option<Box<RawValue>>) -> Asked {
    let stateless =
        method != "initialize" && stateless::is_stateless(&Members::of_optional(params.as_deref()));
    Asked {
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

async fn take(shop: &Shop, asked: Asked, out: &mpsc::Sender<String>, tasks: &mut JoinSet<()>) {
    let admitted = admit(shop, &asked);
    let outcome = match admitted.map(|()| answer(shop, &asked)) {
        Ok(Answer::Now(outcome)) => outcome,
        Ok(Answer::Later(work)) => {
            shop.note(|seen| seen.last_params.clone_from(&asked.params));
            let key = running_key(&asked.session, &asked.id);
            let (ours, out) = (shop.clone(), out.clone());
            let task = tasks.spawn(async move { work.run(&ours, &asked, &out).await });
            shop.set_running(key, task);
            return;
        }
        Err(refusal) => Err(refusal),
    };
    let text = page::answer(&asked.id, &outcome);
    shop.note(|seen| seen.last_params = asked.params);
    // A client that does not read is noticed where it is written to.
    let _gone = out.send(text).await;
}

fn admit(shop: &Shop, asked: &Asked) -> Result<(), Refusal> {
    match (asked.era, shop.options().eras) {
        (Era::Stateless, Eras::Handshake) => Err(Refusal::unknown_method(&asked.method)),
        (Era::Stateless, Eras::Both | Eras::Stateless) => stateless::check(shop, asked, None),
        (Era::Handshake, _) if asked.method == "initialize" => Ok(()),
        (Era::Handshake, Eras::Stateless) => Err(Refusal::invalid("`_meta` is missing")),
        (Era::Handshake, Eras::Both | Eras::Handshake) => {
            if shop.has_session(&asked.session) || asked.method == "ping" {
                return Ok(());
            }
            Err(Refusal::new(-32600, "`initialize` comes first"))
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
