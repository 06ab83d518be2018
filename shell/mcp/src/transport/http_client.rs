//! HTTP requests with limits, and the meaning of their failures.

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use serde_json::value::RawValue;
use toolwarden_http::{
    HttpAddress, HttpClient, HttpError, HttpResponse, display_url, is_tls_error,
};

use crate::connection_limits::ConnectionLimits;
use crate::endpoint::ServerUrl;
use crate::error::{McpError, ProtocolFault, ServerDiagnostics};
use crate::rpc_message::RpcMessage;
use toolwarden_secrets::Secrets;

/// How many redirects are followed in a row.
const MAX_REDIRECTS: usize = 5;
/// How much of an error body is read: a JSON-RPC error fits, an HTML page is cut.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How much of an error body is shown.
const EXCERPT_CHARS: usize = 300;

/// The HTTP client for one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerHttpClient {
    exchanger: HttpClient,
    address: HttpAddress,
    message_headers: HeaderMap,
    pub(super) limits: ConnectionLimits,
    secrets: Secrets,
}

/// One HTTP request.
#[derive(Debug)]
pub(super) struct ServerHttpRequest<'a> {
    pub(super) verb: Method,
    pub(super) address: &'a HttpAddress,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

/// A response with an error status.
#[derive(Debug)]
pub(super) struct HttpErrorStatus {
    pub(super) status: u16,
    /// The id of the JSON-RPC error in its body.
    pub(super) id: Option<Box<RawValue>>,
    pub(super) error: McpError,
}

impl ServerHttpClient {
    /// Prepares requests to the endpoint; sends nothing yet.
    pub(crate) fn new(endpoint: &ServerUrl, limits: &ConnectionLimits) -> Result<Self, McpError> {
        let url = endpoint.parse()?;
        let mut message_headers: HeaderMap = endpoint.parse_headers()?.into_iter().collect();
        let both = HeaderValue::from_static("application/json, text/event-stream");
        message_headers.insert(ACCEPT, both);
        let json = HeaderValue::from_static("application/json");
        message_headers.insert(CONTENT_TYPE, json);
        let address = HttpAddress::new(url);
        let made = HttpClient::new(&address, limits.connect);
        let exchanger = made.map_err(|error| match error {
            HttpError::Certificates(source) => McpError::CertificateStore { source },
            source => McpError::Connect {
                url: endpoint.url.clone(),
                source,
            },
        })?;
        Ok(Self {
            exchanger,
            address,
            message_headers,
            limits: limits.clone(),
            secrets: endpoint.secrets(),
        })
    }

    pub(super) const fn address(&self) -> &HttpAddress {
        &self.address
    }

    /// The headers of a POST.
    pub(super) fn message_headers(&self) -> HeaderMap {
        self.message_headers.clone()
    }

    /// The headers of a GET.
    pub(super) fn stream_headers(&self) -> HeaderMap {
        let mut headers = self.message_headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.remove(CONTENT_TYPE);
        headers
    }

    /// Sends a request; a status other than success becomes an error.
    pub(super) async fn send(
        &self,
        step: &str,
        outgoing: ServerHttpRequest<'_>,
    ) -> Result<HttpResponse, McpError> {
        let response = self.execute(step, outgoing).await?;
        if response.status.is_success() {
            return Ok(response);
        }
        Err(self.read_error_status(step, response).await.error)
    }

    /// Sends a request and returns the response, whatever its status. A redirect is followed only
    /// within the origin and only if it keeps method and body, so that credentials and messages go
    /// to no other server.
    pub(super) async fn execute(
        &self,
        step: &str,
        outgoing: ServerHttpRequest<'_>,
    ) -> Result<HttpResponse, McpError> {
        let ServerHttpRequest {
            verb,
            address,
            headers,
            body,
        } = outgoing;
        let body = body.map(Bytes::from);
        let mut moved: Option<HttpAddress> = None;
        for _ in 0..MAX_REDIRECTS {
            let at = moved.as_ref().unwrap_or(address);
            let sent = self
                .exchanger
                .send(verb.clone(), at, headers.clone(), body.clone());
            let answer = sent
                .await
                .map_err(|error| self.exchange_error(step, error))?;
            match allowed_redirect(&answer, at) {
                Some(next) => moved = Some(next),
                None => return Ok(answer),
            }
        }
        let at = moved.as_ref().unwrap_or(address);
        let sent = self.exchanger.send(verb, at, headers, body).await;
        sent.map_err(|error| self.exchange_error(step, error))
    }

    /// Reads a whole body. A body that arrives in one piece is not copied.
    pub(super) async fn read<T>(
        &self,
        step: &str,
        mut response: HttpResponse,
        work: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, McpError> {
        let limit = self.limits.message_bytes;
        let length = response.content_length();
        let broken = |error| self.exchange_error(step, error);
        let Some(first) = response.chunk().await.map_err(broken)? else {
            return Ok(work(&[]));
        };
        if length == u64::try_from(first.len()).ok() && first.len() <= limit {
            return Ok(work(&first));
        }
        let expected = length.and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(expected.unwrap_or_default().min(limit));
        let mut next = Some(first);
        while let Some(chunk) = next {
            if body.len() + chunk.len() > limit {
                return Err(McpError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
            next = response.chunk().await.map_err(broken)?;
        }
        Ok(work(&body))
    }

    /// Converts a failure of the HTTP client.
    pub(super) fn exchange_error(&self, method: &str, source: HttpError) -> McpError {
        let url = display_url(self.address.url());
        if is_tls_error(&source) {
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

    /// Converts an error status: the JSON-RPC error in the body, or the status itself.
    pub(super) async fn read_error_status(
        &self,
        step: &str,
        mut response: HttpResponse,
    ) -> HttpErrorStatus {
        let status = response.status;
        if let Some(location) = response
            .headers
            .get(LOCATION)
            .filter(|_| status.is_redirection())
        {
            let location = String::from_utf8_lossy(location.as_bytes());
            // The query and fragment may contain a secret.
            let location = location
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .to_owned();
            return HttpErrorStatus {
                status: status.as_u16(),
                id: None,
                error: McpError::Redirected {
                    status: status.as_u16(),
                    location,
                },
            };
        }
        let json = content_type(&response) == "application/json";
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BYTES {
                body.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        let for_the_user = [
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        ];
        if json && !for_the_user.contains(&status) {
            for message in RpcMessage::parse_all(&body).into_iter().flatten() {
                if let RpcMessage::Response {
                    id,
                    outcome: Err(error),
                } = message
                {
                    return HttpErrorStatus {
                        status: status.as_u16(),
                        id: Some(id),
                        error: McpError::from_rpc(step, error),
                    };
                }
            }
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        HttpErrorStatus {
            status: status.as_u16(),
            id: None,
            error: McpError::Http {
                method: step.to_owned(),
                status: status.as_u16(),
                excerpt: excerpt(self.secrets.mask(text).as_bytes()),
            },
        }
    }
}

/// A violation of the protocol over HTTP.
pub(super) fn protocol_error(method: &str, fault: ProtocolFault) -> McpError {
    McpError::Protocol {
        method: method.to_owned(),
        fault,
        evidence: Box::<ServerDiagnostics>::default(),
    }
}

/// The content type without its parameters, in lowercase.
pub(super) fn content_type(response: &HttpResponse) -> String {
    let header = response.headers.get(CONTENT_TYPE);
    let text = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

pub(super) fn same_origin(one: &reqwest::Url, other: &reqwest::Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// The redirect target of a response, if it may be followed.
fn allowed_redirect(answer: &HttpResponse, asked: &HttpAddress) -> Option<HttpAddress> {
    let keeps = matches!(
        answer.status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let location = answer.headers.get(LOCATION).filter(|_| keeps)?;
    let next = asked.url().join(location.to_str().ok()?).ok()?;
    same_origin(asked.url(), &next).then(|| HttpAddress::new(next))
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(EXCERPT_CHARS).collect()
}
