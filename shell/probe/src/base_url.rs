//! The address of a provider.

use reqwest::Url;
use thiserror::Error;

/// An invalid address. The error does not repeat it, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a base_url such as https://api.example.com/v1, {why}")]
pub struct InvalidBaseUrl {
    why: &'static str,
}

/// Checks that an address is usable and contains no password.
pub(crate) fn check_base_url(text: &str) -> Result<(), InvalidBaseUrl> {
    let invalid = |why| Err(InvalidBaseUrl { why });
    let Ok(url) = Url::parse(text) else {
        return invalid("this is not an address");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return invalid("only http and https are supported");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return invalid("a name or password does not belong in it");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return invalid("a query does not belong in it");
    }
    Ok(())
}
