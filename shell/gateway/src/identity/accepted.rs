//! Credentials that were accepted, to be checked again while what they opened is still open.

use std::sync::Arc;
use std::time::Duration;

use super::api_key::Digest;
use super::jwt::{Trust, seconds_since_1970};
use super::{Identities, Principal, TlsSubject, Via};

/// A credential that was accepted. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted(Arc<Kind>);

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Key(Digest),
    Token { trust: Trust, until: i64 },
    Certificate(TlsSubject),
    Nothing,
}

impl Accepted {
    pub(super) fn key(digest: Digest) -> Self {
        Self(Arc::new(Kind::Key(digest)))
    }

    pub(super) fn token(trust: Trust, until: i64) -> Self {
        Self(Arc::new(Kind::Token { trust, until }))
    }

    pub(super) fn certificate(subject: TlsSubject) -> Self {
        Self(Arc::new(Kind::Certificate(subject)))
    }

    pub(super) fn nothing() -> Self {
        Self(Arc::new(Kind::Nothing))
    }

    pub(super) fn via(&self) -> Via {
        match &*self.0 {
            Kind::Key(_) => Via::ApiKey,
            Kind::Token { .. } => Via::Jwt,
            Kind::Certificate(_) => Via::Mtls,
            Kind::Nothing => Via::Anonymous,
        }
    }

    /// How long it is still valid; none where it does not expire.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        let Kind::Token { until, .. } = &*self.0 else {
            return None;
        };
        let left = until.saturating_sub(seconds_since_1970());
        Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
    }
}

impl Identities {
    /// Whether a credential that was accepted would be accepted now, for the same principal with the same
    /// rights. The signature and the expiry of a token are not checked again.
    #[must_use]
    pub fn still_accepts(&self, principal: &Principal) -> bool {
        let Principal { name, admin, .. } = principal;
        let Some(owner) = self.names.owner(name) else {
            return false;
        };
        let named = match &*principal.accepted.0 {
            Kind::Key(digest) => self.keys.find(digest).as_ref() == Some(name),
            // Another issuer may have come whose names it is one of.
            Kind::Token { trust, .. } => {
                let issuer = self.issuers.trusted(trust);
                issuer.is_some_and(|it| self.names.of_issuer(it) == owner)
            }
            Kind::Certificate(subject) => {
                let found = self.certificates.find(subject);
                found.is_some_and(|(found, source)| found == *name && source == owner)
            }
            Kind::Nothing => self.anonymous.as_ref() == Some(name),
        };
        named && (!admin || self.admins.contains(&(owner, name.to_string())))
    }
}
