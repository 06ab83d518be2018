//! Requests that take time, and the messages sent meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolwarden_mcp::{Era, RawObject};

use super::client_questions::{self, ClientQuestion};
use super::messages::{self, DemoError, complete_result};
use super::orders::{error_result, text_result};
use super::request::{DemoRequest, value};
use super::shop::{DemoEvent, Shop};

/// How long a client may take to answer a question.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(60);

/// A request that is not answered at once.
#[derive(Debug)]
pub(super) enum DeferredWork {
    /// A report with progress.
    Export {
        steps: u64,
        pause: Duration,
        /// The client's token, if it wants progress notifications.
        token: Option<Value>,
        /// Whether the client wants log messages.
        logs: bool,
    },
    /// A question to the client of the handshake era.
    Ask {
        tool: String,
        order: String,
        question: ClientQuestion,
    },
    /// Notifications of the stateless era, for as long as the client listens.
    Listen { wanted: Value },
}

impl DeferredWork {
    /// The report that the parameters of a call request.
    pub(super) fn export(era: Era, params: &RawObject<'_>) -> Self {
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

    /// Does the work, and sends the answer.
    pub(super) async fn run(self, shop: &Shop, asked: &DemoRequest, out: &mpsc::Sender<String>) {
        // A listener ends by disconnecting.
        let mut watch = CancelCounter {
            shop,
            is_done: matches!(self, Self::Listen { .. }),
        };
        let outcome = self.perform(shop, asked, out).await;
        let answer = messages::response(&asked.id, &outcome);
        watch.is_done |= out.send(answer).await.is_ok();
    }

    /// Does the work. Messages go to `out`; an error there means that the client is gone.
    async fn perform(
        self,
        shop: &Shop,
        asked: &DemoRequest,
        out: &mpsc::Sender<String>,
    ) -> Result<String, DemoError> {
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
                    send_message(out, messages::notification("notifications/message", &entry))
                        .await?;
                }
                for step in 1..=steps {
                    sleep(pause).await;
                    if let Some(token) = &token {
                        let progress =
                            json!({"progressToken": token, "progress": step, "total": steps});
                        send_message(
                            out,
                            messages::notification("notifications/progress", &progress),
                        )
                        .await?;
                    }
                }
                Ok(complete_result(
                    asked.era,
                    &text_result("the report is written"),
                ))
            }
            Self::Ask {
                tool,
                order,
                question,
            } => {
                let members = ask(shop, asked, out, &tool, &order, question).await?;
                Ok(complete_result(asked.era, &members))
            }
            Self::Listen { wanted } => listen(shop, asked, out, &wanted).await,
        }
    }
}

/// Counts work that was cancelled before it was done.
struct CancelCounter<'s> {
    shop: &'s Shop,
    is_done: bool,
}

impl Drop for CancelCounter<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shop.record(|seen| seen.cancelled += 1);
        }
    }
}

async fn ask(
    shop: &Shop,
    asked: &DemoRequest,
    out: &mpsc::Sender<String>,
    tool: &str,
    order: &str,
    question: ClientQuestion,
) -> Result<String, DemoError> {
    if !shop.client_has_capability(&asked.session, question.capability) {
        return Ok(error_result(&format!(
            "the client has no {}",
            question.capability
        )));
    }
    let (id, reply) = shop.expect_reply();
    send_message(
        out,
        messages::request(id, question.method, &question.params),
    )
    .await?;
    Ok(match timeout(QUESTION_TIMEOUT, reply).await {
        Ok(Ok(Ok(reply))) => {
            let reply = serde_json::from_str(reply.get()).unwrap_or_default();
            client_questions::conclude(tool, order, &reply)
        }
        Ok(Ok(Err(refused))) => error_result(&format!("the client refused: {}", refused.message)),
        Ok(Err(_gone)) => error_result("the question was lost"),
        Err(_elapsed) => error_result("the client did not reply"),
    })
}

async fn listen(
    shop: &Shop,
    asked: &DemoRequest,
    out: &mpsc::Sender<String>,
    wanted: &Value,
) -> Result<String, DemoError> {
    let mut news = shop.subscribe_events();
    let mut closed = shop.closed();
    let id: Value = serde_json::from_str(asked.id.get()).unwrap_or_default();
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let agreed = json!({"_meta": meta, "notifications": wanted});
    let agreed = messages::notification("notifications/subscriptions/acknowledged", &agreed);
    send_message(out, agreed).await?;
    loop {
        let heard = tokio::select! {
            heard = news.recv() => heard,
            _closed = closed.changed() => break,
            () = out.closed() => break,
        };
        let notice = match heard {
            Ok(DemoEvent::List(list))
                if wanted.get(format!("{list}ListChanged")) == Some(&json!(true)) =>
            {
                messages::notification(
                    &format!("notifications/{list}/list_changed"),
                    &json!({"_meta": meta}),
                )
            }
            Ok(DemoEvent::Resource(uri)) if is_among(&uri, wanted.get("resourceSubscriptions")) => {
                let params = json!({"uri": &*uri, "_meta": meta});
                messages::notification("notifications/resources/updated", &params)
            }
            Ok(DemoEvent::List(_) | DemoEvent::Resource(_)) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => break,
        };
        send_message(out, notice).await?;
    }
    Ok(json!({"resultType": "complete", "_meta": meta}).to_string())
}

fn is_among(uri: &str, list: Option<&Value>) -> bool {
    let list = list.and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|it| it == uri))
}

async fn send_message(out: &mpsc::Sender<String>, text: String) -> Result<(), DemoError> {
    let sent = out.send(text).await;
    sent.map_err(|_gone| DemoError::new(-32603, "no client listens"))
}
