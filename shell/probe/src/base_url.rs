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
    if url.fragment().is_some() {
        return invalid("a fragment does not belong in it");
    }
    if url.query_pairs().any(|(name, _)| is_secret(&name)) {
        return invalid("a key does not belong in its query");
    }
    Ok(())
}

/// Whether a parameter of a query holds a secret, by its name. Others, such as `api-version`, do not.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let words: Vec<&str> = name.split('-').collect();
    let secret = [
        "key",
        "apikey",
        "token",
        "secret",
        "password",
        "sig",
        "signature",
        "auth",
    ];
    words.iter().any(|word| secret.contains(word))
}
