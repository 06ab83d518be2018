//! Refusals of callers that are not authenticated.

use std::sync::Arc;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use thiserror::Error;

/// After how many seconds a retry makes sense when keys are unavailable.
const RETRY_SECONDS: u64 = 10;

/// The refusal of a request whose sender is not authenticated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct AuthenticationError {
    reason: AuthenticationFailure,
    scopes: Arc<[String]>,
    claimed_name: Option<ClaimedName>,
}

/// A name in a credential that belongs to another source of identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedName {
    /// The name.
    pub principal: Arc<str>,
    /// The source that claims it: the issuer of the token, or client certificates.
    pub source: Arc<str>,
}

/// Why the sender of a request is not authenticated, in the order of the checks. It contains nothing the sender sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthenticationFailure {
    /// No credential was sent, and anonymous callers are not allowed.
    #[error("no credential was sent: send `Authorization: Bearer <key or token>`")]
    Missing,
    /// More than one credential was sent.
    #[error("more than one credential was sent: send one")]
    MultipleCredentials,
    /// The header has another form.
    #[error("`Authorization` is not of the form `Bearer <key or token>`")]
    NotBearer,
    /// Neither a known key nor a token.
    #[error("the key is not known")]
    Unknown,
    /// The certificate does not match any principal of the settings.
    #[error("the client certificate does not name a known principal")]
    Certificate,
    /// Neither a known key nor a token that can be parsed.
    #[error("the credential is neither a known key nor a token that can be read")]
    Malformed,
    /// The token's issuer is not configured.
    #[error("the issuer of the token is not trusted here")]
    Issuer,
    /// The token is signed with a key that the issuer does not publish.
    #[error("the token is signed with a key that its issuer does not publish")]
    UnknownKey,
    /// The token's algorithm does not match its key.
    #[error("the algorithm of the token does not fit the key of its issuer")]
    Algorithm,
    /// The signature is not the issuer's.
    #[error("the signature of the token is wrong")]
    Signature,
    /// The token has expired, or has no expiry.
    #[error("the token has expired, or has no `exp`")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// The token is for another audience.
    #[error("the token was not issued for this gateway (`aud`)")]
    Audience,
    /// The token does not name a principal.
    #[error("the token does not name a principal")]
    Principal,
    /// The token is bound to a credential that the connection does not have.
    #[error(
        "the token is bound (`cnf`) to a client certificate that this connection does not have, or in a way that is \
         not supported here"
    )]
    Binding,
    /// The token lacks a scope.
    #[error("the token lacks a required scope")]
    Scope,
    /// The credential names a principal of another source.
    #[error("the credential names a principal that belongs to another source of identities")]
    PrincipalConflict,
    /// The keys of the issuer are unavailable.
    #[error("the keys of the token's issuer are unavailable now: try again later")]
    Unavailable,
}

impl AuthenticationFailure {
    /// Its stable code, for records and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::MultipleCredentials => "several",
            Self::NotBearer => "not_bearer",
            Self::Unknown => "unknown_key",
            Self::Certificate => "unknown_certificate",
            Self::Malformed => "malformed",
            Self::Issuer => "issuer",
            Self::UnknownKey => "unknown_signing_key",
            Self::Algorithm => "algorithm",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet",
            Self::Audience => "audience",
            Self::Principal => "principal",
            Self::Binding => "binding",
            Self::Scope => "scope",
            Self::PrincipalConflict => "principal_taken",
            Self::Unavailable => "unavailable",
        }
    }
}

impl AuthenticationError {
    pub(super) fn new(reason: AuthenticationFailure, scopes: Arc<[String]>) -> Self {
        Self {
            reason,
            scopes,
            claimed_name: None,
        }
    }

    /// A refusal because a credential names a principal of another source.
    pub(super) fn principal_conflict(claimed: ClaimedName, scopes: Arc<[String]>) -> Self {
        Self {
            reason: AuthenticationFailure::PrincipalConflict,
            scopes,
            claimed_name: Some(claimed),
        }
    }

    /// The name of another source in the credential, if that is the reason.
    #[must_use]
    pub fn claimed_name(&self) -> Option<&ClaimedName> {
        self.claimed_name.as_ref()
    }

    /// The reason.
    #[must_use]
    pub fn reason(&self) -> AuthenticationFailure {
        self.reason
    }

    /// The HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.reason {
            AuthenticationFailure::MultipleCredentials => StatusCode::BAD_REQUEST,
            AuthenticationFailure::Scope | AuthenticationFailure::PrincipalConflict => {
                StatusCode::FORBIDDEN
            }
            AuthenticationFailure::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The value of `WWW-Authenticate`, which tells a client where to get a token. `None` if another credential would
    /// not help.
    #[must_use]
    pub fn challenge(&self, resource_metadata: Option<&str>) -> Option<String> {
        let error = match self.reason {
            AuthenticationFailure::Unavailable | AuthenticationFailure::PrincipalConflict => {
                return None;
            }
            AuthenticationFailure::Missing => None,
            AuthenticationFailure::MultipleCredentials => Some("invalid_request"),
            AuthenticationFailure::Scope => Some("insufficient_scope"),
            _ => Some("invalid_token"),
        };
        let mut parts = Vec::new();
        if let Some(url) = resource_metadata {
            parts.push(format!("resource_metadata=\"{}\"", quoted_text(url)));
        }
        if let Some(error) = error {
            let description = quoted_text(&self.reason.to_string());
            parts.push(format!("error=\"{error}\""));
            parts.push(format!("error_description=\"{description}\""));
        }
        if !self.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", quoted_text(&self.scopes.join(" "))));
        }
        Some(format!("Bearer {}", parts.join(", ")).trim_end().to_owned())
    }

    /// The HTTP response.
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
        if self.reason == AuthenticationFailure::Unavailable {
            let seconds = HeaderValue::from(RETRY_SECONDS);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

/// The text with only the characters that RFC 6750 allows between quotation marks.
fn quoted_text(text: &str) -> String {
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
            (
                AuthenticationFailure::Missing,
                &[][..],
                None,
                401,
                Some("Bearer"),
            ),
            (
                AuthenticationFailure::Missing,
                &["tools", "read"][..],
                Some(metadata),
                401,
                Some(
                    "Bearer resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\", scope=\"tools read\"",
                ),
            ),
            (
                AuthenticationFailure::Audience,
                &[],
                None,
                401,
                Some(
                    "Bearer error=\"invalid_token\", error_description=\"the token was not issued for this gateway (`aud`)\"",
                ),
            ),
            (
                AuthenticationFailure::Scope,
                &["a\"b"],
                None,
                403,
                Some(
                    "Bearer error=\"insufficient_scope\", error_description=\"the token lacks a required scope\", scope=\"a'b\"",
                ),
            ),
            (
                AuthenticationFailure::MultipleCredentials,
                &[],
                None,
                400,
                Some(
                    "Bearer error=\"invalid_request\", error_description=\"more than one credential was sent: send one\"",
                ),
            ),
            (
                AuthenticationFailure::Unavailable,
                &[],
                Some(metadata),
                503,
                None,
            ),
        ] {
            let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
            let refusal = AuthenticationError::new(reason, scopes);
            assert_eq!(refusal.challenge(metadata).as_deref(), challenge);
            assert_eq!(refusal.status().as_u16(), status);
        }
    }

    #[test]
    fn answers_carry_the_challenge() {
        let refusal = AuthenticationError::new(AuthenticationFailure::Expired, Arc::from([]));
        let response = refusal.response(None);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let challenge = response.headers().get(WWW_AUTHENTICATE).unwrap();
        assert_eq!(challenge.to_str().ok(), refusal.challenge(None).as_deref());

        let refusal = AuthenticationError::new(AuthenticationFailure::Unavailable, Arc::from([]));
        let response = refusal.response(None);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers().get(RETRY_AFTER).unwrap(), "10");
    }
}
