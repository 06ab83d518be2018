//! Tokens: signed by an issuer that is trusted, for this gateway, in time.

mod cache;
mod claims;
mod jwk;
mod key;
mod remote;
mod token;
#[cfg(test)]
mod wycheproof;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Url;
use toolwarden_http::shown;
use toolwarden_warden::settings::{JwtKeys, JwtSettings, is_loopback_or_https};

use super::api_key::Digest;
use super::error::IdentityError;
use super::refusal::Reason;
use cache::{Cache, Entry};
use claims::{Passed, Rule};
use key::{Key, LEAST_SECRET};
use remote::{KeySet, Remote, Source};
use token::{Token, Verified};

pub use remote::IssuerHealth;
pub(super) use remote::Timing;

/// All issuers, with the tokens that were found right before.
#[derive(Debug)]
pub(super) struct Issuers {
    issuers: Vec<Issuer>,
    cache: Cache,
    timing: Timing,
}

impl Issuers {
    /// The issuers of the settings. Keys that were fetched before are taken over.
    pub(super) fn new(
        settings: &[JwtSettings],
        timing: Timing,
        before: Option<&Self>,
    ) -> Result<Self, IdentityError> {
        let remote = |name: &JwtSettings, source: Source| {
            let timing = timing.of(name);
            let known = before.and_then(|before| before.remote(&source, timing));
            let name = name.issuer.clone();
            known.map_or_else(|| Remote::start(name, source, timing).map(Arc::new), Ok)
        };
        let issuers = settings.iter().map(|it| Issuer::new(it, remote));
        Ok(Self {
            issuers: issuers.collect::<Result<_, _>>()?,
            cache: Cache::default(),
            timing,
        })
    }

    pub(super) fn timing(&self) -> Timing {
        self.timing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// What a token gives that came over a connection with this certificate. A token that was checked before
    /// costs no signature again, unless the keys of its issuer have changed since.
    pub(super) async fn verify(
        &self,
        digest: &Digest,
        text: &str,
        thumbprint: Option<&str>,
    ) -> Result<Vouched, Reason> {
        let now = seconds_since_1970();
        if let Some(vouched) = self.checked_before(digest, now) {
            vouched.passed.fits(thumbprint)?;
            return Ok(vouched);
        }
        let token = Token::parse(text)?;
        let mut refusal = None;
        for (index, issuer) in self.issuers.iter().enumerate() {
            if !issuer.rule.may_concern(&token) {
                continue;
            }
            match issuer.check(&token, now).await {
                Ok(Checked { passed, generation }) => {
                    let passed = Arc::new(passed);
                    let entry = Entry {
                        passed: Arc::clone(&passed),
                        issuer: index,
                        generation,
                    };
                    self.cache.keep(*digest, entry);
                    passed.fits(thumbprint)?;
                    return Ok(Vouched { passed, index });
                }
                // The issuer with whom the token came furthest says best what is wrong.
                Err(reason) => refusal = refusal.max(Some(reason)),
            }
        }
        Err(refusal.unwrap_or(Reason::Issuer))
    }

    pub(super) fn health(&self) -> Vec<IssuerHealth> {
        let health = self.issuers.iter().filter_map(Issuer::health);
        health.collect()
    }

    /// What is trusted in the tokens of an issuer.
    pub(super) fn trust(&self, index: usize) -> Option<Trust> {
        let issuer = self.issuers.get(index)?;
        Some(Trust(Arc::clone(&issuer.settings)))
    }

    /// Whether the same tokens are trusted that were trusted then.
    pub(super) fn trusted(&self, Trust(then): &Trust) -> Option<usize> {
        let alike = |now: &JwtSettings| JwtSettings {
            roles: then.roles.clone(),
            refresh: then.refresh,
            max_stale: then.max_stale,
            ..now.clone()
        };
        let mut issuers = self.issuers.iter();
        issuers.position(|it| alike(&it.settings) == **then)
    }

    fn remote(&self, source: &Source, timing: Timing) -> Option<Arc<Remote>> {
        self.issuers.iter().find_map(|issuer| match &issuer.keys {
            Keys::Remote(remote) if remote.source() == source && remote.timing() == timing => {
                Some(Arc::clone(remote))
            }
            Keys::Remote(_) | Keys::Fixed(_) => None,
        })
    }

    /// What a token gives that was found right before and still is.
    pub(super) fn checked_before(&self, digest: &Digest, now: i64) -> Option<Vouched> {
        let entry = self.cache.get(digest)?;
        let index = entry.issuer;
        let generation = self.issuers.get(index)?.generation()?;
        let passed = entry.passed;
        (now < passed.until && generation == entry.generation).then_some(Vouched { passed, index })
    }
}

/// A token that an issuer vouches for.
#[derive(Debug)]
pub(super) struct Vouched {
    pub(super) passed: Arc<Passed>,
    /// The place of the issuer in the settings.
    pub(super) index: usize,
}

/// Which tokens of an issuer are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trust(Arc<JwtSettings>);

#[derive(Debug)]
struct Issuer {
    settings: Arc<JwtSettings>,
    rule: Rule,
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    Fixed(Key),
    Remote(Arc<Remote>),
}

/// What a token gave, and by which generation of keys.
struct Checked {
    passed: Passed,
    generation: u64,
}

impl Issuer {
    fn new(
        settings: &JwtSettings,
        remote: impl Fn(&JwtSettings, Source) -> Result<Arc<Remote>, IdentityError>,
    ) -> Result<Self, IdentityError> {
        let issuer = shown_issuer(settings.issuer.as_deref());
        let keys = match &settings.keys {
            JwtKeys::Secret(secret) if secret.len() < LEAST_SECRET => {
                let least = LEAST_SECRET;
                return Err(IdentityError::WeakSecret { issuer, least });
            }
            JwtKeys::Secret(secret) => Keys::Fixed(Key::secret(secret)),
            JwtKeys::PublicKey(pem) => Keys::Fixed(
                Key::public(pem).map_err(|why| IdentityError::PublicKey { issuer, why })?,
            ),
            JwtKeys::Jwks(url) => Keys::Remote(remote(settings, Source::KeySet(address(url)?))?),
            JwtKeys::Discovery => {
                let name = settings.issuer.clone();
                let name = name.ok_or(IdentityError::DiscoveryWithoutIssuer)?;
                let url = address(&name)?;
                Keys::Remote(remote(settings, Source::Issuer { name, url })?)
            }
        };
        let rule = Rule::new(settings);
        let settings = Arc::new(settings.clone());
        Ok(Self {
            settings,
            rule,
            keys,
        })
    }

    async fn check(&self, token: &Token<'_>, now: i64) -> Result<Checked, Reason> {
        let (verified, generation) = match &self.keys {
            Keys::Fixed(key) => (token.verify(key)?, 0),
            Keys::Remote(remote) => by_remote_key(remote, token).await?,
        };
        let passed = self.rule.check(&verified, now)?;
        Ok(Checked { passed, generation })
    }

    /// Which keys are in force; none where there are none.
    fn generation(&self) -> Option<u64> {
        match &self.keys {
            Keys::Fixed(_) => Some(0),
            Keys::Remote(remote) => remote.keys().map(|keys| keys.generation),
        }
    }

    fn health(&self) -> Option<IssuerHealth> {
        match &self.keys {
            Keys::Fixed(_) => None,
            Keys::Remote(remote) => Some(remote.health()),
        }
    }
}

async fn by_remote_key<'t>(
    remote: &Remote,
    token: &'t Token<'_>,
) -> Result<(Verified<'t>, u64), Reason> {
    let keys = match remote.keys() {
        Some(keys) => keys,
        None => remote.refresh().await.ok_or(Reason::Unavailable)?,
    };
    let first = by_any(&keys, token);
    let may_be_rotated = match first {
        Err(Reason::UnknownKey) => true,
        // Without a name, a wrong signature may be one by a new key.
        Err(Reason::Signature) => !token.names_key(),
        _ => false,
    };
    if !may_be_rotated {
        return first;
    }
    let newer = remote.refresh().await.ok_or(Reason::Unavailable)?;
    if newer.generation == keys.generation {
        return first;
    }
    by_any(&newer, token)
}

fn by_any<'t>(keys: &KeySet, token: &'t Token<'_>) -> Result<(Verified<'t>, u64), Reason> {
    let mut refusal = Reason::UnknownKey;
    for key in keys.keys.iter().filter(|key| token.may_be_signed_by(key)) {
        match token.verify(key) {
            Ok(verified) => return Ok((verified, keys.generation)),
            Err(reason) => refusal = refusal.max(reason),
        }
    }
    Err(refusal)
}

fn address(text: &str) -> Result<Url, IdentityError> {
    let Ok(url) = Url::parse(text) else {
        let url = text.to_owned();
        return Err(IdentityError::Address { url });
    };
    let shown = shown(&url);
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
