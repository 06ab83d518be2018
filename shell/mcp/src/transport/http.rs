//! Streamable HTTP: every message is a POST, answered with JSON or an event stream.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolwarden_http::Answer;

use super::http_base::{HttpBase, Outgoing, Refusal, content_type, fault};
use super::http_listen::listen;
use super::http_stream::Reading;
use super::{Call, OwnedTask};
use crate::audience::Ear;
use crate::codes::{INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::correlate::Outcome;
use crate::ending::Ending;
use crate::error::{McpError, ProtocolFault};
use crate::message::RpcError;
use crate::protocol::{
    Era, METHOD_HEADER, NAME_HEADER, SESSION_HEADER, STATELESS_VERSION, VERSION_HEADER,
    header_value,
};

/// A server spoken to by streamable HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    core: Arc<Core>,
    listening: OnceLock<OwnedTask>,
}

/// What the tasks of a connection share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) base: HttpBase,
    pub(super) ear: Arc<Ear>,
    session: Mutex<Session>,
    ending: Ending,
    /// Whether the server answers by streams of events.
    streams: AtomicBool,
}

/// The headers that every message carries.
#[derive(Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Http {
    pub(crate) fn new(base: HttpBase, ear: &Arc<Ear>) -> Self {
        let core = Core {
            base,
            ear: Arc::clone(ear),
            session: Mutex::default(),
            ending: Ending::default(),
            streams: AtomicBool::new(false),
        };
        Self {
            core: Arc::new(core),
            listening: OnceLock::new(),
        }
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.core.streams.load(Ordering::Relaxed)
    }

    pub(super) fn adopt_version(&self, version: &str) {
        let version = HeaderValue::try_from(version).ok();
        self.core.with_session(|session| session.version = version);
    }

    pub(super) async fn exchange(&self, call: Call<'_>) -> Result<Outcome, McpError> {
        match self.core.exchange(call).await {
            // The error in the body of a refusal is an answer.
            Err(McpError::Rpc {
                method: _,
                code,
                message,
                data,
            }) => Ok(Err(RpcError {
                code,
                message,
                data,
            })),
            outcome => outcome,
        }
    }

    pub(super) async fn tell(
        &self,
        step: &str,
        header: Option<&str>,
        body: String,
    ) -> Result<(), McpError> {
        let mut headers = HeaderMap::new();
        if let Some(method) = header {
            insert(&mut headers, METHOD_HEADER, method);
        }
        self.core.post(step, None, headers, body).await.map(drop)
    }

    pub(super) fn tell_later(&self, body: String) {
        let core = Arc::clone(&self.core);
        let post = async move {
            let post = core.post("POST", None, HeaderMap::new(), body);
            let _lost = timeout(core.base.limits.request, post).await;
        };
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(post);
        }
    }

    pub(super) fn listen(&self) {
        if let Ok(runtime) = Handle::try_current() {
            self.listening
                .get_or_init(|| OwnedTask(runtime.spawn(listen(Arc::clone(&self.core)))));
        }
    }

    pub(super) fn ending(&self) -> &Ending {
        &self.core.ending
    }

    /// Ends the session. A server that does not want to is left alone.
    pub(super) async fn close(&self) {
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
        let core = &self.core;
        if core.with_session(|session| session.id.is_some()) {
            let delete = Outgoing {
                verb: Method::DELETE,
                address: core.base.address(),
                headers: core.in_session(core.base.message_headers()).0,
                body: None,
            };
            let _refused = timeout(core.base.limits.close, core.base.send("DELETE", delete)).await;
        }
        core.ending.tell();
    }
}

impl Core {
    async fn exchange(&self, mut call: Call<'_>) -> Result<Outcome, McpError> {
        let body = mem::take(&mut call.body);
        let headers = headers_of(&call);
        let response = self.post(call.method, Some(call.id), headers, body).await?;
        if call.method == "initialize" {
            let id = response.headers.get(SESSION_HEADER).cloned();
            self.with_session(|session| session.id = id);
        }
        let content_type = content_type(&response);
        let reading = Reading::new(self, &call);
        match content_type.as_str() {
            "application/json" => reading.json(response).await,
            "text/event-stream" => {
                self.streams.store(true, Ordering::Relaxed);
                if let Some(aside) = call.aside {
                    aside.streamed();
                }
                Box::pin(reading.events(response)).await
            }
            "" => Err(fault(
                call.method,
                ProtocolFault::NoBody {
                    status: response.status.as_u16(),
                },
            )),
            _ => Err(fault(
                call.method,
                ProtocolFault::ContentType { content_type },
            )),
        }
    }

    /// Ends the connection to a server that sent too much.
    pub(super) fn end_flooded(&self) -> McpError {
        self.ending.tell();
        self.base.limits.flooded()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ending.is_told()
    }

    /// Posts a message; `id` is that of a request.
    pub(super) async fn post(
        &self,
        step: &str,
        id: Option<i64>,
        more: HeaderMap,
        body: String,
    ) -> Result<Answer, McpError> {
        let (mut headers, has_session) = self.in_session(self.base.message_headers());
        headers.extend(more);
        let post = Outgoing {
            verb: Method::POST,
            address: self.base.address(),
            headers,
            body: Some(body),
        };
        let response = self.base.execute(step, post).await?;
        if response.status.is_success() {
            return Ok(response);
        }
        let refusal = Box::pin(self.base.refusal(step, response)).await;
        if has_session && means_expired(&refusal, id) {
            // Some servers refuse a notification though they go on.
            if id.is_some() {
                self.ending.tell();
            }
            return Err(McpError::SessionExpired {
                refusal: Box::new(refusal.error),
            });
        }
        Err(refusal.error)
    }

    /// Opens an event stream that goes on after an event.
    pub(super) async fn get(&self, after: Option<&str>) -> Result<Answer, McpError> {
        let (mut headers, _) = self.in_session(self.base.stream_headers());
        if let Some(Ok(after)) = after.map(HeaderValue::try_from) {
            headers.insert("last-event-id", after);
        }
        let get = Outgoing {
            verb: Method::GET,
            address: self.base.address(),
            headers,
            body: None,
        };
        let response = self.base.send("GET", get).await?;
        let content_type = content_type(&response);
        if content_type == "text/event-stream" {
            Ok(response)
        } else {
            Err(fault("GET", ProtocolFault::ContentType { content_type }))
        }
    }

    /// Adds what names the session, and tells whether there is one.
    fn in_session(&self, mut headers: HeaderMap) -> (HeaderMap, bool) {
        self.with_session(|session| {
            if let Some(id) = &session.id {
                headers.insert(SESSION_HEADER, id.clone());
            }
            if let Some(version) = &session.version {
                headers.insert(VERSION_HEADER, version.clone());
            }
            (headers, session.id.is_some())
        })
    }

    fn with_session<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        work(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn headers_of(call: &Call<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &call.headers {
        // What is no header cannot be sent; the server tells what it misses.
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(name.as_str()),
            HeaderValue::try_from(value.as_str()),
        ) {
            headers.insert(name, value);
        }
    }
    if call.era == Era::Stateless {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(STATELESS_VERSION));
        insert(&mut headers, METHOD_HEADER, call.method);
        if let Some(name) = &call.name {
            insert(&mut headers, NAME_HEADER, name);
        }
    }
    headers
}

fn insert(headers: &mut HeaderMap, name: &'static str, text: &str) {
    // The value is printable ASCII by construction.
    if let Ok(value) = HeaderValue::try_from(&*header_value(text)) {
        headers.insert(name, value);
    }
}

/// Whether a refusal is about the session and not about the request. Servers tell it with 404, and
/// many with 400 and a code of their transport or no message at all.
fn means_expired(refusal: &Refusal, request: Option<i64>) -> bool {
    const OF_THE_TRANSPORT: [i64; 2] = [-32000, -32001];
    let answers = request.is_some_and(|request| {
        let id = refusal.id.as_ref();
        id.is_some_and(|id| id.get() == request.to_string())
    });
    match (refusal.status, &refusal.error) {
        (404, McpError::Rpc { code, .. }) => !(answers && *code == METHOD_NOT_FOUND),
        (400, McpError::Rpc { code, .. }) => {
            OF_THE_TRANSPORT.contains(code) || (!answers && *code == INVALID_REQUEST)
        }
        (400 | 404, _) => true,
        _ => false,
    }
}
