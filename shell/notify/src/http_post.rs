//! Sends one HTTP request, and evaluates the result.

use std::error::Error;
use std::io;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use toolwarden_http::{is_tls_error, retry_after};

use super::error::DeliveryError;
use super::message::WebhookRequest;
use super::redact::TargetSecrets;
use super::webhook_response::WebhookResponse;

/// The maximum number of bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// The address and a client for it.
pub(super) fn client(address: &str) -> Result<(Url, Client), DeliveryError> {
    let url: Url = address.parse().map_err(|_| DeliveryError::Address)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(DeliveryError::Address);
    }
    let builder =
        toolwarden_http::client(&url).map_err(|_| DeliveryError::NoTrustedCertificates)?;
    // No redirects: a signed message goes only to the address it was signed for.
    let client = builder.redirect(Policy::none()).build();
    Ok((
        url,
        client.map_err(|_| DeliveryError::NoTrustedCertificates)?,
    ))
}

/// The host of an address, with its port unless it is the default.
pub(super) fn host(address: &str) -> String {
    let Ok(url) = address.parse::<Url>() else {
        return String::new();
    };
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Sends a message and reads the response.
pub(super) async fn post(
    client: &Client,
    message: WebhookRequest,
    mask: &TargetSecrets,
    now: Timestamp,
) -> Result<WebhookResponse, DeliveryError> {
    let url = message.url.clone();
    let mut request = client
        .post(message.url)
        .header(CONTENT_TYPE, "application/json; charset=utf-8");
    for (name, value) in message.headers {
        request = request.header(name, value);
    }
    let mut response = match request.body(message.body).send().await {
        Ok(response) => response,
        Err(error) => return Err(request_error(&url, error.without_url(), mask).await),
    };
    let after = response.headers().get(RETRY_AFTER);
    let after = after.and_then(|it| retry_after(it.to_str().ok()?, now));
    let mut body = Vec::new();
    // The beginning is enough, and an interrupted body still has one.
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MAX_RESPONSE_BYTES.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() >= MAX_RESPONSE_BYTES {
            break;
        }
    }
    Ok(WebhookResponse {
        status: response.status().as_u16(),
        retry_after: after,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Classifies a failed request.
async fn request_error(url: &Url, error: reqwest::Error, mask: &TargetSecrets) -> DeliveryError {
    let host = host(url.as_str());
    let detail = mask.redacted_excerpt(&error_chain(&error));
    if is_tls_error(&error) {
        return DeliveryError::Tls { host, detail };
    }
    if error.is_timeout() {
        return DeliveryError::Timeout { host };
    }
    let name = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    connection_error(&error, host, (name, port), detail).await
}

/// Why a host was not reached, from the causes of an error, or else by asking the resolver.
pub(super) async fn connection_error(
    error: &(dyn Error + Send + Sync + 'static),
    host: String,
    place: (&str, u16),
    detail: String,
) -> DeliveryError {
    match io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => return DeliveryError::Refused { host },
        Some(io::ErrorKind::TimedOut) => return DeliveryError::Timeout { host },
        _ => {}
    }
    let name = place.0.trim_start_matches('[').trim_end_matches(']');
    match tokio::net::lookup_host((name, place.1)).await {
        Err(_) => DeliveryError::Dns { host },
        Ok(_) => DeliveryError::Connection { host, detail },
    }
}

/// An error with its causes.
pub(super) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let text = current.to_string();
        // Some errors already contain their cause.
        if !told.ends_with(&text) {
            told = format!("{told}: {text}");
        }
        cause = current.source();
    }
    told
}

fn io_kind(error: &(dyn Error + Send + Sync + 'static)) -> Option<io::ErrorKind> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(error) = current.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = current.source();
    }
    None
}
