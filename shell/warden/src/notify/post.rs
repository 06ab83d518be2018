//! One HTTP request, and what comes of it.

use std::error::Error;
use std::io;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use toolwarden_http::is_tls;

use super::answer::{Answer, retry_after};
use super::error::DeliveryError;
use super::mask::Mask;
use super::message::Message;

/// The most bytes of an answer that are read.
const MOST_ANSWER: usize = 16 * 1024;

/// The address and a client for it.
pub(super) fn client(address: &str) -> Result<(Url, Client), DeliveryError> {
    let url: Url = address.parse().map_err(|_| DeliveryError::Address)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(DeliveryError::Address);
    }
    let builder = toolwarden_http::client(&url).map_err(|_| DeliveryError::Certificates)?;
    // A signed message goes where it was signed for.
    let client = builder.redirect(Policy::none()).build();
    Ok((url, client.map_err(|_| DeliveryError::Certificates)?))
}

/// The host of an address, with its port where it is an unusual one.
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

/// Sends a message and reads the answer.
pub(super) async fn post(
    client: &Client,
    message: Message,
    mask: &Mask,
    now: Timestamp,
) -> Result<Answer, DeliveryError> {
    let url = message.url.clone();
    let mut request = client
        .post(message.url)
        .header(CONTENT_TYPE, "application/json; charset=utf-8");
    for (name, value) in message.headers {
        request = request.header(name, value);
    }
    let mut response = match request.body(message.body).send().await {
        Ok(response) => response,
        Err(error) => return Err(broken(&url, error.without_url(), mask).await),
    };
    let after = response.headers().get(RETRY_AFTER);
    let after = after.and_then(|it| retry_after(it.to_str().ok()?, now));
    let mut body = Vec::new();
    // The beginning is enough, and a body that breaks off still has one.
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MOST_ANSWER.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() >= MOST_ANSWER {
            break;
        }
    }
    Ok(Answer {
        status: response.status().as_u16(),
        after,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// What a failed request means.
async fn broken(url: &Url, error: reqwest::Error, mask: &Mask) -> DeliveryError {
    let host = host(url.as_str());
    let detail = mask.excerpt(&causes(&error));
    if is_tls(&error) {
        return DeliveryError::Tls { host, detail };
    }
    if error.is_timeout() {
        return DeliveryError::Timeout { host };
    }
    let name = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    unreached(&error, host, (name, port), detail).await
}

/// Why a host was not reached: the causes of an error tell, else the resolver is asked.
pub(super) async fn unreached(
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
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let text = current.to_string();
        // Some errors tell their cause themselves.
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
