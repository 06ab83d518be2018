//! Checks `Host` and `Origin`. A web page that makes its own name point at this machine (DNS rebinding) sends that
//! name in `Host`, and its own origin in `Origin`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use axum::http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use reqwest::Url;
use serde_json::json;
use thiserror::Error;
use toolwarden_settings::ListenSettings;

use super::error::IdentityError;

/// How much of a refused header is shown.
const SHOWN_CHARS: usize = 100;

/// The host names and origins of one listening gateway.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    local: SocketAddr,
    scheme: &'static str,
    public_url: Option<String>,
    hosts: BTreeSet<Host>,
    origins: BTreeSet<String>,
}

/// A request with a host or origin that the gateway does not accept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OriginError {
    /// The `Host` is not a name of the gateway.
    #[error(
        "`Host: {host}` is not a name of this gateway: if it is meant to be one, add it to `hosts` under `listen`"
    )]
    Host {
        /// The received value.
        host: String,
    },
    /// The `Origin` is not allowed.
    #[error(
        "`Origin: {origin}` may not use this gateway: if it is meant to, add it to `origins` under `listen`"
    )]
    Origin {
        /// The received value.
        origin: String,
    },
}

/// A host as in `Host` and in the settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Host {
    name: String,
    port: Option<u16>,
}

impl AllowedHosts {
    /// The names of a gateway that listens at an address, given with its actual port.
    ///
    /// # Errors
    /// A host, an origin or the public URL cannot be parsed.
    pub fn new(listen: &ListenSettings, local: SocketAddr) -> Result<Self, IdentityError> {
        let mut hosts = BTreeSet::new();
        for value in &listen.hosts {
            let host = Host::parse(value);
            hosts.insert(host.ok_or_else(|| IdentityError::Host {
                value: value.clone(),
            })?);
        }
        let mut origins = BTreeSet::new();
        for value in &listen.origins {
            let origin = origin_of(value);
            origins.insert(origin.ok_or_else(|| IdentityError::Origin {
                value: value.clone(),
            })?);
        }
        let public_url = listen.public_url.as_deref();
        if let Some(url) = public_url {
            let address = || IdentityError::Address {
                url: url.to_owned(),
            };
            let parsed = Url::parse(url).map_err(|_| address())?;
            let name = parsed.host_str().ok_or_else(address)?;
            // A reverse proxy may forward its port or leave it out.
            hosts.insert(Host {
                name: plain_name(name),
                port: None,
            });
            origins.insert(parsed.origin().ascii_serialization());
        }
        Ok(Self {
            local,
            scheme: if listen.tls.is_some() {
                "https"
            } else {
                "http"
            },
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            hosts,
            origins,
        })
    }

    /// Checks that a request uses a name of the gateway and comes from an allowed origin.
    ///
    /// # Errors
    /// The host or the origin is not allowed.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), OriginError> {
        let host = single_header(headers, &HOST).and_then(Host::parse);
        let host = host
            .filter(|host| self.allows_host(host))
            .ok_or_else(|| OriginError::Host {
                host: shown_header(headers, &HOST),
            })?;
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        single_header(headers, &ORIGIN)
            .filter(|origin| self.allows_origin(origin, &host))
            .map(|_| ())
            .ok_or_else(|| OriginError::Origin {
                origin: shown_header(headers, &ORIGIN),
            })
    }

    /// The URL by which the sender of a request reaches the gateway, without a slash at the end.
    #[must_use]
    pub fn base_url(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let host = single_header(headers, &HOST).filter(|host| Host::parse(host).is_some());
        let host = host.map_or_else(|| self.local.to_string(), str::to_owned);
        format!("{}://{host}", self.scheme)
    }

    fn allows_host(&self, host: &Host) -> bool {
        let any_port = Host {
            name: host.name.clone(),
            port: None,
        };
        if self.hosts.contains(host) || self.hosts.contains(&any_port) {
            return true;
        }
        let standard = if self.scheme == "https" { 443 } else { 80 };
        if host.port.unwrap_or(standard) != self.local.port() {
            return false;
        }
        // An IP address in `Host` was not resolved from a name, so DNS rebinding is not possible.
        let listening = self.local.ip();
        let address = host.name.parse::<IpAddr>();
        let ours = address.is_ok_and(|it| it == listening || listening.is_unspecified());
        ours || is_loopback(&host.name)
    }

    fn allows_origin(&self, origin: &str, host: &Host) -> bool {
        let Some(normal) = origin_of(origin) else {
            return false;
        };
        if self.origins.contains(&normal) {
            return true;
        }
        let Ok(url) = Url::parse(&normal) else {
            return false;
        };
        let name = plain_name(url.host_str().unwrap_or_default());
        let port = url.port_or_known_default();
        let standard = if self.scheme == "https" { 443 } else { 80 };
        // A page of the gateway itself.
        let own = url.scheme() == self.scheme
            && name == host.name
            && port == Some(host.port.unwrap_or(standard));
        own || (self.local.ip().is_loopback() && is_loopback(&name))
    }
}

impl OriginError {
    /// The HTTP response.
    #[must_use]
    pub fn response(&self) -> Response {
        let error = json!({"code": -32_000, "message": self.to_string()});
        let body = json!({"jsonrpc": "2.0", "error": error}).to_string();
        let json = HeaderValue::from_static("application/json");
        (StatusCode::FORBIDDEN, [(CONTENT_TYPE, json)], body).into_response()
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = match text.rsplit_once(':') {
            // The colons of a bare IPv6 address do not precede a port.
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
                (name, Some(port.parse().ok()?))
            }
            _ => (text, None),
        };
        let name = plain_name(name);
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            bytes.all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_'))
        };
        let usable = name.parse::<IpAddr>().is_ok() || (!name.is_empty() && is_name(&name));
        usable.then_some(Self { name, port })
    }
}

/// A name in the form that is compared: lower case, no final dot, no brackets.
fn plain_name(name: &str) -> String {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn is_loopback(name: &str) -> bool {
    let address = name.parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An origin in the form that is compared. `null`, which pages without an origin send, is not an origin.
fn origin_of(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    let plain = url.username().is_empty() && url.password().is_none();
    let origin = url.origin();
    (url.has_host() && bare && plain).then(|| {
        if origin.is_tuple() {
            origin.ascii_serialization()
        } else {
            // Application pages have their own schemes.
            text.trim_end_matches('/').to_ascii_lowercase()
        }
    })
}

/// The value of a header that occurs exactly once.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => first.to_str().ok(),
        Some(_) => None,
    }
}

/// The received value of a header, shortened for messages.
fn shown_header(headers: &HeaderMap, name: &HeaderName) -> String {
    let values: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    values.join(", ").chars().take(SHOWN_CHARS).collect()
}
