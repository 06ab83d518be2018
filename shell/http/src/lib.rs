//! Creates all HTTP clients, so that they share the same trust, proxy rules and error texts.

mod http_client;
mod retry_after;
mod tls;

use std::error::Error;
use std::io;
use std::net::IpAddr;

use reqwest::header::HeaderValue;
use reqwest::{ClientBuilder, Url};

pub use http_client::{HttpAddress, HttpClient, HttpError, HttpResponse};
pub use retry_after::retry_after;
pub use tls::CertificateError;

/// The user agent of all clients.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("toolwarden/", env!("CARGO_PKG_VERSION")));

/// A client builder for one address. The certificate store is read only if the address needs TLS,
/// because some containers have none.
///
/// # Errors
/// The address needs TLS, and the system has no certificates.
pub fn client(url: &Url) -> Result<ClientBuilder, CertificateError> {
    let mut builder = ClientBuilder::new().user_agent(USER_AGENT);
    if is_loopback(url) {
        // A proxy would connect to its own loopback interface, not to ours.
        builder = builder.no_proxy();
    }
    let tls = if url.scheme() == "https" {
        tls::platform_config()?
    } else {
        tls::empty_config()?
    };
    Ok(builder.tls_backend_preconfigured(tls))
}

/// Whether an error comes from TLS.
#[must_use]
pub fn is_tls_error(error: &(dyn Error + 'static)) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<rustls::Error>() {
            return true;
        }
        // An I/O error does not return the wrapped error as its source.
        let wrapped = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    false
}

/// The address without user, password and query, which may contain secrets.
#[must_use]
pub fn display_url(url: &Url) -> String {
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        let url: Url = "https://user:pass@example.com:8443/v1?key=sk-1"
            .parse()
            .unwrap();
        assert_eq!(display_url(&url), "https://example.com:8443/v1");
        for (address, ours) in [
            ("http://localhost:1", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:80", true),
            ("http://example.com", false),
        ] {
            assert_eq!(is_loopback(&address.parse().unwrap()), ours, "{address}");
        }
    }
}
