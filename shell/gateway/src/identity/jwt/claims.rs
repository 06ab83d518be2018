//! Checks the claims of a token.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_live_guard::CallerClaims;
use toolwarden_settings::{JwtSettings, RoleClaim};

use super::token::{UnverifiedToken, VerifiedClaims};
use crate::identity::authentication_error::AuthenticationFailure;
use crate::identity::credential::is_plain_name;

/// The requirements for tokens of one issuer.
#[derive(Debug)]
pub(super) struct ClaimRules {
    issuer: Option<String>,
    audience: String,
    principal_claim: String,
    principal_prefix: String,
    scopes: Vec<String>,
    leeway: i64,
    roles: Option<RoleClaim>,
}

/// What a valid token grants.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::identity) struct ValidToken {
    pub(in crate::identity) principal: Arc<str>,
    /// When it expires, in seconds since 1970.
    pub(in crate::identity) expires_at: i64,
    /// The client certificate it is bound to: its SHA-256 digest in base64url.
    pub(super) bound_to: Option<String>,
    /// The issuer that vouches for the principal, and its roles.
    pub(in crate::identity) claims: Arc<CallerClaims>,
}

impl ValidToken {
    /// Checks that the connection has the certificate that the token is bound to, if it is bound to one.
    pub(super) fn check_binding(
        &self,
        thumbprint: Option<&str>,
    ) -> Result<(), AuthenticationFailure> {
        match &self.bound_to {
            Some(bound) if thumbprint != Some(bound) => Err(AuthenticationFailure::Binding),
            Some(_) | None => Ok(()),
        }
    }
}

impl ClaimRules {
    pub(super) fn new(settings: &JwtSettings) -> Self {
        Self {
            issuer: settings.issuer.clone(),
            audience: settings.audience.clone(),
            principal_claim: settings.principal_claim.clone(),
            principal_prefix: settings.principal_prefix.clone(),
            scopes: settings.scopes.clone(),
            leeway: i64::try_from(settings.leeway.as_secs()).unwrap_or(i64::MAX),
            roles: settings.roles.clone(),
        }
    }

    /// Whether a token claims to come from this issuer.
    pub(super) fn matches_issuer(&self, token: &UnverifiedToken<'_>) -> bool {
        let wanted = self.issuer.as_deref();
        wanted.is_none_or(|issuer| token.claimed_issuer() == Some(issuer))
    }

    pub(super) fn check(
        &self,
        claims: &VerifiedClaims<'_>,
        now: i64,
    ) -> Result<ValidToken, AuthenticationFailure> {
        let expiry = seconds(claims.get("exp").ok_or(AuthenticationFailure::Expired)?)?;
        let until = expiry.saturating_add(self.leeway);
        if now >= until {
            return Err(AuthenticationFailure::Expired);
        }
        if let Some(from) = claims.get("nbf")
            && now < seconds(from)?.saturating_sub(self.leeway)
        {
            return Err(AuthenticationFailure::NotYetValid);
        }
        if let Some(issuer) = &self.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(AuthenticationFailure::Issuer);
        }
        if !string_items(claims.get("aud")).any(|name| name == self.audience) {
            return Err(AuthenticationFailure::Audience);
        }
        let principal = Arc::from(self.principal(claims)?);
        let bound_to = binding(claims)?;
        let mut needed = self.scopes.iter();
        if !needed.all(|scope| token_scopes(claims).any(|name| name == scope)) {
            return Err(AuthenticationFailure::Scope);
        }
        Ok(ValidToken {
            principal,
            expires_at: until,
            bound_to,
            claims: Arc::new(CallerClaims {
                issuer: claims.get("iss").and_then(Value::as_str).map(Arc::from),
                roles: self.roles(claims),
            }),
        })
    }

    /// The roles of the policy that the token grants, sorted.
    fn roles(&self, claims: &VerifiedClaims<'_>) -> Arc<[Box<str>]> {
        let Some(RoleClaim { claim, map }) = &self.roles else {
            return Arc::default();
        };
        let value = match claim
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
        {
            Some((first, rest)) => claims
                .get(&unescaped(first))
                .and_then(|it| it.pointer(&format!("/{rest}"))),
            None => claims.get(claim.strip_prefix('/').unwrap_or(claim)),
        };
        let text = value.and_then(Value::as_str).unwrap_or_default();
        let listed = value.and_then(Value::as_array).into_iter().flatten();
        let given = text
            .split_ascii_whitespace()
            .chain(listed.filter_map(Value::as_str));
        let roles: BTreeSet<&str> = given
            .filter_map(|value| map.get(value))
            .flatten()
            .map(String::as_str)
            .collect();
        roles.into_iter().map(Box::from).collect()
    }

    fn principal(&self, claims: &VerifiedClaims<'_>) -> Result<String, AuthenticationFailure> {
        let name = claims.get(&self.principal_claim).and_then(Value::as_str);
        let name = name.filter(|name| is_plain_name(name));
        let name = name.ok_or(AuthenticationFailure::Principal)?;
        Ok(format!("{}{name}", self.principal_prefix))
    }
}

/// The certificate that a token is bound to (RFC 8705). Other kinds of bindings are not checked here, so tokens
/// that have one are refused: without the check they would be plain bearer tokens.
fn binding(claims: &VerifiedClaims<'_>) -> Result<Option<String>, AuthenticationFailure> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let members = confirmation
        .as_object()
        .ok_or(AuthenticationFailure::Binding)?;
    match (members.len(), members.get("x5t#S256")) {
        (1, Some(Value::String(thumbprint))) => Ok(Some(thumbprint.clone())),
        _ => Err(AuthenticationFailure::Binding),
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// The scopes of a token: a string with spaces, or a list, under either name.
fn token_scopes<'a>(claims: &VerifiedClaims<'a>) -> impl Iterator<Item = &'a str> {
    let listed = string_items(claims.get("scope")).chain(string_items(claims.get("scp")));
    listed.flat_map(str::split_ascii_whitespace)
}

/// A string, or the strings of a list.
fn string_items(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let one = value.and_then(Value::as_str);
    let many = value.and_then(Value::as_array);
    one.into_iter()
        .chain(many.into_iter().flatten().filter_map(Value::as_str))
}

/// A time in a token. A value that is not a number makes the token invalid: treating it as absent would skip a
/// check.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from float saturate, and a time beyond that range is as good as its end"
)]
fn seconds(value: &Value) -> Result<i64, AuthenticationFailure> {
    let whole = value.as_i64();
    let seconds = whole.or_else(|| value.as_f64().map(|seconds| seconds as i64));
    seconds.ok_or(AuthenticationFailure::Malformed)
}
