//! Verifies tokens: signed by a trusted issuer, for this gateway, and not expired.

mod claims;
mod jwk;
mod key;
mod remote_keys;
mod token;
mod token_cache;
#[cfg(test)]
mod wycheproof;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Url;
use toolwarden_http::display_url;
use toolwarden_settings::{JwtKeys, JwtSettings, is_loopback_or_https};

use super::api_key::Digest;
use super::authentication_error::AuthenticationFailure;
use super::error::IdentityError;
use claims::{ClaimRules, ValidToken};
use key::{MIN_SECRET_BYTES, VerificationKey};
use remote_keys::{KeySet, KeySource, RemoteKeys};
use token::{UnverifiedToken, VerifiedClaims};
use token_cache::{CachedToken, TokenCache};

pub use remote_keys::IssuerHealth;
pub(super) use remote_keys::Timing;

/// All issuers, with the cache of verified tokens.
#[derive(Debug)]
pub(super) struct Issuers {
    issuers: Vec<Issuer>,
    cache: TokenCache,
    timing: Timing,
}

impl Issuers {
    /// The issuers of the settings. Keys that were fetched before are kept.
    pub(super) fn new(
        settings: &[JwtSettings],
        timing: Timing,
        before: Option<&Self>,
    ) -> Result<Self, IdentityError> {
        let remote = |name: &JwtSettings, source: KeySource| {
            let timing = timing.of(name);
            let known = before.and_then(|before| before.remote(&source, timing));
            let name = name.issuer.clone();
            known.map_or_else(|| RemoteKeys::start(name, source, timing).map(Arc::new), Ok)
        };
        let issuers = settings.iter().map(|it| Issuer::new(it, remote));
        Ok(Self {
            issuers: issuers.collect::<Result<_, _>>()?,
            cache: TokenCache::default(),
            timing,
        })
    }

    pub(super) fn timing(&self) -> Timing {
        self.timing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// What a token grants over a connection with this certificate. The signature of a cached token is not verified
    /// again, unless the keys of its issuer have changed since.
    pub(super) async fn verify(
        &self,
        digest: &Digest,
        text: &str,
        thumbprint: Option<&str>,
    ) -> Result<IssuerToken, AuthenticationFailure> {
        let now = seconds_since_1970();
        if let Some(vouched) = self.find_cached(digest, now) {
            vouched.token.check_binding(thumbprint)?;
            return Ok(vouched);
        }
        let token = UnverifiedToken::parse(text)?;
        let mut refusal = None;
        for (index, issuer) in self.issuers.iter().enumerate() {
            if !issuer.rule.matches_issuer(&token) {
                continue;
            }
            match issuer.check(&token, now).await {
                Ok(CheckedToken {
                    token: passed,
                    generation,
                }) => {
                    let passed = Arc::new(passed);
                    let entry = CachedToken {
                        token: Arc::clone(&passed),
                        issuer: index,
                        generation,
                    };
                    self.cache.insert(*digest, entry);
                    passed.check_binding(thumbprint)?;
                    return Ok(IssuerToken {
                        token: passed,
                        issuer_index: index,
                    });
                }
                // The issuer whose checks the token passed furthest gives the best reason.
                Err(reason) => refusal = refusal.max(Some(reason)),
            }
        }
        Err(refusal.unwrap_or(AuthenticationFailure::Issuer))
    }

    pub(super) fn health(&self) -> Vec<IssuerHealth> {
        let health = self.issuers.iter().filter_map(Issuer::health);
        health.collect()
    }

    /// The trust settings for tokens of an issuer.
    pub(super) fn trust(&self, index: usize) -> Option<IssuerTrust> {
        let issuer = self.issuers.get(index)?;
        Some(IssuerTrust(Arc::clone(&issuer.settings)))
    }

    /// The index of an issuer with the same trust settings as before.
    pub(super) fn find_trusted(&self, IssuerTrust(then): &IssuerTrust) -> Option<usize> {
        let alike = |now: &JwtSettings| JwtSettings {
            roles: then.roles.clone(),
            refresh: then.refresh,
            max_stale: then.max_stale,
            ..now.clone()
        };
        let mut issuers = self.issuers.iter();
        issuers.position(|it| alike(&it.settings) == **then)
    }

    fn remote(&self, source: &KeySource, timing: Timing) -> Option<Arc<RemoteKeys>> {
        self.issuers.iter().find_map(|issuer| match &issuer.keys {
            IssuerKeys::Remote(remote)
                if remote.source() == source && remote.timing() == timing =>
            {
                Some(Arc::clone(remote))
            }
            IssuerKeys::Remote(_) | IssuerKeys::Fixed(_) => None,
        })
    }

    /// What a cached token grants, if it is still valid.
    pub(super) fn find_cached(&self, digest: &Digest, now: i64) -> Option<IssuerToken> {
        let entry = self.cache.get(digest)?;
        let index = entry.issuer;
        let generation = self.issuers.get(index)?.generation()?;
        let passed = entry.token;
        (now < passed.expires_at && generation == entry.generation).then_some(IssuerToken {
            token: passed,
            issuer_index: index,
        })
    }
}

/// A token that an issuer vouches for.
#[derive(Debug)]
pub(super) struct IssuerToken {
    pub(super) token: Arc<ValidToken>,
    /// The index of the issuer in the settings.
    pub(super) issuer_index: usize,
}

/// Which tokens of an issuer are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IssuerTrust(Arc<JwtSettings>);

#[derive(Debug)]
struct Issuer {
    settings: Arc<JwtSettings>,
    rule: ClaimRules,
    keys: IssuerKeys,
}

#[derive(Debug)]
enum IssuerKeys {
    Fixed(VerificationKey),
    Remote(Arc<RemoteKeys>),
}

/// What a token grants, and the generation of keys that verified it.
struct CheckedToken {
    token: ValidToken,
    generation: u64,
}

/// The keys of an issuer as the settings give them, before any are fetched.
enum ConfiguredKeys {
    Fixed(VerificationKey),
    Remote(KeySource),
}

impl ConfiguredKeys {
    fn of(settings: &JwtSettings) -> Result<Self, IdentityError> {
        let issuer = shown_issuer(settings.issuer.as_deref());
        Ok(match &settings.keys {
            JwtKeys::Secret(secret) if secret.len() < MIN_SECRET_BYTES => {
                let least = MIN_SECRET_BYTES;
                return Err(IdentityError::WeakSecret { issuer, least });
            }
            JwtKeys::Secret(secret) => Self::Fixed(VerificationKey::from_secret(secret)),
            JwtKeys::PublicKey(pem) => Self::Fixed(
                VerificationKey::from_pem(pem)
                    .map_err(|why| IdentityError::PublicKey { issuer, why })?,
            ),
            JwtKeys::Jwks(url) => Self::Remote(KeySource::KeySet(parse_url(url)?)),
            JwtKeys::Discovery => {
                let name = settings.issuer.clone();
                let name = name.ok_or(IdentityError::DiscoveryWithoutIssuer)?;
                let url = parse_url(&name)?;
                Self::Remote(KeySource::Issuer { name, url })
            }
        })
    }
}

/// Checks the settings of an issuer without fetching its keys.
pub(super) fn check(settings: &JwtSettings) -> Result<(), IdentityError> {
    match ConfiguredKeys::of(settings)? {
        ConfiguredKeys::Fixed(_) => Ok(()),
        ConfiguredKeys::Remote(source) => RemoteKeys::check(&source),
    }
}

impl Issuer {
    fn new(
        settings: &JwtSettings,
        remote: impl Fn(&JwtSettings, KeySource) -> Result<Arc<RemoteKeys>, IdentityError>,
    ) -> Result<Self, IdentityError> {
        let keys = match ConfiguredKeys::of(settings)? {
            ConfiguredKeys::Fixed(key) => IssuerKeys::Fixed(key),
            ConfiguredKeys::Remote(source) => IssuerKeys::Remote(remote(settings, source)?),
        };
        let rule = ClaimRules::new(settings);
        let settings = Arc::new(settings.clone());
        Ok(Self {
            settings,
            rule,
            keys,
        })
    }

    async fn check(
        &self,
        token: &UnverifiedToken<'_>,
        now: i64,
    ) -> Result<CheckedToken, AuthenticationFailure> {
        let (verified, generation) = match &self.keys {
            IssuerKeys::Fixed(key) => (token.verify(key)?, 0),
            IssuerKeys::Remote(remote) => verify_with_remote_key(remote, token).await?,
        };
        let passed = self.rule.check(&verified, now)?;
        Ok(CheckedToken {
            token: passed,
            generation,
        })
    }

    /// The generation of the keys in force; `None` if there are none.
    fn generation(&self) -> Option<u64> {
        match &self.keys {
            IssuerKeys::Fixed(_) => Some(0),
            IssuerKeys::Remote(remote) => remote.keys().map(|keys| keys.generation),
        }
    }

    fn health(&self) -> Option<IssuerHealth> {
        match &self.keys {
            IssuerKeys::Fixed(_) => None,
            IssuerKeys::Remote(remote) => Some(remote.health()),
        }
    }
}

async fn verify_with_remote_key<'t>(
    remote: &RemoteKeys,
    token: &'t UnverifiedToken<'_>,
) -> Result<(VerifiedClaims<'t>, u64), AuthenticationFailure> {
    let keys = match remote.keys() {
        Some(keys) => keys,
        None => remote
            .refresh()
            .await
            .ok_or(AuthenticationFailure::Unavailable)?,
    };
    let first = verify_with_any_key(&keys, token);
    let may_be_rotated = match first {
        Err(AuthenticationFailure::UnknownKey) => true,
        // If the token names no key, a wrong signature may be one by a new key.
        Err(AuthenticationFailure::Signature) => !token.names_key(),
        _ => false,
    };
    if !may_be_rotated {
        return first;
    }
    let newer = remote
        .refresh()
        .await
        .ok_or(AuthenticationFailure::Unavailable)?;
    if newer.generation == keys.generation {
        return first;
    }
    verify_with_any_key(&newer, token)
}

fn verify_with_any_key<'t>(
    keys: &KeySet,
    token: &'t UnverifiedToken<'_>,
) -> Result<(VerifiedClaims<'t>, u64), AuthenticationFailure> {
    let mut refusal = AuthenticationFailure::UnknownKey;
    for key in keys.keys.iter().filter(|key| token.may_be_signed_by(key)) {
        match token.verify(key) {
            Ok(verified) => return Ok((verified, keys.generation)),
            Err(reason) => refusal = refusal.max(reason),
        }
    }
    Err(refusal)
}

fn parse_url(text: &str) -> Result<Url, IdentityError> {
    let Ok(url) = Url::parse(text) else {
        let url = text.to_owned();
        return Err(IdentityError::Address { url });
    };
    let shown = display_url(&url);
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(IdentityError::Address { url: shown });
    }
    match is_loopback_or_https(url.as_str()) {
        true => Ok(url),
        false => Err(IdentityError::Insecure { url: shown }),
    }
}

fn shown_issuer(name: Option<&str>) -> String {
    name.map_or_else(|| "any issuer".to_owned(), |name| format!("`{name}`"))
}

pub(super) fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}
