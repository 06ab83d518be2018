//! HTTP requests with bounds, and what their failures mean.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Method, Response, StatusCode};
use toolwarden_http::{is_tls, shown};

use crate::endpoint::Url;
use crate::error::{Evidence, McpError, ProtocolFault};
use crate::limits::Limits;
use crate::message::Message;

/// What a POST accepts.
pub(super) const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
/// What a GET accepts.
pub(super) const EVENTS: &str = "text/event-stream";

/// Redirects followed in a row.
const REDIRECTS: usize = 5;
/// How much of an error body is read: a JSON-RPC error fits, a page of HTML is cut.
const ERROR_BYTES: usize = 64 * 1024;
/// How much of an error body is shown.
const EXCERPT_CHARS: usize = 300;

/// The HTTP client for one server.
#[derive(Debug, Clone)]
pub(crate) struct HttpBase {
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    pub(super) limits: Limits,
}

/// One HTTP request.
#[derive(Debug)]
pub(super) struct Post<'a> {
    pub(super) verb: Method,
    pub(super) url: &'a reqwest::Url,
    pub(super) accept: &'static str,
    pub(super) headers: &'a [(String, String)],
    pub(super) body: Option<String>,
}

impl HttpBase {
    /// Prepares requests to the endpoint; nothing is sent yet.
    pub(crate) fn new(endpoint: &Url, limits: &Limits) -> Result<Self, McpError> {
        let url = endpoint.parsed()?;
        let headers = endpoint.parsed_headers()?.into_iter().collect();
        let builder = toolwarden_http::client(&url)
            .map_err(|source| McpError::CertificateStore { source })?
            .connect_timeout(limits.connect)
            .redirect(Policy::custom(follow));
        let client = builder.build().map_err(|source| McpError::Connect {
            url: endpoint.url.clone(),
            source,
        })?;
        Ok(Self {
            client,
            url,
            headers,
            limits: limits.clone(),
        })
    }

    pub(super) fn url(&self) -> &reqwest::Url {
        &self.url
    }

    /// Sends a request; a status that is no success becomes an error.
    pub(super) async fn send(&self, method: &str, post: Post<'_>) -> Result<Response, McpError> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(post.accept));
        for (name, value) in post.headers {
            // Values are printable ASCII by construction; session ids are checked on arrival.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        let mut request = self.client.request(post.verb, post.url.clone());
        if let Some(body) = post.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body);
        }
        let sent = request.headers(headers).send().await;
        let response = sent.map_err(|error| self.broken(method, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if let Some(location) = response
            .headers()
            .get(LOCATION)
            .filter(|_| status.is_redirection())
        {
            return Err(McpError::Redirected {
                status: status.as_u16(),
                location: String::from_utf8_lossy(location.as_bytes()).into_owned(),
            });
        }
        Err(self.refused(method, response).await)
    }

    /// Reads a whole body.
    pub(super) async fn body(
        &self,
        method: &str,
        mut response: Response,
    ) -> Result<Vec<u8>, McpError> {
        let limit = self.limits.message_bytes;
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.broken(method, error))?
        {
            if body.len() + chunk.len() > limit {
                return Err(McpError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// What a failure of the HTTP client means.
    pub(super) fn broken(&self, method: &str, error: reqwest::Error) -> McpError {
        let url = shown(&self.url);
        // The address may carry a secret in its query.
        let source = error.without_url();
        if is_tls(&source) {
            McpError::Tls { url, source }
        } else if source.is_connect() {
            McpError::Connect { url, source }
        } else {
            McpError::Broken {
                method: method.to_owned(),
                source,
            }
        }
    }

    /// What an error status means: the JSON-RPC error in its body, or the status itself.
    async fn refused(&self, method: &str, mut response: Response) -> McpError {
        let status = response.status();
        let json = has_type(&response, "application/json");
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > ERROR_BYTES {
                body.truncate(ERROR_BYTES);
                break;
            }
        }
        let for_the_user = [
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        ];
        if json && !for_the_user.contains(&status) {
            for message in Message::parse_all(&body).into_iter().flatten() {
                if let Message::Response {
                    outcome: Err(error),
                    ..
                } = message
                {
                    return error.for_method(method);
                }
            }
        }
        McpError::Http {
            method: method.to_owned(),
            status: status.as_u16(),
            excerpt: excerpt(&body),
        }
    }
}

/// A violation of the protocol over HTTP.
pub(super) fn fault(method: &str, fault: ProtocolFault) -> McpError {
    McpError::Protocol {
        method: method.to_owned(),
        fault,
        evidence: Box::<Evidence>::default(),
    }
}

/// The content type without its parameters, in lower case.
pub(super) fn content_type(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE);
    let text = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

pub(super) fn has_type(response: &Response, wanted: &str) -> bool {
    content_type(response) == wanted
}

pub(super) fn same_origin(one: &reqwest::Url, other: &reqwest::Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// Follows a redirect only within the origin and only if it keeps method and body: credentials
/// and messages go nowhere else.
fn follow(attempt: Attempt<'_>) -> Action {
    let keeps = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let near = attempt
        .previous()
        .last()
        .is_some_and(|from| same_origin(from, attempt.url()));
    if keeps && near && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(EXCERPT_CHARS).collect()
}
