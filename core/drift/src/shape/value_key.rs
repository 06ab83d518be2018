use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// The secret of an installation, under which values are hashed.
#[derive(Clone, Copy)]
pub struct ValueKey {
    secret: [u8; 16],
    id: KeyId,
}

/// The identifier of a [`ValueKey`]; it reveals nothing about the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(u64);

/// The hash of a value under a [`ValueKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueHash(u64);

/// Six characters of base64 in a file; two of 32 values collide with a probability of 1 in 10⁸.
const VALUE_BITS: u32 = 36;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
pub(super) const HASH_CHARS: usize = 6;

impl ValueKey {
    /// Creates the key from these secret bytes.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        let mut hasher = SipHasher13::new_with_key(&secret);
        hasher.write(b"k");
        Self {
            secret,
            id: KeyId(hasher.finish() >> 16),
        }
    }

    /// The identifier of the key.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The hash of a value; the tag distinguishes the text `1` from the number 1.
    pub(super) fn hash(&self, tag: u8, bytes: &[u8]) -> ValueHash {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write_u8(tag);
        hasher.write(bytes);
        ValueHash(hasher.finish() >> (u64::BITS - VALUE_BITS))
    }
}

impl fmt::Debug for ValueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl KeyId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = Self(u64::from_str_radix(text, 16).ok()?);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in (0..HASH_CHARS).rev() {
            let digit = (self.0 >> (place * 6)) & 63;
            let letter = usize::try_from(digit)
                .ok()
                .and_then(|digit| ALPHABET.get(digit));
            write!(f, "{}", char::from(*letter.unwrap_or(&b'A')))?;
        }
        Ok(())
    }
}

impl ValueHash {
    /// The digest of no values.
    pub(super) const NONE: Self = Self(0);

    /// The digest of these values and others, in any order.
    pub(super) const fn combined(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0) & ((1 << VALUE_BITS) - 1))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() != HASH_CHARS {
            return None;
        }
        let mut hash = 0;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|letter| *letter == byte)?;
            hash = hash << 6 | u64::try_from(digit).ok()?;
        }
        Some(Self(hash))
    }
}

/// The hash of a path, from its parent's hash and its last step. It decides which paths a full shape
/// keeps, so it is the same for every installation.
pub(super) fn path_hash(parent: u64, step: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(parent, 0x7368_6170_6520_7631);
    hasher.write(step.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_ids_are_read_as_written() {
        let key = ValueKey::new([7; 16]);
        for text in ["", "a", "active", "1"] {
            let hash = key.hash(b's', text.as_bytes());
            assert_eq!(ValueHash::parse(&hash.to_string()), Some(hash));
        }
        assert_eq!(KeyId::parse(&key.id().to_string()), Some(key.id()));
        assert_ne!(key.id(), ValueKey::new([8; 16]).id());
        assert_ne!(key.hash(b's', b"1"), key.hash(b'i', b"1"));
        assert_eq!(ValueHash::parse("AAAA"), None);
        assert_eq!(ValueHash::parse("AAAA=A"), None);
        assert_eq!(KeyId::parse("zz"), None);
    }

    #[test]
    fn the_secret_is_not_printed() {
        let text = format!("{:?}", ValueKey::new([7; 16]));
        assert!(!text.contains("secret"), "{text}");
    }
}
