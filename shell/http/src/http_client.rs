//! Repeated requests to one address. Plain HTTP uses a lightweight client; all other requests use
//! the general client, which supports proxies and TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use reqwest::Url;
use reqwest::redirect::Policy;
use thiserror::Error;

use crate::{CertificateError, USER_AGENT, client};

/// Sends requests to one server. Clones share their connections. It does not follow redirects.
#[derive(Clone, Debug)]
pub struct HttpClient {
    kind: Arc<ClientKind>,
}

#[derive(Debug)]
enum ClientKind {
    /// No TLS, no proxy, no password in the address: the common case of a gateway next to its
    /// servers.
    Plain(Client<HttpConnector, Full<Bytes>>),
    Reqwest(reqwest::Client),
}

/// An address in the forms that the clients need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAddress {
    url: Url,
    /// `None` if only the general client can use the address.
    uri: Option<Uri>,
}

/// The response to a request; its body has not been read yet.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(Incoming),
    General(reqwest::Response),
}

/// Why a request got no response. The error text never contains the address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// A request over plain HTTP failed.
    #[error(transparent)]
    Plain(#[from] hyper_util::client::legacy::Error),
    /// The body of a response was cut off.
    #[error(transparent)]
    Body(#[from] hyper::Error),
    /// The general client failed.
    #[error(transparent)]
    General(reqwest::Error),
    /// The general client cannot be created.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// Requests cannot be sent to the address.
    #[error("requests cannot be sent to this address")]
    Address,
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        // The query of the address may contain a secret.
        Self::General(error.without_url())
    }
}

impl HttpError {
    /// Whether no connection could be opened.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Plain(error) => error.is_connect(),
            Self::General(error) => error.is_connect(),
            Self::Body(_) | Self::Certificates(_) | Self::Address => false,
        }
    }
}

impl HttpClient {
    /// Prepares requests to the server of an address; sends nothing yet.
    ///
    /// # Errors
    /// The client cannot be created.
    pub fn new(address: &HttpAddress, connect: Duration) -> Result<Self, HttpError> {
        let way = if address.is_plain() {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            connector.set_connect_timeout(Some(connect));
            ClientKind::Plain(Client::builder(TokioExecutor::new()).build(connector))
        } else {
            let builder = client(&address.url)?
                .connect_timeout(connect)
                .redirect(Policy::none());
            ClientKind::Reqwest(builder.build()?)
        };
        Ok(Self {
            kind: Arc::new(way),
        })
    }

    /// Sends a request and waits for the response headers.
    ///
    /// # Errors
    /// The request got no response.
    pub async fn send(
        &self,
        method: Method,
        address: &HttpAddress,
        mut headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        match &*self.kind {
            ClientKind::Plain(client) => {
                let uri = address.uri.clone().ok_or(HttpError::Address)?;
                headers.insert(http::header::USER_AGENT, USER_AGENT);
                let mut request = Request::new(Full::new(body.unwrap_or_default()));
                *request.method_mut() = method;
                *request.uri_mut() = uri;
                *request.headers_mut() = headers;
                Ok(HttpResponse::plain(client.request(request).await?))
            }
            ClientKind::Reqwest(client) => {
                let mut request = reqwest::Request::new(method, address.url.clone());
                *request.headers_mut() = headers;
                *request.body_mut() = body.map(Into::into);
                Ok(HttpResponse::general(client.execute(request).await?))
            }
        }
    }
}

impl HttpAddress {
    /// The address of a URL.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let mut bare = url.clone();
        bare.set_fragment(None);
        let uri = bare.as_str().parse().ok();
        Self { url, uri }
    }

    /// As a URL.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    fn is_plain(&self) -> bool {
        let proxied = |uri: &Uri| {
            !crate::is_loopback(&self.url) && Matcher::from_env().intercept(uri).is_some()
        };
        self.url.scheme() == "http"
            && self.url.username().is_empty()
            && self.url.password().is_none()
            && self.uri.as_ref().is_some_and(|uri| !proxied(uri))
    }
}

impl HttpResponse {
    fn plain(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: Body::Plain(body),
        }
    }

    fn general(mut response: reqwest::Response) -> Self {
        Self {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: Body::General(response),
        }
    }

    /// The length of the body in bytes, if the server states it.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Plain(body) => http_body::Body::size_hint(body).exact(),
            Body::General(response) => response.content_length(),
        }
    }

    /// The next chunk of the body; `None` at its end.
    ///
    /// # Errors
    /// The body was cut off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match &mut self.body {
            Body::Plain(body) => loop {
                let Some(frame) = body.frame().await else {
                    return Ok(None);
                };
                // Trailers after the body are ignored.
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            },
            Body::General(response) => Ok(response.chunk().await?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_client_is_used_only_without_tls_and_proxy() {
        for (url, plain) in [
            ("http://127.0.0.1:1/mcp?a=b#c", true),
            ("http://localhost/mcp", true),
            ("https://127.0.0.1/mcp", false),
            ("http://user:pass@127.0.0.1/mcp", false),
        ] {
            let address = HttpAddress::new(url.parse().unwrap());
            assert_eq!(address.is_plain(), plain, "{url}");
        }
        let address = HttpAddress::new("http://127.0.0.1:1/mcp?a=b#c".parse().unwrap());
        assert_eq!(address.uri.unwrap(), "http://127.0.0.1:1/mcp?a=b");
    }
}
