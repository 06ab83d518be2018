//! A minimal server: tools that return the text they are given.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bytes_body::{BytesBody, read};
use super::part::serve_with;

/// The arguments of a tool, besides the text that it returns.
const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","maxLength":1000000},"limit":{"type":"integer","minimum":1,"maximum":100},"tags":{"type":"array","items":{"type":"string"},"maxItems":8}},"required":["text"],"additionalProperties":false}"#;

/// The server.
pub(crate) struct Echo {
    is_stateless: bool,
    list: String,
    sessions: AtomicU64,
}

#[derive(Deserialize)]
struct EchoRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EchoCall<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EchoInitialize {
    protocol_version: String,
}

/// The name of a tool.
pub(crate) fn tool(number: usize) -> String {
    format!("echo_{number}")
}

impl Echo {
    pub(crate) fn new(is_stateless: bool, tools: usize) -> Self {
        let mut list = String::new();
        for number in 0..tools {
            let comma = if number == 0 { "" } else { "," };
            let name = tool(number);
            write!(
                list,
                r#"{comma}{{"name":"{name}","description":"Gives the text back, number {number}.","inputSchema":{SCHEMA}}}"#
            )
            .unwrap();
        }
        Self {
            is_stateless,
            list,
            sessions: AtomicU64::new(0),
        }
    }

    /// Answers over HTTP until the process ends.
    pub(crate) async fn serve(self) {
        let server = Arc::new(self);
        serve_with(move |request| {
            let server = Arc::clone(&server);
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        })
        .await;
    }

    /// Answers over standard streams until they end.
    pub(crate) fn serve_lines(&self) {
        let mut output = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            if let Some((answer, _)) = self.answer(line.unwrap().as_bytes()) {
                output.write_all(answer.as_bytes()).unwrap();
                output.write_all(b"\n").unwrap();
                output.flush().unwrap();
            }
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<BytesBody> {
        let status = match *request.method() {
            Method::POST => {
                // A client that leaves has no use for an answer.
                let body = read(request.into_body()).await.unwrap_or_default();
                if let Some((answer, opens)) = self.answer(&body) {
                    return self.answered(answer, opens);
                }
                StatusCode::ACCEPTED
            }
            Method::DELETE => StatusCode::OK,
            _ => StatusCode::METHOD_NOT_ALLOWED,
        };
        let mut response = Response::new(BytesBody::new(""));
        *response.status_mut() = status;
        response
    }

    fn answered(&self, answer: String, opens: bool) -> Response<BytesBody> {
        let mut response = Response::new(BytesBody::new(answer));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if opens {
            let number = self.sessions.fetch_add(1, Ordering::Relaxed);
            headers.insert("mcp-session-id", HeaderValue::from(number));
        }
        response
    }

    /// The answer to a request, and whether it opens a session.
    fn answer(&self, text: &[u8]) -> Option<(String, bool)> {
        let asked: EchoRequest<'_> = serde_json::from_slice(text).unwrap();
        let id = asked.id?.get();
        let result = self.result(&asked);
        let opens = &*asked.method == "initialize" && result.is_some();
        let answer = match result {
            Some(members) => {
                let kind = if self.is_stateless {
                    r#""resultType":"complete","#
                } else {
                    ""
                };
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}{members}}}}}"#)
            }
            None => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"unknown method"}}}}"#
            ),
        };
        Some((answer, opens))
    }

    fn result(&self, asked: &EchoRequest<'_>) -> Option<String> {
        let params = asked.params.map_or("{}", RawValue::get);
        match &*asked.method {
            "tools/call" => {
                let called: EchoCall<'_> = serde_json::from_str(params).unwrap();
                let text = called.arguments.text.get();
                Some(format!(r#""content":[{{"type":"text","text":{text}}}]"#))
            }
            "tools/list" => {
                let times = if self.is_stateless { r#""ttlMs":600000,"cacheScope":"public","# } else { "" };
                Some(format!(r#"{times}"tools":[{}]"#, self.list))
            }
            "server/discover" if self.is_stateless => Some(
                r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":600000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}"#
                    .to_owned(),
            ),
            "initialize" if !self.is_stateless => {
                let opened: EchoInitialize = serde_json::from_str(params).unwrap();
                let version = opened.protocol_version;
                Some(format!(
                    r#""protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}"#
                ))
            }
            "ping" => Some(String::new()),
            _ => None,
        }
    }
}
