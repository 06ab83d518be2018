//! Who a caller is: by key, by token, by client certificate, or nobody in particular where that is allowed.
//!
//! A credential that is wrong is refused. It never makes its sender anonymous.

mod accepted;
mod api_key;
mod certificate;
mod credential;
mod error;
mod jwt;
mod metadata;
mod refusal;
mod site;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::HeaderMap;
use toolwarden_warden::guard::CallerClaims;
use toolwarden_warden::settings::{IdentitySettings, NameSource, PrincipalNames};

use api_key::{Digest, KeyRing};
use certificate::Certificates;
use credential::Credential;
use jwt::{Issuers, Timing};

pub use accepted::Accepted;
pub use api_key::ApiKey;
pub use certificate::TlsSubject;
pub use error::IdentityError;
pub use jwt::IssuerHealth;
pub use metadata::{metadata_url, protected_resource};
pub use refusal::{Claimed, Reason, Unauthenticated};
pub use site::{Refused, Site};

/// Whom a call is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name that policies and records know.
    pub name: Arc<str>,
    /// Whether it may use the administrative part of the API.
    pub admin: bool,
    /// How it proved who it is.
    pub via: Via,
    /// What its token says of it beside its name.
    pub claims: Option<Arc<CallerClaims>>,
    /// The credential it came with, to be checked again when the settings change.
    pub accepted: Accepted,
}

/// How a principal proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// By a key of the settings.
    ApiKey,
    /// By a token of an issuer.
    Jwt,
    /// By a client certificate.
    Mtls,
    /// Not at all.
    Anonymous,
}

impl Via {
    /// Its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Jwt => "jwt",
            Self::Mtls => "mtls",
            Self::Anonymous => "anonymous",
        }
    }
}

/// All who are known, ready to tell callers apart.
#[derive(Debug)]
pub struct Identities {
    keys: KeyRing,
    issuers: Issuers,
    certificates: Certificates,
    anonymous: Option<Arc<str>>,
    names: PrincipalNames,
    admins: BTreeSet<(NameSource, String)>,
    scopes: Arc<[String]>,
}

impl Identities {
    /// Checks what is configured. Keys of issuers are fetched in the background and refreshed while the
    /// value lives, so that an issuer that is down does not keep the gateway from starting.
    ///
    /// # Errors
    /// Something configured cannot be used.
    pub async fn load(settings: &IdentitySettings) -> Result<Self, IdentityError> {
        Self::with(settings, Timing::default(), None)
    }

    /// Those of changed settings. Issuers that are in both keep the keys that were fetched, so that a
    /// change does not depend on an issuer being up.
    ///
    /// # Errors
    /// Something configured cannot be used.
    pub async fn reload(&self, settings: &IdentitySettings) -> Result<Self, IdentityError> {
        Self::with(settings, self.issuers.timing(), Some(&self.issuers))
    }

    fn with(
        settings: &IdentitySettings,
        timing: Timing,
        before: Option<&Issuers>,
    ) -> Result<Self, IdentityError> {
        let IdentitySettings {
            api_keys,
            jwt,
            certificates,
            anonymous,
            admins: _,
        } = settings;
        let names = PrincipalNames::new(settings)?;
        let scopes: BTreeSet<&String> = jwt.iter().flat_map(|issuer| &issuer.scopes).collect();
        Ok(Self {
            keys: KeyRing::new(api_keys)?,
            issuers: Issuers::new(jwt, timing, before)?,
            certificates: Certificates::new(certificates),
            anonymous: anonymous.as_deref().map(Arc::from),
            admins: names.admins(settings)?,
            names,
            scopes: scopes.into_iter().cloned().collect(),
        })
    }

    /// Says who sent a request, by its headers and by the client certificate of its connection. A header
    /// goes before a certificate.
    ///
    /// # Errors
    /// A credential is missing or wrong, or cannot be checked at present.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        tls_subject: Option<&TlsSubject>,
    ) -> Result<Principal, Unauthenticated> {
        let found = match Credential::of(headers) {
            Ok(Some(Credential::Bearer(value))) => self.by_bearer(value, tls_subject).await,
            Ok(Some(Credential::ApiKey(value))) => self.by_key(&Digest::of(value)),
            Ok(None) => self.by_connection(tls_subject),
            Err(reason) => Err(reason),
        };
        let scopes = || Arc::clone(&self.scopes);
        let found = found.map_err(|reason| Unauthenticated::new(reason, scopes()))?;
        let Found {
            name,
            source,
            claims,
            accepted,
        } = found;
        if self.names.owner(&name) != Some(source) {
            let issuer = claims.and_then(|claims| claims.issuer.clone());
            let source = issuer.unwrap_or_else(|| accepted.via().as_str().into());
            let principal = name;
            return Err(Unauthenticated::taken(
                Claimed { principal, source },
                scopes(),
            ));
        }
        Ok(Principal {
            admin: self.admins.contains(&(source, name.to_string())),
            via: accepted.via(),
            name,
            claims,
            accepted,
        })
    }

    /// How the issuers do whose keys come over the network.
    #[must_use]
    pub fn issuers(&self) -> Vec<IssuerHealth> {
        self.issuers.health()
    }

    async fn by_bearer(
        &self,
        value: &str,
        tls_subject: Option<&TlsSubject>,
    ) -> Result<Found, Reason> {
        let digest = Digest::of(value);
        if let Ok(found) = self.by_key(&digest) {
            return Ok(found);
        }
        if self.issuers.is_empty() {
            return Err(Reason::Unknown);
        }
        let thumbprint = tls_subject.map(|subject| subject.thumbprint.as_str());
        let vouched = self.issuers.verify(&digest, value, thumbprint).await?;
        let trust = self.issuers.trust(vouched.index).ok_or(Reason::Issuer)?;
        let passed = &vouched.passed;
        Ok(Found {
            name: Arc::clone(&passed.principal),
            source: self.names.of_issuer(vouched.index),
            claims: Some(Arc::clone(&passed.claims)),
            accepted: Accepted::token(trust, passed.until),
        })
    }

    fn by_key(&self, digest: &Digest) -> Result<Found, Reason> {
        let name = self.keys.find(digest).ok_or(Reason::Unknown)?;
        Ok(Found {
            name,
            source: NameSource::Settings,
            claims: None,
            accepted: Accepted::key(*digest),
        })
    }

    fn by_connection(&self, subject: Option<&TlsSubject>) -> Result<Found, Reason> {
        if let Some(subject) = subject
            && !self.certificates.is_empty()
        {
            let found = self.certificates.find(subject);
            let (name, source) = found.ok_or(Reason::Certificate)?;
            return Ok(Found {
                name,
                source,
                claims: None,
                accepted: Accepted::certificate(subject.clone()),
            });
        }
        let name = self.anonymous.clone().ok_or(Reason::Missing)?;
        Ok(Found {
            name,
            source: NameSource::Settings,
            claims: None,
            accepted: Accepted::nothing(),
        })
    }
}

/// Whom a credential names.
struct Found {
    name: Arc<str>,
    source: NameSource,
    claims: Option<Arc<CallerClaims>>,
    accepted: Accepted,
}
