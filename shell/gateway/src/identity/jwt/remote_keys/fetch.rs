//! Fetches the keys of an issuer.

use std::time::Duration;

use reqwest::{StatusCode, Url, redirect};
use serde::Deserialize;
use thiserror::Error;
use toolwarden_http::{CertificateError, display_url};
use toolwarden_settings::is_loopback_or_https;

use crate::identity::jwt::jwk::parse_key_set;
use crate::identity::jwt::key::VerificationKey;

/// The largest document that is read.
const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
/// The most redirects in a row.
const REDIRECTS: usize = 3;

/// The source of keys.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::identity::jwt) enum KeySource {
    /// A key set at a URL.
    KeySet(Url),
    /// An issuer that publishes the URL of its key set.
    Issuer {
        /// Its name in tokens.
        name: String,
        /// The same as a URL.
        url: Url,
    },
}

impl KeySource {
    /// The first URL to fetch.
    pub(super) fn address(&self) -> &Url {
        match self {
            Self::KeySet(url) | Self::Issuer { url, .. } => url,
        }
    }
}

/// Why keys cannot be fetched.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    #[error("{url} cannot be reached{}", root_cause(.source))]
    Unreachable { url: String, source: reqwest::Error },
    #[error("{url} answered {status}")]
    Status { url: String, status: StatusCode },
    #[error("{url} sent more than {MAX_DOCUMENT_BYTES} bytes")]
    TooLarge { url: String },
    #[error("{url} did not send a description of an issuer")]
    NotMetadata { url: String },
    #[error("{url} describes the issuer `{found}`, not `{wanted}`")]
    OtherIssuer {
        url: String,
        found: String,
        wanted: String,
    },
    #[error("{url} names the key set `{keys}`, which is not an address that can be trusted")]
    KeySetAddress { url: String, keys: String },
    #[error("{url} did not send a key set")]
    NotKeySet { url: String },
    #[error("{url} has no key that can check signatures")]
    NoKeys { url: String },
    #[error("no answer within {limit:?}")]
    Timeout { limit: Duration },
}

/// The relevant part of an issuer's description.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Fetches the keys of a source.
pub(super) async fn fetch(source: &KeySource) -> Result<Vec<VerificationKey>, FetchError> {
    match source {
        KeySource::KeySet(url) => fetch_key_set(url).await,
        KeySource::Issuer { name, url } => fetch_key_set(&discover(name, url).await?).await,
    }
}

/// The URL of an issuer's key set. Returns the first failure if the description is not found anywhere.
async fn discover(name: &str, issuer: &Url) -> Result<Url, FetchError> {
    let mut failure = None;
    for place in metadata_urls(issuer) {
        match fetch_metadata(name, &place).await {
            Ok(keys) => return Ok(keys),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let url = display_url(issuer);
    Err(failure.unwrap_or(FetchError::NotMetadata { url }))
}

/// The possible URLs of an issuer's description: as in OpenID Connect, then as in RFC 8414.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/').to_owned();
    [
        format!("{path}/.well-known/openid-configuration"),
        format!("/.well-known/oauth-authorization-server{path}"),
    ]
    .into_iter()
    .map(|path| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    })
    .collect()
}

async fn fetch_metadata(name: &str, place: &Url) -> Result<Url, FetchError> {
    let url = display_url(place);
    let document = get(place).await?;
    let Ok(Metadata { issuer, jwks_uri }) = serde_json::from_slice(&document) else {
        return Err(FetchError::NotMetadata { url });
    };
    if issuer != name {
        return Err(FetchError::OtherIssuer {
            url,
            found: issuer,
            wanted: name.to_owned(),
        });
    }
    // Keys are not fetched less securely than the description, and never from another machine without TLS.
    let keys = Url::parse(&jwks_uri).ok();
    let safe = |keys: &Url| {
        is_loopback_or_https(keys.as_str())
            && (keys.scheme() == "https" || keys.scheme() == place.scheme())
    };
    keys.filter(safe).ok_or(FetchError::KeySetAddress {
        url,
        keys: jwks_uri,
    })
}

async fn fetch_key_set(place: &Url) -> Result<Vec<VerificationKey>, FetchError> {
    let url = display_url(place);
    match parse_key_set(&get(place).await?) {
        None => Err(FetchError::NotKeySet { url }),
        Some(keys) if keys.is_empty() => Err(FetchError::NoKeys { url }),
        Some(keys) => Ok(keys),
    }
}

async fn get(url: &Url) -> Result<Vec<u8>, FetchError> {
    let unreachable = |source: reqwest::Error| FetchError::Unreachable {
        url: display_url(url),
        source: source.without_url(),
    };
    let client = toolwarden_http::client(url)?
        .https_only(url.scheme() == "https")
        .redirect(redirect::Policy::custom(|attempt| {
            if attempt.previous().len() > REDIRECTS {
                return attempt.error("too many redirects");
            }
            match is_loopback_or_https(attempt.url().as_str()) {
                true => attempt.follow(),
                false => attempt.error("a redirect leads to an address without TLS"),
            }
        }))
        .build()
        .map_err(unreachable)?;
    let request = client.get(url.clone()).header("accept", "application/json");
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        let url = display_url(url);
        return Err(FetchError::Status { url, status });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(FetchError::TooLarge {
                url: display_url(url),
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause, which is the most specific.
fn root_cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!(": {innermost}")
}
