//! Spans on their way to a collector: gathered, and sent as OTLP/HTTP in JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolwarden_warden::settings::TraceSettings;

use super::context::TraceContext;
use super::{Ended, TraceError};

/// The most spans that wait to be sent; more are lost.
const WAITING: usize = 4_096;
/// The most spans of one message.
const MOST: usize = 512;
/// How long spans are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans.
#[derive(Debug)]
pub(super) struct Exporter {
    spans: mpsc::Sender<Value>,
    permille: u32,
}

/// A span that is not over.
#[derive(Debug)]
pub(super) struct Open {
    context: TraceContext,
    parent: Option<u64>,
    began: SystemTime,
}

impl Open {
    pub(super) const fn context(&self) -> TraceContext {
        self.context
    }
}

impl Exporter {
    pub(super) fn new(settings: &TraceSettings) -> Result<Self, TraceError> {
        let invalid = || TraceError::Address(settings.endpoint.clone());
        let base = settings.endpoint.trim_end_matches('/');
        let address = match base.ends_with("/v1/traces") {
            true => base.to_owned(),
            false => format!("{base}/v1/traces"),
        };
        let url = reqwest::Url::parse(&address).map_err(|_| invalid())?;
        let client = toolwarden_http::client(&url)
            .map_err(|_| invalid())?
            .timeout(PATIENCE)
            .build()
            .map_err(|_| invalid())?;
        let (spans, waiting) = mpsc::channel(WAITING);
        tokio::spawn(send(client, url, waiting));
        Ok(Self {
            spans,
            permille: settings.permille,
        })
    }

    /// Begins a span: in the agent's trace where it has one, else by chance.
    pub(super) fn begin(&self, came: Option<&str>) -> Option<Open> {
        let parent = came.and_then(TraceContext::read);
        let sampled = match &parent {
            Some(parent) => parent.sampled,
            None => getrandom::u32().ok()? % 1_000 < self.permille,
        };
        if !sampled {
            return None;
        }
        let trace = match &parent {
            Some(parent) => parent.trace,
            None => u128::from(getrandom::u64().ok()?) << 64 | u128::from(getrandom::u64().ok()?),
        };
        let context = TraceContext {
            trace: trace.max(1),
            span: getrandom::u64().ok()?.max(1),
            sampled: true,
        };
        Some(Open {
            context,
            parent: parent.map(|parent| parent.span),
            began: SystemTime::now(),
        })
    }

    pub(super) fn end(&self, open: Open, ended: &Ended<'_>) {
        let mut attributes = vec![
            attribute("mcp.method.name", "tools/call"),
            attribute("gen_ai.tool.name", ended.tool),
            attribute("enduser.id", ended.principal),
        ];
        attributes.extend(ended.server.map(|it| attribute("toolwarden.server", it)));
        let status = match &ended.error {
            Some(error) => json!({"code": 2, "message": error}),
            None => json!({"code": 1}),
        };
        let mut span = json!({
            "traceId": format!("{:032x}", open.context.trace),
            "spanId": format!("{:016x}", open.context.span),
            "name": format!("tools/call {}", ended.tool),
            "kind": 2,
            "startTimeUnixNano": nanoseconds(open.began),
            "endTimeUnixNano": nanoseconds(SystemTime::now()),
            "attributes": attributes,
            "status": status,
        });
        if let (Some(parent), Value::Object(members)) = (open.parent, &mut span) {
            members.insert("parentSpanId".to_owned(), format!("{parent:016x}").into());
        }
        // A collector that is away must not hold calls up.
        let _full = self.spans.try_send(span);
    }
}

async fn send(client: reqwest::Client, url: reqwest::Url, mut waiting: mpsc::Receiver<Value>) {
    let mut spans = Vec::with_capacity(MOST);
    while waiting.recv_many(&mut spans, MOST).await > 0 {
        if spans.len() < MOST {
            tokio::time::sleep(GATHER).await;
            while spans.len() < MOST
                && let Ok(span) = waiting.try_recv()
            {
                spans.push(span);
            }
        }
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": [
                attribute("service.name", "toolwarden"),
                attribute("service.version", env!("CARGO_PKG_VERSION")),
            ]},
            "scopeSpans": [{"scope": {"name": "toolwarden"}, "spans": std::mem::take(&mut spans)}],
        }]});
        let sent = client
            .post(url.clone())
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await;
        // Traces are for looking at calls, not for proving them: what a collector does not take is lost.
        drop(sent);
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}
