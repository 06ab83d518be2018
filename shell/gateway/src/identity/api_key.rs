//! API keys of callers. The gateway stores only their digests.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use toolwarden_settings::ApiKeySettings;

use super::error::IdentityError;

/// The prefix of generated keys, so that leaked keys are recognized.
const PREFIX: &str = "tw_";

/// A new key, to be shown once and not stored.
pub struct ApiKey(String);

impl ApiKey {
    /// Generates a key of 256 random bits.
    ///
    /// # Errors
    /// The system provides no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits)?;
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits))))
    }

    /// The key itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The form that the settings contain: its SHA-256 digest, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        Self::digest_of(&self.0)
    }

    /// The digest of a key that was generated elsewhere.
    #[must_use]
    pub fn digest_of(key: &str) -> String {
        let Digest(bytes) = Digest::of(key);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The SHA-256 digest of a key or token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(credential: &str) -> Self {
        Self(Sha256::digest(credential.as_bytes()).into())
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> = text.chars().map(hex_digit).collect();
        let digits = digits?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        if !rest.is_empty() {
            return None;
        }
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

/// The digests of all keys, each with its principal.
#[derive(Debug)]
pub(super) struct ApiKeyTable(Vec<(Digest, Arc<str>)>);

impl ApiKeyTable {
    pub(super) fn new(settings: &[ApiKeySettings]) -> Result<Self, IdentityError> {
        let mut known: Vec<(Digest, Arc<str>)> = Vec::with_capacity(settings.len());
        for ApiKeySettings { principal, sha256 } in settings {
            let digest = Digest::from_hex(sha256).ok_or_else(|| IdentityError::KeyDigest {
                principal: principal.clone(),
            })?;
            if let Some((_, other)) = known.iter().find(|(same, _)| *same == digest) {
                return Err(IdentityError::SharedKey {
                    one: other.to_string(),
                    other: principal.clone(),
                });
            }
            known.push((digest, Arc::from(principal.as_str())));
        }
        Ok(Self(known))
    }

    /// The principal of a key. All keys are compared in full, so that the duration reveals nothing.
    pub(super) fn find(&self, digest: &Digest) -> Option<Arc<str>> {
        let mut found = None;
        for (known, principal) in &self.0 {
            if bool::from(known.0.ct_eq(&digest.0)) {
                found = Some(principal);
            }
        }
        found.cloned()
    }
}

fn hex_digit(character: char) -> Option<u8> {
    character.to_digit(16).and_then(|it| u8::try_from(it).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(principal: &str, sha256: &str) -> ApiKeySettings {
        ApiKeySettings {
            principal: principal.to_owned(),
            sha256: sha256.to_owned(),
        }
    }

    #[test]
    fn a_key_is_found_by_its_digest() {
        // Digest of `abc`, from FIPS 180-4.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ApiKey::digest_of("abc"), abc);
        let ring = ApiKeyTable::new(&[
            settings("one", &abc.to_uppercase()),
            settings("two", &ApiKey::digest_of("xyz")),
        ])
        .unwrap();
        let found = ["abc", "xyz", "ab", "", abc].map(|key| ring.find(&Digest::of(key)));
        let expected = [Some("one"), Some("two"), None, None, None];
        assert_eq!(found, expected.map(|name| name.map(Arc::from)));
    }

    #[test]
    fn fresh_keys_differ_and_are_not_shown() {
        let (one, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert!(one.reveal().starts_with("tw_"));
        assert_eq!(one.reveal().len(), 3 + 43);
        assert_eq!(one.digest(), ApiKey::digest_of(one.reveal()));
        assert_eq!(format!("{one:?}"), "ApiKey(…)");
        let ring = ApiKeyTable::new(&[settings("one", &one.digest())]).unwrap();
        assert_eq!(format!("{ring:?}"), r#"ApiKeyTable([(Digest(…), "one")])"#);
    }

    #[test]
    fn digests_have_to_be_digests_and_each_somebodys_own() {
        let abc = ApiKey::digest_of("abc");
        for (keys, message) in [
            (
                vec![settings("one", "abc")],
                "the key of `one` has to be a SHA-256 digest: 64 hexadecimal digits",
            ),
            (
                vec![settings("one", &format!("{abc}0"))],
                "the key of `one` has to be a SHA-256 digest: 64 hexadecimal digits",
            ),
            (
                vec![settings("one", &abc), settings("two", &abc)],
                "`one` and `two` have the same key",
            ),
        ] {
            assert_eq!(ApiKeyTable::new(&keys).unwrap_err().to_string(), message);
        }
    }
}
