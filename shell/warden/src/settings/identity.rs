//! Who callers are.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::bare_url;

/// Who callers are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySettings {
    /// Callers by key.
    pub api_keys: Vec<ApiKeySettings>,
    /// Issuers of tokens.
    pub jwt: Vec<JwtSettings>,
    /// Principals by the subject of their client certificate; `*` in a name stands for the common name.
    pub certificates: Vec<CertificateSettings>,
    /// The principal of callers who say nothing; none means that they are refused.
    pub anonymous: Option<String>,
    /// Who may use the administrative part of the API.
    pub admins: Vec<AdminSettings>,
}

/// A principal who may use the administrative part of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// The principal, as policies and records name it.
    pub principal: String,
    /// The issuer whose tokens name it; none where the name alone says which source it is from.
    pub issuer: Option<String>,
}

impl AdminSettings {
    /// An administrator whose name alone says which source it is from.
    #[must_use]
    pub fn named(principal: &str) -> Self {
        Self {
            principal: principal.to_owned(),
            issuer: None,
        }
    }
}

/// A caller with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeySettings {
    /// The principal.
    pub principal: String,
    /// The SHA-256 digest of the key, in hex. Keys themselves are never kept.
    pub sha256: String,
}

/// An issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// What `iss` has to be.
    pub issuer: Option<String>,
    /// What `aud` has to contain.
    pub audience: String,
    /// How signatures are checked.
    pub keys: JwtKeys,
    /// The claim that names the principal.
    pub principal_claim: String,
    /// Put before the claim's value to make the principal.
    pub principal_prefix: String,
    /// Scopes a token has to have.
    pub scopes: Vec<String>,
    /// How far clocks may be apart.
    pub leeway: Duration,
    /// The roles of the policy that a claim gives.
    pub roles: Option<RoleClaim>,
    /// The time between two looks at the key set of the issuer. A key that was removed from it stops working
    /// within this time.
    pub refresh: Duration,
    /// How long the last key set is used while no newer one can be fetched.
    pub max_stale: Duration,
}

/// The claim of a token that gives roles of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleClaim {
    /// The claim: its name, or a JSON pointer such as `/realm_access/roles`.
    pub claim: String,
    /// The roles that each of its values gives.
    pub map: BTreeMap<String, Vec<String>>,
}

/// The time between two looks at the key set of an issuer, unless the settings say otherwise.
pub const KEY_REFRESH: Duration = Duration::from_secs(600);
/// How long a key set is used while no newer one can be fetched, unless the settings say otherwise.
pub const KEY_MAX_STALE: Duration = Duration::from_secs(3600);

/// How signatures of tokens are checked.
#[derive(Clone, PartialEq, Eq)]
pub enum JwtKeys {
    /// A shared secret (HS256, HS384, HS512), in place.
    Secret(String),
    /// A public key, PEM, in place.
    PublicKey(String),
    /// A key set at an address.
    Jwks(String),
    /// The key set that the issuer's OpenID configuration names.
    Discovery,
}

/// Principals by client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The subject: a common name, or `*` for any.
    pub subject: String,
    /// The principal.
    pub principal: String,
}

impl IdentitySettings {
    /// Whether anybody at all can be told from nobody.
    #[must_use]
    pub fn knows_somebody(&self) -> bool {
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
