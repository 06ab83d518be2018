use std::hash::{BuildHasherDefault, Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

/// The key of a rate window: whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateKey<'n> {
    /// The tool; `None` counts the calls of all tools.
    pub tool: Option<&'n str>,
    /// The principal; `None` counts the calls of all principals.
    pub principal: Option<&'n str>,
}

impl<'n> RateKey<'n> {
    /// The calls of a tool by all principals.
    #[must_use]
    pub const fn of_tool(tool: &'n str) -> Self {
        Self {
            tool: Some(tool),
            principal: None,
        }
    }

    /// The calls of a tool that one principal makes.
    #[must_use]
    pub const fn of_agent(tool: &'n str, principal: &'n str) -> Self {
        Self {
            tool: Some(tool),
            principal: Some(principal),
        }
    }
}

/// The id of a [`Key`]: 16 bytes, regardless of the length of the names.
///
/// As good as the names: among ten million keys the odds that any two share an id are 1 in 10^24. An
/// attacker cannot search for a collision, because the ids depend on a secret that never leaves the
/// process. Two keys that collide would share their limit, not evade it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateKeyHash {
    place: u64,
    shard: u64,
}

impl RateKeyHash {
    /// The index of its shard; `shards` is a power of two.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits are all that is wanted"
    )]
    pub(super) const fn shard(self, shards: usize) -> usize {
        self.shard as usize & (shards - 1)
    }
}

impl Hash for RateKeyHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.place);
    }
}

/// Creates ids with its own secret.
pub(super) struct RateKeyHasher(SipHasher13);

impl RateKeyHasher {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let secret = (getrandom::u64()?, getrandom::u64()?);
        Ok(Self(SipHasher13::new_with_keys(secret.0, secret.1)))
    }

    pub(super) fn id(&self, key: RateKey<'_>) -> RateKeyHash {
        let RateKey { tool, principal } = key;
        // The hash covers which names are given and where the first ends, so no two keys hash the same
        // bytes.
        let (first, second) = (tool.unwrap_or_default(), principal.unwrap_or_default());
        let names = u64::from(tool.is_some()) << 1 | u64::from(principal.is_some());
        let mut hasher = self.0;
        hasher.write_u64((first.len() as u64) << 2 | names);
        hasher.write(first.as_bytes());
        hasher.write(second.as_bytes());
        let hash = hasher.finish128();
        RateKeyHash {
            place: hash.h1,
            shard: hash.h2,
        }
    }
}

impl std::fmt::Debug for RateKeyHasher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keyed(secret)")
    }
}

/// A hasher that passes on the hash that an [`RateKeyHash`] already is.
#[derive(Debug, Default)]
pub(super) struct PassthroughHasher(u64);

pub(super) type BuildPassthroughHasher = BuildHasherDefault<PassthroughHasher>;

impl Hasher for PassthroughHasher {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids never reach this branch; other input would still be hashed, but badly.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
