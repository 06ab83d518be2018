//! Requests to one address, over and over: plain HTTP goes straight to the wire, all else through the
//! general client, which knows proxies and TLS.

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

use crate::{NoCertificates, USER_AGENT, client};

/// Makes requests to one server. Clones share their connections. It follows no redirect.
#[derive(Clone, Debug)]
pub struct Exchanger {
    way: Arc<Way>,
}

#[derive(Debug)]
enum Way {
    /// No TLS, no proxy, no password in the address: what a gateway beside its servers does all day.
    Plain(Client<HttpConnector, Full<Bytes>>),
    General(reqwest::Client),
}

/// An address in the forms that clients want it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: Url,
    /// None where only the general client can read it.
    uri: Option<Uri>,
}

/// The answer to a request; its body is still to be read.
#[derive(Debug)]
pub struct Answer {
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

/// Why there is no answer. No text of it tells the address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// Of a request over plain HTTP.
    #[error(transparent)]
    Plain(#[from] hyper_util::client::legacy::Error),
    /// The body of an answer broke off.
    #[error(transparent)]
    Body(#[from] hyper::Error),
    /// Of the general client.
    #[error(transparent)]
    General(reqwest::Error),
    /// The general client cannot be made.
    #[error(transparent)]
    Certificates(#[from] NoCertificates),
    /// The address cannot be asked.
    #[error("the address cannot be asked")]
    Address,
}

impl From<reqwest::Error> for ExchangeError {
    fn from(error: reqwest::Error) -> Self {
        // The address may carry a secret in its query.
        Self::General(error.without_url())
    }
}

impl ExchangeError {
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

impl Exchanger {
    /// Prepares requests to the server of an address; nothing is sent yet.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn new(address: &Address, connect: Duration) -> Result<Self, ExchangeError> {
        let way = if address.is_plain() {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            connector.set_connect_timeout(Some(connect));
            Way::Plain(Client::builder(TokioExecutor::new()).build(connector))
        } else {
            let builder = client(&address.url)?
                .connect_timeout(connect)
                .redirect(Policy::none());
            Way::General(builder.build()?)
        };
        Ok(Self { way: Arc::new(way) })
    }

    /// Sends a request, and waits for the head of its answer.
    ///
    /// # Errors
    /// There is none.
    pub async fn send(
        &self,
        method: Method,
        address: &Address,
        mut headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Answer, ExchangeError> {
        match &*self.way {
            Way::Plain(client) => {
                let uri = address.uri.clone().ok_or(ExchangeError::Address)?;
                headers.insert(http::header::USER_AGENT, USER_AGENT);
                let mut request = Request::new(Full::new(body.unwrap_or_default()));
                *request.method_mut() = method;
                *request.uri_mut() = uri;
                *request.headers_mut() = headers;
                Ok(Answer::plain(client.request(request).await?))
            }
            Way::General(client) => {
                let mut request = reqwest::Request::new(method, address.url.clone());
                *request.headers_mut() = headers;
                *request.body_mut() = body.map(Into::into);
                Ok(Answer::general(client.execute(request).await?))
            }
        }
    }
}

impl Address {
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

impl Answer {
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

    /// How many bytes the body has, where the server says so.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Plain(body) => http_body::Body::size_hint(body).exact(),
            Body::General(response) => response.content_length(),
        }
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// It broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        match &mut self.body {
            Body::Plain(body) => loop {
                let Some(frame) = body.frame().await else {
                    return Ok(None);
                };
                // What comes after the body is nobody's.
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
    fn only_what_needs_no_more_goes_straight_to_the_wire() {
        for (url, plain) in [
            ("http://127.0.0.1:1/mcp?a=b#c", true),
            ("http://localhost/mcp", true),
            ("https://127.0.0.1/mcp", false),
            ("http://user:pass@127.0.0.1/mcp", false),
        ] {
            let address = Address::new(url.parse().unwrap());
            assert_eq!(address.is_plain(), plain, "{url}");
        }
        let address = Address::new("http://127.0.0.1:1/mcp?a=b#c".parse().unwrap());
        assert_eq!(address.uri.unwrap(), "http://127.0.0.1:1/mcp?a=b");
    }
}
