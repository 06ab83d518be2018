//! Who a caller is: by key, by token, by client certificate, or nobody in particular where that is allowed.
//!
//! A credential that is wrong is refused. It never makes its sender anonymous.

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
use toolwarden_warden::settings::IdentitySettings;

use api_key::{Digest, KeyRing};
use certificate::Certificates;
use credential::Credential;
use jwt::{Issuers, Timing};

pub use api_key::ApiKey;
pub use certificate::TlsSubject;
pub use error::IdentityError;
pub use jwt::IssuerHealth;
pub use metadata::{metadata_url, protected_resource};
pub use refusal::{Reason, Unauthenticated};
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
    admins: BTreeSet<String>,
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
            admins,
        } = settings;
        let scopes: BTreeSet<&String> = jwt.iter().flat_map(|issuer| &issuer.scopes).collect();
        Ok(Self {
            keys: KeyRing::new(api_keys)?,
            issuers: Issuers::new(jwt, timing, before)?,
            certificates: Certificates::new(certificates),
            anonymous: anonymous.as_deref().map(Arc::from),
            admins: admins.iter().cloned().collect(),
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
            Ok(Some(Credential::Bearer(value))) => self.by_bearer(value).await,
            Ok(Some(Credential::ApiKey(value))) => self.by_key(&Digest::of(value)),
            Ok(None) => self.by_connection(tls_subject),
            Err(reason) => Err(reason),
        };
        let (name, via) =
            found.map_err(|reason| Unauthenticated::new(reason, Arc::clone(&self.scopes)))?;
        Ok(Principal {
            admin: self.admins.contains(name.as_ref()),
            name,
            via,
        })
    }

    /// How the issuers do whose keys come over the network.
    #[must_use]
    pub fn issuers(&self) -> Vec<IssuerHealth> {
        self.issuers.health()
    }

    async fn by_bearer(&self, value: &str) -> Result<(Arc<str>, Via), Reason> {
        let digest = Digest::of(value);
        if let Ok(found) = self.by_key(&digest) {
            return Ok(found);
        }
        if self.issuers.is_empty() {
            return Err(Reason::Unknown);
        }
        let name = self.issuers.verify(&digest, value).await?;
        Ok((name, Via::Jwt))
    }

    fn by_key(&self, digest: &Digest) -> Result<(Arc<str>, Via), Reason> {
        let name = self.keys.find(digest).ok_or(Reason::Unknown)?;
        Ok((name, Via::ApiKey))
    }

    fn by_connection(&self, subject: Option<&TlsSubject>) -> Result<(Arc<str>, Via), Reason> {
        if let Some(subject) = subject
            && !self.certificates.is_empty()
        {
            let name = self.certificates.find(subject);
            return Ok((name.ok_or(Reason::Certificate)?, Via::Mtls));
        }
        let nobody = self.anonymous.clone().ok_or(Reason::Missing)?;
        Ok((nobody, Via::Anonymous))
    }
}
