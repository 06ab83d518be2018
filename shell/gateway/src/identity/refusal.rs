//! How a caller is told that it was not recognized.

use std::sync::Arc;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use thiserror::Error;

/// After how many seconds it is worth trying again when keys cannot be had.
const RETRY_SECONDS: u64 = 10;

/// A request whose sender is not known.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct Unauthenticated {
    reason: Reason,
    scopes: Arc<[String]>,
    claimed: Option<Claimed>,
}

/// A name that a credential gave and that belongs to another source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The name.
    pub principal: Arc<str>,
    /// Who gave it: the issuer of the token, or client certificates.
    pub source: Arc<str>,
}

/// Why the sender of a request is not known, in the order of the checks. It holds nothing the sender sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing was sent, and anonymous callers are not admitted.
    #[error("no credential was sent: send `Authorization: Bearer <key or token>`")]
    Missing,
    /// More than one credential was sent.
    #[error("more than one credential was sent: send one")]
    Several,
    /// The header is of another form.
    #[error("`Authorization` is not of the form `Bearer <key or token>`")]
    NotBearer,
    /// Neither a known key nor a token.
    #[error("the key is not known")]
    Unknown,
    /// The certificate names nobody of the settings.
    #[error("the client certificate names nobody who is known here")]
    Certificate,
    /// Neither a known key nor a token that can be read.
    #[error("the credential is neither a known key nor a token that can be read")]
    Malformed,
    /// The token's issuer is not configured.
    #[error("the issuer of the token is not trusted here")]
    Issuer,
    /// The token is signed with a key that the issuer does not show.
    #[error("the token is signed with a key that its issuer does not show")]
    UnknownKey,
    /// The token's algorithm is none that its key is for.
    #[error("the algorithm of the token does not fit the key of its issuer")]
    Algorithm,
    /// The signature is not the issuer's.
    #[error("the signature of the token is wrong")]
    Signature,
    /// The token has expired, or does not say when it does.
    #[error("the token has expired, or has no `exp`")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// The token is for somebody else.
    #[error("the token was not issued for this gateway (`aud`)")]
    Audience,
    /// The token does not name a principal.
    #[error("the token does not name a principal")]
    Principal,
    /// The token is bound to something that the connection does not show.
    #[error(
        "the token is bound (`cnf`) to a client certificate that this connection does not have, or in a way that is \
         not supported here"
    )]
    Binding,
    /// The token lacks a scope.
    #[error("the token lacks a scope that is needed here")]
    Scope,
    /// The credential names a principal of another source.
    #[error("the credential names a principal that belongs to another source of identities")]
    Taken,
    /// The keys of the issuer cannot be had.
    #[error("the keys of the token's issuer cannot be had at present: try again later")]
    Unavailable,
}

impl Reason {
    /// A stable word for it, for records and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Several => "several",
            Self::NotBearer => "not_bearer",
            Self::Unknown => "unknown_key",
            Self::Certificate => "unknown_certificate",
            Self::Malformed => "malformed",
            Self::Issuer => "issuer",
            Self::UnknownKey => "unknown_signing_key",
            Self::Algorithm => "algorithm",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYet => "not_yet",
            Self::Audience => "audience",
            Self::Principal => "principal",
            Self::Binding => "binding",
            Self::Scope => "scope",
            Self::Taken => "principal_taken",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Unauthenticated {
    pub(super) fn new(reason: Reason, scopes: Arc<[String]>) -> Self {
        Self {
            reason,
            scopes,
            claimed: None,
        }
    }

    /// A refusal because a credential named a principal of another source.
    pub(super) fn taken(claimed: Claimed, scopes: Arc<[String]>) -> Self {
        Self {
            reason: Reason::Taken,
            scopes,
            claimed: Some(claimed),
        }
    }

    /// The name of another source that the credential gave, if that is why it is refused.
    #[must_use]
    pub fn claimed(&self) -> Option<&Claimed> {
        self.claimed.as_ref()
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The HTTP status it is answered with.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.reason {
            Reason::Several => StatusCode::BAD_REQUEST,
            Reason::Scope | Reason::Taken => StatusCode::FORBIDDEN,
            Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The value of `WWW-Authenticate`, which tells a client where to get a token. None where another
    /// credential would not help.
    #[must_use]
    pub fn challenge(&self, resource_metadata: Option<&str>) -> Option<String> {
        let error = match self.reason {
            Reason::Unavailable | Reason::Taken => return None,
            Reason::Missing => None,
            Reason::Several => Some("invalid_request"),
            Reason::Scope => Some("insufficient_scope"),
            _ => Some("invalid_token"),
        };
        let mut parts = Vec::new();
        if let Some(url) = resource_metadata {
            parts.push(format!("resource_metadata=\"{}\"", quotable(url)));
        }
        if let Some(error) = error {
            let description = quotable(&self.reason.to_string());
            parts.push(format!("error=\"{error}\""));
            parts.push(format!("error_description=\"{description}\""));
        }
        if !self.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", quotable(&self.scopes.join(" "))));
        }
        Some(format!("Bearer {}", parts.join(", ")).trim_end().to_owned())
    }

    /// The whole answer.
    #[must_use]
    pub fn response(&self, resource_metadata: Option<&str>) -> Response {
        let error = json!({
            "code": -32_000,
            "message": self.to_string(),
            "data": {"reason": self.reason.code()},
        });
        let body = json!({"jsonrpc": "2.0", "error": error}).to_string();
        let json = HeaderValue::from_static("application/json");
        let mut response = (self.status(), [(CONTENT_TYPE, json)], body).into_response();
        let challenge = self.challenge(resource_metadata);
        if let Some(value) = challenge.and_then(|text| HeaderValue::try_from(text).ok()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        if self.reason == Reason::Unavailable {
            let seconds = HeaderValue::from(RETRY_SECONDS);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

/// The text with only what RFC 6750 lets stand between quotation marks.
fn quotable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '"' | '\\' => '\'',
            ' '..='~' => character,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_say_what_is_wrong_and_where_to_go() {
        let metadata = "https://gw.example/.well-known/oauth-protected-resource/mcp";
        for (reason, scopes, metadata, status, challenge) in [
            (Reason::Missing, &[][..], None, 401, Some("Bearer")),
            (
                Reason::Missing,
                &["tools", "read"][..],
                Some(metadata),
                401,
                Some(
                    "Bearer resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\", scope=\"tools read\"",
                ),
            ),
            (
                Reason::Audience,
                &[],
                None,
                401,
                Some(
                    "Bearer error=\"invalid_token\", error_description=\"the token was not issued for this gateway (`aud`)\"",
                ),
            ),
            (
                Reason::Scope,
                &["a\"b"],
                None,
                403,
                Some(
                    "Bearer error=\"insufficient_scope\", error_description=\"the token lacks a scope that is needed here\", scope=\"a'b\"",
                ),
            ),
            (
                Reason::Several,
                &[],
                None,
                400,
                Some(
                    "Bearer error=\"invalid_request\", error_description=\"more than one credential was sent: send one\"",
                ),
            ),
            (Reason::Unavailable, &[], Some(metadata), 503, None),
        ] {
            let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
            let refusal = Unauthenticated::new(reason, scopes);
            assert_eq!(refusal.challenge(metadata).as_deref(), challenge);
            assert_eq!(refusal.status().as_u16(), status);
        }
    }

    #[test]
    fn answers_carry_the_challenge() {
        let refusal = Unauthenticated::new(Reason::Expired, Arc::from([]));
        let response = refusal.response(None);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let challenge = response.headers().get(WWW_AUTHENTICATE).unwrap();
        assert_eq!(challenge.to_str().ok(), refusal.challenge(None).as_deref());

        let refusal = Unauthenticated::new(Reason::Unavailable, Arc::from([]));
        let response = refusal.response(None);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers().get(RETRY_AFTER).unwrap(), "10");
    }
}
