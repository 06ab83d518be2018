//! Streamable HTTP: every message is a POST, answered with JSON or an event stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolwarden_http::HttpResponse;
use toolwarden_model::json::RawObject;

use super::AbortOnDrop;
use super::http_client::{
    HttpErrorStatus, ServerHttpClient, ServerHttpRequest, content_type, protocol_error,
};
use super::http_response::ResponseReader;
use super::http_server_stream::listen;
use crate::close_signal::CloseSignal;
use crate::error::{McpError, ProtocolFault};
use crate::error_codes::{INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::mcp_request::McpRequest;
use crate::message_handler::MessageDispatcher;
use crate::pending_requests::RpcOutcome;
use crate::protocol::{
    Era, METHOD_HEADER, NAME_HEADER, SESSION_HEADER, STATELESS_VERSION, VERSION_HEADER,
    encode_header, name_member,
};
use crate::rpc_message::RpcError;

/// A server reached over streamable HTTP.
#[derive(Debug)]
pub(crate) struct StreamableHttp {
    connection: Arc<HttpConnection>,
    listen_task: OnceLock<AbortOnDrop>,
}

/// State shared by the tasks of a connection.
#[derive(Debug)]
pub(super) struct HttpConnection {
    pub(super) client: ServerHttpClient,
    pub(super) dispatcher: Arc<MessageDispatcher>,
    session: Mutex<SessionHeaders>,
    close_signal: CloseSignal,
    /// Whether the server answers with streams of events.
    has_streamed: AtomicBool,
}

/// The headers that every message carries.
#[derive(Debug, Default)]
struct SessionHeaders {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl StreamableHttp {
    pub(crate) fn new(base: ServerHttpClient, ear: &Arc<MessageDispatcher>) -> Self {
        let core = HttpConnection {
            client: base,
            dispatcher: Arc::clone(ear),
            session: Mutex::default(),
            close_signal: CloseSignal::default(),
            has_streamed: AtomicBool::new(false),
        };
        Self {
            connection: Arc::new(core),
            listen_task: OnceLock::new(),
        }
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.connection.has_streamed.load(Ordering::Relaxed)
    }

    pub(super) fn adopt_version(&self, version: &str) {
        let version = HeaderValue::try_from(version).ok();
        self.connection
            .with_session(|session| session.version = version);
    }

    pub(super) async fn exchange(&self, request: McpRequest<'_>) -> Result<RpcOutcome, McpError> {
        match self.connection.exchange(request).await {
            // A JSON-RPC error in the body of a refusal is an answer.
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

    pub(super) async fn send_message(
        &self,
        step: &str,
        header: Option<&str>,
        body: String,
    ) -> Result<(), McpError> {
        let mut headers = HeaderMap::new();
        if let Some(method) = header {
            insert(&mut headers, METHOD_HEADER, method);
        }
        self.connection
            .post(step, None, headers, body)
            .await
            .map(drop)
    }

    pub(super) fn send_in_background(&self, body: String) {
        let core = Arc::clone(&self.connection);
        let post = async move {
            let post = core.post("POST", None, HeaderMap::new(), body);
            let _lost = timeout(core.client.limits.request, post).await;
        };
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(post);
        }
    }

    pub(super) fn listen(&self) {
        if let Ok(runtime) = Handle::try_current() {
            self.listen_task
                .get_or_init(|| AbortOnDrop(runtime.spawn(listen(Arc::clone(&self.connection)))));
        }
    }

    pub(super) fn close_signal(&self) -> &CloseSignal {
        &self.connection.close_signal
    }

    /// Deletes the session. A refusal by the server is ignored.
    pub(super) async fn close(&self) {
        if let Some(listening) = self.listen_task.get() {
            listening.abort();
        }
        let core = &self.connection;
        if core.with_session(|session| session.id.is_some()) {
            let delete = ServerHttpRequest {
                verb: Method::DELETE,
                address: core.client.address(),
                headers: core.with_session_headers(core.client.message_headers()).0,
                body: None,
            };
            let _refused =
                timeout(core.client.limits.close, core.client.send("DELETE", delete)).await;
        }
        core.close_signal.set();
    }
}

impl HttpConnection {
    async fn exchange(&self, request: McpRequest<'_>) -> Result<RpcOutcome, McpError> {
        let McpRequest { method, id, .. } = request;
        let headers = headers_of(&request);
        let response = self.post(method, Some(id), headers, request.body()).await?;
        if method == "initialize" {
            let id = response.headers.get(SESSION_HEADER).cloned();
            self.with_session(|session| session.id = id);
        }
        let content_type = content_type(&response);
        let reading = ResponseReader::new(self, request);
        match content_type.as_str() {
            "application/json" => reading.json(response).await,
            "text/event-stream" => {
                self.has_streamed.store(true, Ordering::Relaxed);
                if let Some(aside) = request.handler {
                    aside.on_stream_started();
                }
                Box::pin(reading.events(response)).await
            }
            "" => Err(protocol_error(
                method,
                ProtocolFault::NoBody {
                    status: response.status.as_u16(),
                },
            )),
            _ => Err(protocol_error(
                method,
                ProtocolFault::ContentType { content_type },
            )),
        }
    }

    /// Closes the connection to a server that exceeded its message limit.
    pub(super) fn close_for_message_rate(&self) -> McpError {
        self.close_signal.set();
        self.client.limits.message_rate_error()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.close_signal.is_set()
    }

    /// Posts a message; `id` is set for a request.
    pub(super) async fn post(
        &self,
        step: &str,
        id: Option<i64>,
        more: HeaderMap,
        body: String,
    ) -> Result<HttpResponse, McpError> {
        let (mut headers, has_session) = self.with_session_headers(self.client.message_headers());
        headers.extend(more);
        let post = ServerHttpRequest {
            verb: Method::POST,
            address: self.client.address(),
            headers,
            body: Some(body),
        };
        let response = self.client.execute(step, post).await?;
        if response.status.is_success() {
            return Ok(response);
        }
        let refusal = Box::pin(self.client.read_error_status(step, response)).await;
        if has_session && is_session_expired(&refusal, id) {
            // Some servers refuse a notification although they continue.
            if id.is_some() {
                self.close_signal.set();
            }
            return Err(McpError::SessionExpired {
                refusal: Box::new(refusal.error),
            });
        }
        Err(refusal.error)
    }

    /// Opens an event stream that resumes after an event.
    pub(super) async fn get(&self, after: Option<&str>) -> Result<HttpResponse, McpError> {
        let (mut headers, _) = self.with_session_headers(self.client.stream_headers());
        if let Some(Ok(after)) = after.map(HeaderValue::try_from) {
            headers.insert("last-event-id", after);
        }
        let get = ServerHttpRequest {
            verb: Method::GET,
            address: self.client.address(),
            headers,
            body: None,
        };
        let response = self.client.send("GET", get).await?;
        let content_type = content_type(&response);
        if content_type == "text/event-stream" {
            Ok(response)
        } else {
            Err(protocol_error(
                "GET",
                ProtocolFault::ContentType { content_type },
            ))
        }
    }

    /// Adds the session headers; also returns whether there is a session.
    fn with_session_headers(&self, mut headers: HeaderMap) -> (HeaderMap, bool) {
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

    fn with_session<T>(&self, work: impl FnOnce(&mut SessionHeaders) -> T) -> T {
        work(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn headers_of(request: &McpRequest<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        // An invalid header cannot be sent; the server reports what is missing.
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(name.as_str()),
            HeaderValue::try_from(value.as_str()),
        ) {
            headers.insert(name, value);
        }
    }
    if request.era == Era::Stateless {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(STATELESS_VERSION));
        insert(&mut headers, METHOD_HEADER, request.method);
        if let Some(member) = name_member(request.method)
            && let Some(name) = RawObject::parse_optional(request.params).text(member)
        {
            insert(&mut headers, NAME_HEADER, &name);
        }
    }
    headers
}

fn insert(headers: &mut HeaderMap, name: &'static str, text: &str) {
    // The value is printable ASCII by construction.
    if let Ok(value) = HeaderValue::try_from(&*encode_header(text)) {
        headers.insert(name, value);
    }
}

/// Whether a refusal concerns the session and not the request. Servers report this with 404, and
/// many with 400 and a transport error code or without a message.
fn is_session_expired(refusal: &HttpErrorStatus, request: Option<i64>) -> bool {
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
