//! The credential of a request.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use toolwarden_drift::text::find_invisible;

use super::authentication_error::AuthenticationFailure;

/// An alternative header for keys, which many clients can set more easily.
const API_KEY: &str = "x-api-key";

/// The longest name in a credential, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The only credential of a request. Its text is never shown.
pub(super) enum Credential<'a> {
    /// A key or a token.
    Bearer(&'a str),
    /// A key.
    ApiKey(&'a str),
}

impl<'a> Credential<'a> {
    /// The credential in the headers, if there is one. Two credentials would be ambiguous.
    pub(super) fn of(headers: &'a HeaderMap) -> Result<Option<Self>, AuthenticationFailure> {
        let sent = [headers.get_all(AUTHORIZATION), headers.get_all(API_KEY)];
        if sent.iter().flatten().count() > 1 {
            return Err(AuthenticationFailure::MultipleCredentials);
        }
        if let Some(value) = headers.get(AUTHORIZATION) {
            let text = value
                .to_str()
                .map_err(|_| AuthenticationFailure::NotBearer)?;
            return bearer(text)
                .map(|token| Some(Self::Bearer(token)))
                .ok_or(AuthenticationFailure::NotBearer);
        }
        let Some(value) = headers.get(API_KEY) else {
            return Ok(None);
        };
        let text = value.to_str().map_err(|_| AuthenticationFailure::Unknown)?;
        Ok(Some(Self::ApiKey(text.trim())))
    }
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether people can distinguish a name in a credential from others: it has no characters that are trimmed,
/// invisible, or reorder the text.
pub(super) fn is_plain_name(name: &str) -> bool {
    let chars: Vec<char> = name.chars().take(MAX_NAME_BYTES + 1).collect();
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.trim() == name
        && !chars.iter().any(|it| it.is_control())
        && !find_invisible(&chars).contains(&true)
}
