//! How callers authenticate.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::bare_url;

/// How callers authenticate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySettings {
    /// API keys.
    pub api_keys: Vec<ApiKeySettings>,
    /// Token issuers.
    pub jwt: Vec<JwtSettings>,
    /// Principals by the subject of their client certificate; `*` in a name stands for the common name.
    pub certificates: Vec<CertificateSettings>,
    /// The principal of callers without credentials; `None` means that they are rejected.
    pub anonymous: Option<String>,
    /// The principals that may use the administrative part of the API.
    pub admins: Vec<AdminSettings>,
}

/// A principal that may use the administrative part of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// The principal, as in policies and records.
    pub principal: String,
    /// The issuer whose tokens name it; `None` if the name alone identifies its source.
    pub issuer: Option<String>,
}

impl AdminSettings {
    /// An administrator whose name alone identifies its source.
    #[must_use]
    pub fn named(principal: &str) -> Self {
        Self {
            principal: principal.to_owned(),
            issuer: None,
        }
    }
}

/// An API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeySettings {
    /// The principal.
    pub principal: String,
    /// The SHA-256 digest of the key, in hex. The keys themselves are never stored.
    pub sha256: String,
}

/// A token issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// The required value of `iss`.
    pub issuer: Option<String>,
    /// The value that `aud` must contain.
    pub audience: String,
    /// How signatures are verified.
    pub keys: JwtKeys,
    /// The claim that names the principal.
    pub principal_claim: String,
    /// The prefix of the principal, before the claim's value.
    pub principal_prefix: String,
    /// The scopes that a token must have.
    pub scopes: Vec<String>,
    /// The tolerated clock difference.
    pub leeway: Duration,
    /// The claim that assigns roles of the policy.
    pub roles: Option<RoleClaim>,
    /// How often the issuer's key set is refreshed. A key that was removed from it stops working within
    /// this time.
    pub refresh: Duration,
    /// How long the last key set is used while no newer one can be fetched.
    pub max_stale: Duration,
}

/// The token claim that assigns roles of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleClaim {
    /// The claim: its name, or a JSON pointer such as `/realm_access/roles`.
    pub claim: String,
    /// The roles that each of its values assigns.
    pub map: BTreeMap<String, Vec<String>>,
}

/// The default refresh interval of an issuer's key set.
pub const KEY_REFRESH: Duration = Duration::from_secs(600);
/// The default time for which a key set is used while no newer one can be fetched.
pub const KEY_MAX_STALE: Duration = Duration::from_secs(3600);

/// How signatures of tokens are verified.
#[derive(Clone, PartialEq, Eq)]
pub enum JwtKeys {
    /// A shared secret (HS256, HS384, HS512), inline.
    Secret(String),
    /// A public key as PEM, inline.
    PublicKey(String),
    /// A key set at an address.
    Jwks(String),
    /// The key set that the issuer's OpenID configuration names.
    Discovery,
}

/// The principals of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The subject: a common name, or `*` for any.
    pub subject: String,
    /// The principal.
    pub principal: String,
}

impl IdentitySettings {
    /// Whether any caller can authenticate.
    #[must_use]
    pub fn can_identify_callers(&self) -> bool {
        self.anonymous.is_some()
            || !(self.api_keys.is_empty() && self.jwt.is_empty() && self.certificates.is_empty())
    }
}

impl fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => f.write_str("Secret(***)"),
            Self::PublicKey(_) => f.write_str("PublicKey(..)"),
            Self::Jwks(url) => f.debug_tuple("Jwks").field(&bare_url(url)).finish(),
            Self::Discovery => f.write_str("Discovery"),
        }
    }
}
