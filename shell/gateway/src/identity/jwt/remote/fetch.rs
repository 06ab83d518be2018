//! Asking an issuer for its keys.

use std::time::Duration;

use reqwest::{StatusCode, Url, redirect};
use serde::Deserialize;
use thiserror::Error;
use toolwarden_http::{NoCertificates, shown};
use toolwarden_warden::settings::is_loopback_or_https;

use crate::identity::jwt::jwk::keys_of;
use crate::identity::jwt::key::Key;

/// The largest document that is read.
const MOST_BYTES: usize = 1024 * 1024;
/// Redirects followed in a row.
const REDIRECTS: usize = 3;

/// Where keys are.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::identity::jwt) enum Source {
    /// A key set at an address.
    KeySet(Url),
    /// An issuer that says where its key set is.
    Issuer {
        /// As tokens name it.
        name: String,
        /// The same as an address.
        url: Url,
    },
}

impl Source {
    /// Where to begin.
    pub(super) fn address(&self) -> &Url {
        match self {
            Self::KeySet(url) | Self::Issuer { url, .. } => url,
        }
    }
}

/// Why keys cannot be had.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Certificates(#[from] NoCertificates),
    #[error("{url} cannot be reached{}", cause(.source))]
    Unreachable { url: String, source: reqwest::Error },
    #[error("{url} answered {status}")]
    Status { url: String, status: StatusCode },
    #[error("{url} sent more than {MOST_BYTES} bytes")]
    TooLarge { url: String },
    #[error("{url} did not send a description of an issuer")]
    NotMetadata { url: String },
    #[error("{url} describes the issuer `{found}`, not `{wanted}`")]
    OtherIssuer {
        url: String,
        found: String,
        wanted: String,
    },
    #[error("{url} names the key set `{keys}`, which is no address that can be trusted")]
    KeySetAddress { url: String, keys: String },
    #[error("{url} did not send a key set")]
    NotKeySet { url: String },
    #[error("{url} has no key that can check signatures")]
    NoKeys { url: String },
    #[error("no answer within {limit:?}")]
    Slow { limit: Duration },
}

/// The part of an issuer's description that matters here.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// The keys of a source.
pub(super) async fn fetch(source: &Source) -> Result<Vec<Key>, FetchError> {
    match source {
        Source::KeySet(url) => key_set(url).await,
        Source::Issuer { name, url } => key_set(&discover(name, url).await?).await,
    }
}

/// Where an issuer says its keys are. Tells the first failure when no place has the description.
async fn discover(name: &str, issuer: &Url) -> Result<Url, FetchError> {
    let mut failure = None;
    for place in places(issuer) {
        match described(name, &place).await {
            Ok(keys) => return Ok(keys),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let url = shown(issuer);
    Err(failure.unwrap_or(FetchError::NotMetadata { url }))
}

/// Where an issuer's description may be: as OpenID Connect has it, then as RFC 8414 does.
fn places(issuer: &Url) -> Vec<Url> {
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

async fn described(name: &str, place: &Url) -> Result<Url, FetchError> {
    let url = shown(place);
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
    // Keys are not fetched less safely than the description was, and never from afar without TLS.
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

async fn key_set(place: &Url) -> Result<Vec<Key>, FetchError> {
    let url = shown(place);
    match keys_of(&get(place).await?) {
        None => Err(FetchError::NotKeySet { url }),
        Some(keys) if keys.is_empty() => Err(FetchError::NoKeys { url }),
        Some(keys) => Ok(keys),
    }
}

async fn get(url: &Url) -> Result<Vec<u8>, FetchError> {
    let unreachable = |source: reqwest::Error| FetchError::Unreachable {
        url: shown(url),
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
    let asked = client.get(url.clone()).header("accept", "application/json");
    let mut response = asked.send().await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        let url = shown(url);
        return Err(FetchError::Status { url, status });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(FetchError::TooLarge { url: shown(url) });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause, which says most.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!(": {innermost}")
}
