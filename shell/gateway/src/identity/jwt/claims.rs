//! What a token has to say.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_warden::guard::CallerClaims;
use toolwarden_warden::settings::{JwtSettings, RoleClaim};

use super::token::{Token, Verified};
use crate::identity::credential::is_plain_name;
use crate::identity::refusal::Reason;

/// What tokens of one issuer are held to.
#[derive(Debug)]
pub(super) struct Rule {
    issuer: Option<String>,
    audience: String,
    principal_claim: String,
    principal_prefix: String,
    scopes: Vec<String>,
    leeway: i64,
    roles: Option<RoleClaim>,
}

/// What a token that passed gives.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::identity) struct Passed {
    pub(in crate::identity) principal: Arc<str>,
    /// When it stops to be valid, in seconds since 1970.
    pub(in crate::identity) until: i64,
    /// The certificate it has to come with: its SHA-256 digest in base64url.
    pub(super) bound_to: Option<String>,
    /// Who vouches for the principal, and the roles it has.
    pub(in crate::identity) claims: Arc<CallerClaims>,
}

impl Passed {
    /// Whether the connection has the certificate that the token is bound to, if it is bound to one.
    pub(super) fn fits(&self, thumbprint: Option<&str>) -> Result<(), Reason> {
        match &self.bound_to {
            Some(bound) if thumbprint != Some(bound) => Err(Reason::Binding),
            Some(_) | None => Ok(()),
        }
    }
}

impl Rule {
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

    /// Whether a token says that it comes from this issuer.
    pub(super) fn may_concern(&self, token: &Token<'_>) -> bool {
        let wanted = self.issuer.as_deref();
        wanted.is_none_or(|issuer| token.claimed_issuer() == Some(issuer))
    }

    pub(super) fn check(&self, claims: &Verified<'_>, now: i64) -> Result<Passed, Reason> {
        let expiry = seconds(claims.get("exp").ok_or(Reason::Expired)?)?;
        let until = expiry.saturating_add(self.leeway);
        if now >= until {
            return Err(Reason::Expired);
        }
        if let Some(from) = claims.get("nbf")
            && now < seconds(from)?.saturating_sub(self.leeway)
        {
            return Err(Reason::NotYet);
        }
        if let Some(issuer) = &self.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(Reason::Issuer);
        }
        if !names(claims.get("aud")).any(|name| name == self.audience) {
            return Err(Reason::Audience);
        }
        let principal = Arc::from(self.principal(claims)?);
        let bound_to = binding(claims)?;
        let mut needed = self.scopes.iter();
        if !needed.all(|scope| granted(claims).any(|name| name == scope)) {
            return Err(Reason::Scope);
        }
        Ok(Passed {
            principal,
            until,
            bound_to,
            claims: Arc::new(CallerClaims {
                issuer: claims.get("iss").and_then(Value::as_str).map(Arc::from),
                roles: self.roles(claims),
            }),
        })
    }

    /// The roles of the policy that the token gives, sorted.
    fn roles(&self, claims: &Verified<'_>) -> Arc<[Box<str>]> {
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

    fn principal(&self, claims: &Verified<'_>) -> Result<String, Reason> {
        let name = claims.get(&self.principal_claim).and_then(Value::as_str);
        let name = name.filter(|name| is_plain_name(name));
        let name = name.ok_or(Reason::Principal)?;
        Ok(format!("{}{name}", self.principal_prefix))
    }
}

/// The certificate that a token is bound to (RFC 8705). Bindings of other kinds are not checked here, so that
/// tokens with one are refused: without the check they would be plain bearer tokens.
fn binding(claims: &Verified<'_>) -> Result<Option<String>, Reason> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let members = confirmation.as_object().ok_or(Reason::Binding)?;
    match (members.len(), members.get("x5t#S256")) {
        (1, Some(Value::String(thumbprint))) => Ok(Some(thumbprint.clone())),
        _ => Err(Reason::Binding),
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// The scopes of a token: a text with spaces, or a list, under either name.
fn granted<'a>(claims: &Verified<'a>) -> impl Iterator<Item = &'a str> {
    let listed = names(claims.get("scope")).chain(names(claims.get("scp")));
    listed.flat_map(str::split_ascii_whitespace)
}

/// A text, or the texts of a list.
fn names(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let one = value.and_then(Value::as_str);
    let many = value.and_then(Value::as_array);
    one.into_iter()
        .chain(many.into_iter().flatten().filter_map(Value::as_str))
}

/// A time of a token. One that is no number makes the token unreadable: to take it for absent would
/// leave out a check.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from float saturate, and a time beyond that range is as good as its end"
)]
fn seconds(value: &Value) -> Result<i64, Reason> {
    let whole = value.as_i64();
    let seconds = whole.or_else(|| value.as_f64().map(|seconds| seconds as i64));
    seconds.ok_or(Reason::Malformed)
}
