//! Tokens that were found right before.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::claims::Passed;
use crate::identity::api_key::Digest;

/// The most tokens that are remembered; then all are forgotten, for they are quickly checked again.
const MOST: usize = 1_024;

/// Checked tokens by digest.
#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<Digest, Entry>>);

/// A checked token.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// What it gives.
    pub(super) passed: Arc<Passed>,
    /// By whose keys it was checked: the place of the issuer.
    pub(super) issuer: usize,
    /// By which generation of these keys.
    pub(super) generation: u64,
}

impl Cache {
    pub(super) fn get(&self, digest: &Digest) -> Option<Entry> {
        // A map that is changed in one step is whole after a panic.
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).cloned()
    }

    pub(super) fn keep(&self, digest: Digest, entry: Entry) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(digest, entry);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded() {
        let cache = Cache::default();
        for number in 0..10_000 {
            let passed = Passed {
                principal: Arc::from("alice"),
                until: 0,
                bound_to: None,
                claims: Arc::default(),
            };
            let entry = Entry {
                passed: Arc::new(passed),
                issuer: 0,
                generation: 0,
            };
            let digest = Digest::of(&number.to_string());
            cache.keep(digest, entry);
            assert!(cache.get(&digest).is_some());
            assert!(cache.0.lock().unwrap().len() <= MOST);
        }
    }
}
