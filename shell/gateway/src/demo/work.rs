//! Requests that take time, and what is said meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolwarden_mcp::{Era, Members};

use super::answer::{Asked, value};
use super::asking::{self, Question};
use super::orders::{failure, said};
use super::page::{self, Refusal, complete};
use super::shop::{News, Shop};

/// How long a client may think about a question.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something that is not answered at once.
#[derive(Debug)]
pub(super) enum Work {
    /// A report with progress.
    Export {
        steps: u64,
        pause: Duration,
        /// The client's token, if it wants to hear of progress.
        token: Option<Value>,
        /// Whether the client wants log messages.
        logs: bool,
    },
    /// A question to the client of the handshake era.
    Ask {
        tool: String,
        order: String,
        question: Question,
    },
    /// News of the stateless era, for as long as the client listens.
    Listen { wanted: Value },
}

impl Work {
    /// The report that these parameters of a call ask for.
    pub(super) fn export(era: Era, params: &Members<'_>) -> Self {
        let arguments = value(params, "arguments");
        let meta = value(params, "_meta");
        let number = |key: &str, otherwise| {
            arguments
                .get(key)
                .and_then(Value::as_u64)
                .unwrap_or(otherwise)
        };
        let wants_logs = meta.get("io.modelcontextprotocol/logLevel").is_some();
        Self::Export {
            steps: number("steps", 5).min(1000),
            pause: Duration::from_millis(number("pause_ms", 20).min(60_000)),
            token: meta.get("progressToken").cloned(),
            logs: era == Era::Handshake || wants_logs,
        }
    }

    /// Does it, and sends the answer.
    pub(super) async fn run(self, shop: &Shop, asked: &Asked, out: &mpsc::Sender<String>) {
        // Whoever listens ends by going away.
        let mut watch = Watch {
            shop,
            is_done: matches!(self, Self::Listen { .. }),
        };
        let outcome = self.perform(shop, asked, out).await;
        let answer = page::answer(&asked.id, &outcome);
        watch.is_done |= out.send(answer).await.is_ok();
    }

    /// What is said goes to `out`; an error there means that nobody listens any more.
    async fn perform(
        self,
        shop: &Shop,
        asked: &Asked,
        out: &mpsc::Sender<String>,
    ) -> Result<String, Refusal> {
        match self {
            Self::Export {
                steps,
                pause,
                token,
                logs,
            } => {
                if logs {
                    let entry =
                        json!({"level": "info", "logger": "reports", "data": {"steps": steps}});
                    say(out, page::notification("notifications/message", &entry)).await?;
                }
                for step in 1..=steps {
                    sleep(pause).await;
                    if let Some(token) = &token {
                        let progress =
                            json!({"progressToken": token, "progress": step, "total": steps});
                        say(out, page::notification("notifications/progress", &progress)).await?;
                    }
                }
                Ok(complete(asked.era, &said("the report is written")))
            }
            Self::Ask {
                tool,
                order,
                question,
            } => {
                let members = ask(shop, asked, out, &tool, &order, question).await?;
                Ok(complete(asked.era, &members))
            }
            Self::Listen { wanted } => listen(shop, asked, out, &wanted).await,
        }
    }
}

/// Counts work that was given up before it was done.
struct Watch<'s> {
    shop: &'s Shop,
    is_done: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shop.note(|seen| seen.given_up += 1);
        }
    }
}

async fn ask(
    shop: &Shop,
    asked: &Asked,
    out: &mpsc::Sender<String>,
    tool: &str,
    order: &str,
    question: Question,
) -> Result<String, Refusal> {
    if !shop.can(&asked.session, question.capability) {
        return Ok(failure(&format!(
            "the client has no {}",
            question.capability
        )));
    }
    let (id, reply) = shop.expect_reply();
    say(out, page::request(id, question.method, &question.params)).await?;
    Ok(match timeout(PATIENCE, reply).await {
        Ok(Ok(Ok(reply))) => {
            let reply = serde_json::from_str(reply.get()).unwrap_or_default();
            asking::conclude(tool, order, &reply)
        }
        Ok(Ok(Err(refused))) => failure(&format!("the client refused: {}", refused.message)),
        Ok(Err(_gone)) => failure("the question was lost"),
        Err(_elapsed) => failure("the client did not reply"),
    })
}

async fn listen(
    shop: &Shop,
    asked: &Asked,
    out: &mpsc::Sender<String>,
    wanted: &Value,
) -> Result<String, Refusal> {
    let mut news = shop.news();
    let mut closed = shop.closed();
    let id: Value = serde_json::from_str(asked.id.get()).unwrap_or_default();
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let agreed = json!({"_meta": meta, "notifications": wanted});
    let agreed = page::notification("notifications/subscriptions/acknowledged", &agreed);
    say(out, agreed).await?;
    loop {
        let heard = tokio::select! {
            heard = news.recv() => heard,
            _closed = closed.changed() => break,
            () = out.closed() => break,
        };
        let notice = match heard {
            Ok(News::List(list))
                if wanted.get(format!("{list}ListChanged")) == Some(&json!(true)) =>
            {
                page::notification(
                    &format!("notifications/{list}/list_changed"),
                    &json!({"_meta": meta}),
                )
            }
            Ok(News::Resource(uri)) if is_among(&uri, wanted.get("resourceSubscriptions")) => {
                let params = json!({"uri": &*uri, "_meta": meta});
                page::notification("notifications/resources/updated", &params)
            }
            Ok(News::List(_) | News::Resource(_)) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => break,
        };
        say(out, notice).await?;
    }
    Ok(json!({"resultType": "complete", "_meta": meta}).to_string())
}

fn is_among(uri: &str, list: Option<&Value>) -> bool {
    let list = list.and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|it| it == uri))
}

async fn say(out: &mpsc::Sender<String>, text: String) -> Result<(), Refusal> {
    let sent = out.send(text).await;
    sent.map_err(|_gone| Refusal::new(-32603, "nobody listens"))
}
