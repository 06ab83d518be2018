//! A cache of verified tokens.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::claims::ValidToken;
use crate::identity::api_key::Digest;

/// The most cached tokens; then the cache is emptied, because tokens are quickly verified again.
const MAX_TOKENS: usize = 1_024;

/// Verified tokens by digest.
#[derive(Default)]
pub(super) struct TokenCache(Mutex<HashMap<Digest, CachedToken>>);

/// A verified token.
#[derive(Clone, Debug)]
pub(super) struct CachedToken {
    /// What the token grants.
    pub(super) token: Arc<ValidToken>,
    /// The index of the issuer whose keys verified it.
    pub(super) issuer: usize,
    /// The generation of these keys.
    pub(super) generation: u64,
}

impl TokenCache {
    pub(super) fn get(&self, digest: &Digest) -> Option<CachedToken> {
        // The map changes in one step, so it is consistent after a panic.
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).cloned()
    }

    pub(super) fn insert(&self, digest: Digest, entry: CachedToken) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TOKENS {
            known.clear();
        }
        known.insert(digest, entry);
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded() {
        let cache = TokenCache::default();
        for number in 0..10_000 {
            let passed = ValidToken {
                principal: Arc::from("alice"),
                expires_at: 0,
                bound_to: None,
                claims: Arc::default(),
            };
            let entry = CachedToken {
                token: Arc::new(passed),
                issuer: 0,
                generation: 0,
            };
            let digest = Digest::of(&number.to_string());
            cache.insert(digest, entry);
            assert!(cache.get(&digest).is_some());
            assert!(cache.0.lock().unwrap().len() <= MAX_TOKENS);
        }
    }
}
