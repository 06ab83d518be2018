//! What a token has to say.

use serde_json::Value;
use toolwarden_warden::settings::JwtSettings;

use super::token::{Token, Verified};
use crate::identity::refusal::Reason;

/// The longest name a claim may give.
const LONGEST_NAME: usize = 256;

/// What tokens of one issuer are held to.
#[derive(Debug)]
pub(super) struct Rule {
    issuer: Option<String>,
    audience: String,
    principal_claim: String,
    principal_prefix: String,
    scopes: Vec<String>,
    leeway: i64,
}

/// What a token that passed gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) principal: String,
    /// When it stops to be valid, in seconds since 1970.
    pub(super) until: i64,
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
        let principal = self.principal(claims)?;
        let mut needed = self.scopes.iter();
        if !needed.all(|scope| granted(claims).any(|name| name == scope)) {
            return Err(Reason::Scope);
        }
        Ok(Passed { principal, until })
    }

    fn principal(&self, claims: &Verified<'_>) -> Result<String, Reason> {
        let name = claims.get(&self.principal_claim).and_then(Value::as_str);
        let name = name.filter(|name| {
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control)
        });
        let name = name.ok_or(Reason::Principal)?;
        Ok(format!("{}{name}", self.principal_prefix))
    }
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
