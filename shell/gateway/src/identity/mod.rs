//! Authenticates callers: by key, by token, by client certificate, or anonymously where that is allowed.
//!
//! A wrong credential is refused. It never makes its sender anonymous.

mod accepted;
mod api_key;
mod authentication_error;
mod certificate;
mod credential;
mod error;
mod jwt;
mod metadata;
mod origin_check;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::HeaderMap;
use toolwarden_live_guard::CallerClaims;
use toolwarden_model::json::Pointer;
use toolwarden_settings::{IdentitySettings, NameSource, PrincipalNames};

use api_key::{ApiKeyTable, Digest};
use certificate::ClientCertificates;
use credential::Credential;
use jwt::{Issuers, Timing};

pub use accepted::AcceptedCredential;
pub use api_key::ApiKey;
pub use authentication_error::{AuthenticationError, AuthenticationFailure, ClaimedName};
pub use certificate::TlsSubject;
pub use error::IdentityError;
pub use jwt::IssuerHealth;
pub use metadata::{metadata_url, protected_resource};
pub use origin_check::{AllowedHosts, OriginError};

/// The authenticated identity that a call is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name in policies and records.
    pub name: Arc<str>,
    /// Whether it may use the administrative endpoints of the API.
    pub admin: bool,
    /// How it authenticated.
    pub auth_method: AuthMethod,
    /// The claims of its token, besides its name.
    pub claims: Option<Arc<CallerClaims>>,
    /// The credential it used, which is checked again when the settings change.
    pub accepted: AcceptedCredential,
}

/// How a principal authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthMethod {
    /// With a key of the settings.
    ApiKey,
    /// With a token of an issuer.
    Jwt,
    /// With a client certificate.
    Mtls,
    /// Not at all.
    Anonymous,
}

impl AuthMethod {
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

/// All configured identities, ready to authenticate callers.
#[derive(Debug)]
pub struct Identities {
    keys: ApiKeyTable,
    issuers: Issuers,
    certificates: ClientCertificates,
    anonymous: Option<Arc<str>>,
    names: PrincipalNames,
    admins: BTreeSet<(NameSource, String)>,
    scopes: Arc<[String]>,
}

impl Identities {
    /// Checks the settings. Keys of issuers are fetched in the background and refreshed while the value lives, so
    /// that an issuer that is down does not prevent the gateway from starting.
    ///
    /// # Errors
    /// The settings are invalid.
    pub async fn load(settings: &IdentitySettings) -> Result<Self, IdentityError> {
        Self::build(settings, Timing::default(), None)
    }

    /// The identities of changed settings. Issuers that are in both keep their fetched keys, so that a change does
    /// not depend on an issuer being up.
    ///
    /// # Errors
    /// The settings are invalid.
    pub async fn reload(&self, settings: &IdentitySettings) -> Result<Self, IdentityError> {
        Self::build(settings, self.issuers.timing(), Some(&self.issuers))
    }

    /// The mistakes that [`Self::load`] would report, each with its place in the settings. It fetches nothing.
    pub(crate) fn mistakes(settings: &IdentitySettings) -> Vec<(Pointer, IdentityError)> {
        let at = |key: &str| Pointer::of(["identity", key]);
        let mut found = Vec::new();
        let names = PrincipalNames::new(settings).and_then(|names| names.admins(settings));
        if let Err(error) = names {
            found.push((Pointer::of(["identity"]), error.into()));
        }
        if let Err(error) = ApiKeyTable::new(&settings.api_keys) {
            found.push((at("api_keys"), error));
        }
        for (index, issuer) in settings.jwt.iter().enumerate() {
            if let Err(error) = jwt::check(issuer) {
                found.push((at("jwt").index(index), error));
            }
        }
        found
    }

    fn build(
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
            keys: ApiKeyTable::new(api_keys)?,
            issuers: Issuers::new(jwt, timing, before)?,
            certificates: ClientCertificates::new(certificates),
            anonymous: anonymous.as_deref().map(Arc::from),
            admins: names.admins(settings)?,
            names,
            scopes: scopes.into_iter().cloned().collect(),
        })
    }

    /// Authenticates the sender of a request by its headers and by the client certificate of its connection. A
    /// header takes precedence over a certificate.
    ///
    /// # Errors
    /// A credential is missing or wrong, or cannot be checked now.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        tls_subject: Option<&TlsSubject>,
    ) -> Result<Principal, AuthenticationError> {
        let found = match Credential::of(headers) {
            Ok(Some(Credential::Bearer(value))) => {
                self.authenticate_bearer(value, tls_subject).await
            }
            Ok(Some(Credential::ApiKey(value))) => self.authenticate_key(&Digest::of(value)),
            Ok(None) => self.authenticate_connection(tls_subject),
            Err(reason) => Err(reason),
        };
        let scopes = || Arc::clone(&self.scopes);
        let found = found.map_err(|reason| AuthenticationError::new(reason, scopes()))?;
        let CredentialMatch {
            name,
            source,
            claims,
            accepted,
        } = found;
        if self.names.owner(&name) != Some(source) {
            let issuer = claims.and_then(|claims| claims.issuer.clone());
            let source = issuer.unwrap_or_else(|| accepted.auth_method().as_str().into());
            let principal = name;
            return Err(AuthenticationError::principal_conflict(
                ClaimedName { principal, source },
                scopes(),
            ));
        }
        Ok(Principal {
            admin: self.admins.contains(&(source, name.to_string())),
            auth_method: accepted.auth_method(),
            name,
            claims,
            accepted,
        })
    }

    /// The status of issuers whose keys are fetched over the network.
    #[must_use]
    pub fn issuers(&self) -> Vec<IssuerHealth> {
        self.issuers.health()
    }

    async fn authenticate_bearer(
        &self,
        value: &str,
        tls_subject: Option<&TlsSubject>,
    ) -> Result<CredentialMatch, AuthenticationFailure> {
        let digest = Digest::of(value);
        if let Ok(found) = self.authenticate_key(&digest) {
            return Ok(found);
        }
        if self.issuers.is_empty() {
            return Err(AuthenticationFailure::Unknown);
        }
        let thumbprint = tls_subject.map(|subject| subject.thumbprint.as_str());
        let vouched = self.issuers.verify(&digest, value, thumbprint).await?;
        let trust = self
            .issuers
            .trust(vouched.issuer_index)
            .ok_or(AuthenticationFailure::Issuer)?;
        let passed = &vouched.token;
        Ok(CredentialMatch {
            name: Arc::clone(&passed.principal),
            source: self.names.of_issuer(vouched.issuer_index),
            claims: Some(Arc::clone(&passed.claims)),
            accepted: AcceptedCredential::token(trust, passed.expires_at),
        })
    }

    fn authenticate_key(&self, digest: &Digest) -> Result<CredentialMatch, AuthenticationFailure> {
        let name = self
            .keys
            .find(digest)
            .ok_or(AuthenticationFailure::Unknown)?;
        Ok(CredentialMatch {
            name,
            source: NameSource::Settings,
            claims: None,
            accepted: AcceptedCredential::key(*digest),
        })
    }

    fn authenticate_connection(
        &self,
        subject: Option<&TlsSubject>,
    ) -> Result<CredentialMatch, AuthenticationFailure> {
        if let Some(subject) = subject
            && !self.certificates.is_empty()
        {
            let found = self.certificates.find(subject);
            let (name, source) = found.ok_or(AuthenticationFailure::Certificate)?;
            return Ok(CredentialMatch {
                name,
                source,
                claims: None,
                accepted: AcceptedCredential::certificate(subject.clone()),
            });
        }
        let name = self
            .anonymous
            .clone()
            .ok_or(AuthenticationFailure::Missing)?;
        Ok(CredentialMatch {
            name,
            source: NameSource::Settings,
            claims: None,
            accepted: AcceptedCredential::anonymous(),
        })
    }
}

/// The principal that a credential names.
struct CredentialMatch {
    name: Arc<str>,
    source: NameSource,
    claims: Option<Arc<CallerClaims>>,
    accepted: AcceptedCredential,
}
