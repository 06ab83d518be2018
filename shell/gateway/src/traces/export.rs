//! Collects spans and sends them to a collector as OTLP/HTTP in JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolwarden_settings::TraceSettings;

use super::context::TraceContext;
use super::{CallSpanEnd, TraceError};

/// The most spans that wait to be sent; further ones are dropped.
const MAX_QUEUED_SPANS: usize = 4_096;
/// The most spans of one message.
const MAX_BATCH_SPANS: usize = 512;
/// How long spans are collected before they are sent.
const BATCH_WINDOW: Duration = Duration::from_millis(500);
/// The timeout for a collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends spans.
#[derive(Debug)]
pub(super) struct Exporter {
    spans: mpsc::Sender<Value>,
    permille: u32,
}

/// A span that has not ended.
#[derive(Debug)]
pub(super) struct OpenSpan {
    context: TraceContext,
    parent: Option<u64>,
    began: SystemTime,
}

impl OpenSpan {
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
            .timeout(EXPORT_TIMEOUT)
            .build()
            .map_err(|_| invalid())?;
        let (spans, waiting) = mpsc::channel(MAX_QUEUED_SPANS);
        tokio::spawn(send(client, url, waiting));
        Ok(Self {
            spans,
            permille: settings.permille,
        })
    }

    /// Begins a span: in the agent's trace if it has one, otherwise by random sampling.
    pub(super) fn begin(&self, http_context: Option<&str>) -> Option<OpenSpan> {
        let parent = http_context.and_then(TraceContext::parse);
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
        Some(OpenSpan {
            context,
            parent: parent.map(|parent| parent.span),
            began: SystemTime::now(),
        })
    }

    pub(super) fn end(&self, open: &OpenSpan, ended: &CallSpanEnd<'_>) {
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
        // An unreachable collector must not delay calls.
        let _full = self.spans.try_send(span);
    }
}

async fn send(client: reqwest::Client, url: reqwest::Url, mut waiting: mpsc::Receiver<Value>) {
    let mut spans = Vec::with_capacity(MAX_BATCH_SPANS);
    while waiting.recv_many(&mut spans, MAX_BATCH_SPANS).await > 0 {
        if spans.len() < MAX_BATCH_SPANS {
            tokio::time::sleep(BATCH_WINDOW).await;
            while spans.len() < MAX_BATCH_SPANS
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
        // Traces are for observing calls, not for proving them: spans that the collector refuses are lost.
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::super::Tracer;
    use super::*;

    /// Accepts one request, and returns its head and body.
    fn take(listener: &TcpListener) -> (String, Value) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut buffer = [0; 4096];
        loop {
            let read = stream.read(&mut buffer).unwrap();
            text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    .unwrap();
                return (head.to_owned(), body);
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_call_becomes_a_span_of_its_agents_trace() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = TraceSettings {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            permille: 0,
        };
        let tracer = Tracer::new(Some(&settings)).unwrap();
        let http_context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        // Without a trace of its agent a call is sampled, here never.
        assert_eq!(tracer.begin(None).header(), None);
        let span = tracer.begin(Some(http_context));
        let (name, header) = span.header().unwrap();
        let sent = TraceContext::parse(&header).unwrap();
        let parent = TraceContext::parse(http_context).unwrap();
        assert_eq!((name.as_str(), sent.trace), ("traceparent", parent.trace));
        assert_ne!(sent.span, parent.span);
        let ended = CallSpanEnd {
            tool: "shop__echo",
            server: Some("shop"),
            principal: "ada",
            error: Some("refused".into()),
        };
        tracer.end(&span, &ended);
        let (head, mut body) = tokio::task::spawn_blocking(move || take(&listener))
            .await
            .unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        let span = &mut body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let times = ["startTimeUnixNano", "endTimeUnixNano"].map(|key| span[key].take());
        let times = times.map(|time| time.as_str().unwrap().parse::<u64>().unwrap());
        assert!(times[0] > 0 && times[0] <= times[1], "{times:?}");
        let attribute =
            |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        assert_eq!(
            *span,
            json!({
                "traceId": "0af7651916cd43dd8448eb211c80319c",
                "spanId": format!("{:016x}", sent.span),
                "parentSpanId": "b7ad6b7169203331",
                "name": "tools/call shop__echo",
                "kind": 2,
                "startTimeUnixNano": null,
                "endTimeUnixNano": null,
                "attributes": [
                    attribute("mcp.method.name", "tools/call"),
                    attribute("gen_ai.tool.name", "shop__echo"),
                    attribute("enduser.id", "ada"),
                    attribute("toolwarden.server", "shop"),
                ],
                "status": {"code": 2, "message": "refused"},
            })
        );
    }
}
