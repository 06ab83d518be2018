//! Accepted credentials, which are checked again while their sessions and streams are open.

use std::sync::Arc;
use std::time::Duration;

use super::api_key::Digest;
use super::jwt::{IssuerTrust, seconds_since_1970};
use super::{AuthMethod, Identities, Principal, TlsSubject};

/// A credential that was accepted. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedCredential(Arc<CredentialKind>);

#[derive(Debug, PartialEq, Eq)]
enum CredentialKind {
    Key(Digest),
    Token { trust: IssuerTrust, until: i64 },
    Certificate(TlsSubject),
    Anonymous,
}

impl AcceptedCredential {
    pub(super) fn key(digest: Digest) -> Self {
        Self(Arc::new(CredentialKind::Key(digest)))
    }

    pub(super) fn token(trust: IssuerTrust, until: i64) -> Self {
        Self(Arc::new(CredentialKind::Token { trust, until }))
    }

    pub(super) fn certificate(subject: TlsSubject) -> Self {
        Self(Arc::new(CredentialKind::Certificate(subject)))
    }

    pub(super) fn anonymous() -> Self {
        Self(Arc::new(CredentialKind::Anonymous))
    }

    pub(super) fn auth_method(&self) -> AuthMethod {
        match &*self.0 {
            CredentialKind::Key(_) => AuthMethod::ApiKey,
            CredentialKind::Token { .. } => AuthMethod::Jwt,
            CredentialKind::Certificate(_) => AuthMethod::Mtls,
            CredentialKind::Anonymous => AuthMethod::Anonymous,
        }
    }

    /// How long it is still valid; `None` if it does not expire.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        let CredentialKind::Token { until, .. } = &*self.0 else {
            return None;
        };
        let left = until.saturating_sub(seconds_since_1970());
        Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
    }
}

impl Identities {
    /// Whether an accepted credential would be accepted now, for the same principal with the same rights. The
    /// signature and the expiry of a token are not checked again.
    #[must_use]
    pub fn still_accepts(&self, principal: &Principal) -> bool {
        let Principal { name, admin, .. } = principal;
        let Some(owner) = self.names.owner(name) else {
            return false;
        };
        let named = match &*principal.accepted.0 {
            CredentialKind::Key(digest) => self.keys.find(digest).as_ref() == Some(name),
            // The settings may have another issuer now that claims this name.
            CredentialKind::Token { trust, .. } => {
                let issuer = self.issuers.find_trusted(trust);
                issuer.is_some_and(|it| self.names.of_issuer(it) == owner)
            }
            CredentialKind::Certificate(subject) => {
                let found = self.certificates.find(subject);
                found.is_some_and(|(found, source)| found == *name && source == owner)
            }
            CredentialKind::Anonymous => self.anonymous.as_ref() == Some(name),
        };
        named && (!admin || self.admins.contains(&(owner, name.to_string())))
    }
}
