//! Streamable HTTP: every message is a POST, answered with JSON or an event stream.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, Response};
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};
use toolwarden_model::event_stream::{Event, EventReader};

use super::Call;
use super::http_base::{EVENTS, HttpBase, JSON_OR_EVENTS, Post, content_type, fault, has_type};
use crate::error::{McpError, ProtocolFault};
use crate::message::{self, Message};
use crate::protocol::{SESSION_HEADER, VERSION_HEADER};

/// How often a stream that ended early is resumed.
const RESUMES: usize = 16;
/// The pause before resuming, unless the server names one.
const RESUME_AFTER: Duration = Duration::from_secs(1);

/// A server spoken to by streamable HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    base: HttpBase,
    session: Mutex<Session>,
}

#[derive(Debug, Default)]
struct Session {
    id: Option<String>,
    version: Option<String>,
}

/// Where to go on reading after a stream ended.
#[derive(Debug, Default)]
struct Resume {
    after: Option<String>,
    pause: Option<Duration>,
}

impl Http {
    pub(crate) fn new(base: HttpBase) -> Self {
        Self {
            base,
            session: Mutex::default(),
        }
    }

    /// The client without its session, to try the older transport.
    pub(crate) fn into_base(self) -> HttpBase {
        self.base
    }

    pub(super) fn adopt_version(&self, version: &str) {
        self.with_session(|session| session.version = Some(version.to_owned()));
    }

    pub(super) async fn exchange(&self, call: &Call) -> Result<Box<RawValue>, McpError> {
        let response = self
            .post(&call.method, &call.headers, call.body.clone())
            .await?;
        if call.method == "initialize" {
            self.keep_session(&response);
        }
        let content_type = content_type(&response);
        match content_type.as_str() {
            "application/json" => self.read_json(call, response).await,
            "text/event-stream" => self.read_events(call, response).await,
            "" => Err(fault(
                &call.method,
                ProtocolFault::NoBody {
                    status: response.status().as_u16(),
                },
            )),
            _ => Err(fault(
                &call.method,
                ProtocolFault::ContentType { content_type },
            )),
        }
    }

    pub(super) async fn notify(&self, method: &str, body: String) -> Result<(), McpError> {
        self.post(method, &[], body).await.map(drop)
    }

    /// Ends the session. A server that does not want to is left alone.
    pub(super) async fn close(self) {
        if self.with_session(|session| session.id.is_none()) {
            return;
        }
        let headers = self.headers(&[]);
        let post = Post {
            verb: Method::DELETE,
            url: self.base.url(),
            accept: JSON_OR_EVENTS,
            headers: &headers,
            body: None,
        };
        let _refused = timeout(self.base.limits.close, self.base.send("DELETE", post)).await;
    }

    async fn post(
        &self,
        method: &str,
        headers: &[(String, String)],
        body: String,
    ) -> Result<Response, McpError> {
        let headers = self.headers(headers);
        let post = Post {
            verb: Method::POST,
            url: self.base.url(),
            accept: JSON_OR_EVENTS,
            headers: &headers,
            body: Some(body),
        };
        self.base.send(method, post).await
    }

    async fn read_json(&self, call: &Call, response: Response) -> Result<Box<RawValue>, McpError> {
        let status = response.status().as_u16();
        let body = self.base.body(&call.method, response).await?;
        if body.trim_ascii().is_empty() {
            return Err(fault(&call.method, ProtocolFault::NoBody { status }));
        }
        let mut stray = None;
        if let Some(result) = self.take(call, &body, &mut stray).await? {
            return Ok(result);
        }
        Err(unanswered(call, stray))
    }

    async fn read_events(
        &self,
        call: &Call,
        response: Response,
    ) -> Result<Box<RawValue>, McpError> {
        let mut stray = None;
        let mut resume = Resume::default();
        let mut stream = Some(response);
        for _attempt in 0..RESUMES {
            let Some(response) = stream.take() else { break };
            if let Some(result) = self.follow(call, response, &mut stray, &mut resume).await? {
                return Ok(result);
            }
            stream = self.resume(call, &resume).await;
        }
        Err(unanswered(call, stray))
    }

    /// Reads one stream until the answer or its end.
    async fn follow(
        &self,
        call: &Call,
        mut response: Response,
        stray: &mut Option<String>,
        resume: &mut Resume,
    ) -> Result<Option<Box<RawValue>>, McpError> {
        let limit = self.base.limits.message_bytes;
        let mut reader = EventReader::new(limit);
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(None),
                // A broken stream can be resumed like one that ended.
                Err(_broken) if resume.after.is_some() => return Ok(None),
                Err(error) => return Err(self.base.broken(&call.method, error)),
            };
            let events = reader
                .feed(&chunk)
                .map_err(|_large| McpError::TooLarge { limit })?;
            for event in events {
                let Event {
                    name,
                    data,
                    id,
                    retry,
                } = event;
                resume.after = id.or(resume.after.take());
                resume.pause = retry.or(resume.pause);
                let is_message = name.is_empty() || name == "message";
                // Servers send an empty event first so that the stream can be resumed.
                if is_message
                    && !data.is_empty()
                    && let Some(result) = self.take(call, &data, stray).await?
                {
                    return Ok(Some(result));
                }
            }
        }
    }

    /// Opens the stream again after the last event, if the server numbers its events.
    async fn resume(&self, call: &Call, resume: &Resume) -> Option<Response> {
        let after = resume.after.clone()?;
        sleep(resume.pause.unwrap_or(RESUME_AFTER)).await;
        let headers = self.headers(&[("last-event-id".to_owned(), after)]);
        let post = Post {
            verb: Method::GET,
            url: self.base.url(),
            accept: EVENTS,
            headers: &headers,
            body: None,
        };
        // A server that cannot resume leaves the request without an answer, which is reported.
        let response = self.base.send(&call.method, post).await.ok()?;
        has_type(&response, EVENTS).then_some(response)
    }

    /// Takes the messages of one text: returns the answer to the call, answers requests.
    async fn take(
        &self,
        call: &Call,
        text: &[u8],
        stray: &mut Option<String>,
    ) -> Result<Option<Box<RawValue>>, McpError> {
        let messages =
            Message::parse_all(text).map_err(|invalid| fault(&call.method, invalid.into()))?;
        let mut result = None;
        for received in messages {
            match received {
                Message::Response { id, outcome } => {
                    let unread = id.get() == "null" && outcome.is_err();
                    if id.get() == call.id.to_string() || unread {
                        result = Some(outcome.map_err(|error| error.for_method(&call.method))?);
                    } else {
                        *stray = Some(id.get().to_owned());
                    }
                }
                Message::Request {
                    id,
                    method,
                    params: _,
                } => {
                    // Whether the server takes the answer shows in the answer to the call.
                    let answer = message::answer(&id, &method);
                    let _refused = self.post(&method, &[], answer).await;
                }
                Message::Notification { .. } => {}
            }
        }
        Ok(result)
    }

    fn headers(&self, more: &[(String, String)]) -> Vec<(String, String)> {
        let mut headers = Vec::with_capacity(more.len() + 2);
        self.with_session(|session| {
            if let Some(id) = &session.id {
                headers.push((SESSION_HEADER.to_owned(), id.clone()));
            }
            if let Some(version) = &session.version {
                headers.push((VERSION_HEADER.to_owned(), version.clone()));
            }
        });
        headers.extend_from_slice(more);
        headers
    }

    fn keep_session(&self, response: &Response) {
        let id = response.headers().get(SESSION_HEADER);
        let id = id.map(HeaderValue::to_str).and_then(Result::ok);
        self.with_session(|session| session.id = id.map(str::to_owned));
    }

    fn with_session<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        work(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn unanswered(call: &Call, stray: Option<String>) -> McpError {
    let expected = call.id;
    let reason = stray.map_or(ProtocolFault::NoAnswer, |got| ProtocolFault::WrongId {
        expected,
        got,
    });
    fault(&call.method, reason)
}
