use std::hash::{BuildHasherDefault, Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'n> {
    /// The tool called; none counts the calls of all tools.
    pub tool: Option<&'n str>,
    /// The principal calling; none counts the calls of all principals.
    pub principal: Option<&'n str>,
}

impl<'n> Key<'n> {
    /// The calls of a tool, whoever makes them.
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

/// What stands for a [`Key`]: 16 bytes, however long the names are.
///
/// As good as the names: among ten million keys the odds that any two share an id are 1 in 10^24, and
/// nobody can search for two that do, as the ids depend on a secret that never leaves the process. Were
/// it to happen, the two keys would share their limit, not evade it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    place: u64,
    shard: u64,
}

impl Id {
    /// Which of `shards`, a power of two.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits are all that is wanted"
    )]
    pub(super) const fn shard(self, shards: usize) -> usize {
        self.shard as usize & (shards - 1)
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.place);
    }
}

/// Makes ids with a secret of its own.
pub(super) struct Keyed(SipHasher13);

impl Keyed {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let secret = (getrandom::u64()?, getrandom::u64()?);
        Ok(Self(SipHasher13::new_with_keys(secret.0, secret.1)))
    }

    pub(super) fn id(&self, key: Key<'_>) -> Id {
        let Key { tool, principal } = key;
        // Which names there are and where the first ends: no two keys hash the same bytes.
        let (first, second) = (tool.unwrap_or_default(), principal.unwrap_or_default());
        let names = u64::from(tool.is_some()) << 1 | u64::from(principal.is_some());
        let mut hasher = self.0;
        hasher.write_u64((first.len() as u64) << 2 | names);
        hasher.write(first.as_bytes());
        hasher.write(second.as_bytes());
        let hash = hasher.finish128();
        Id {
            place: hash.h1,
            shard: hash.h2,
        }
    }
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keyed(secret)")
    }
}

/// Passes on the hash that an [`Id`] already is.
#[derive(Debug, Default)]
pub(super) struct Unhashed(u64);

pub(super) type BuildUnhashed = BuildHasherDefault<Unhashed>;

impl Hasher for Unhashed {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids never come here; what did would still be hashed, if badly.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
