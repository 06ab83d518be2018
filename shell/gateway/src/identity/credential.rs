//! What a request sends to prove who it is for.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use toolwarden_drift::text::unseen;

use super::refusal::Reason;

/// Another header for keys, which many clients can set more easily.
const API_KEY: &str = "x-api-key";

/// The longest name a credential may give, in bytes.
const LONGEST_NAME: usize = 256;

/// The one credential of a request. Its text is never shown.
pub(super) enum Credential<'a> {
    /// A key or a token.
    Bearer(&'a str),
    /// A key.
    ApiKey(&'a str),
}

impl<'a> Credential<'a> {
    /// The credential in the headers, if there is one. Two would leave open which of them counts.
    pub(super) fn of(headers: &'a HeaderMap) -> Result<Option<Self>, Reason> {
        let sent = [headers.get_all(AUTHORIZATION), headers.get_all(API_KEY)];
        if sent.iter().flatten().count() > 1 {
            return Err(Reason::Several);
        }
        if let Some(value) = headers.get(AUTHORIZATION) {
            let text = value.to_str().map_err(|_| Reason::NotBearer)?;
            return bearer(text)
                .map(|token| Some(Self::Bearer(token)))
                .ok_or(Reason::NotBearer);
        }
        let Some(value) = headers.get(API_KEY) else {
            return Ok(None);
        };
        let text = value.to_str().map_err(|_| Reason::Unknown)?;
        Ok(Some(Self::ApiKey(text.trim())))
    }
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether a name that a credential gives can be told from others by those who read it: nothing of it is
/// trimmed, unseen, or shows it in another order.
pub(super) fn is_plain_name(name: &str) -> bool {
    let chars: Vec<char> = name.chars().take(LONGEST_NAME + 1).collect();
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.trim() == name
        && !chars.iter().any(|it| it.is_control())
        && !unseen(&chars).contains(&true)
}
