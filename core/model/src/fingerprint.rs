use std::fmt;

use sha2::{Digest, Sha256};

use crate::json::{Value, write_canonical};

/// The SHA-256 of a value's canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a JSON value; key order and number spelling do not matter.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut text = String::new();
        write_canonical(&mut text, value);
        Self::of_canonical(&text)
    }

    /// The fingerprint of a text that is canonical JSON already.
    #[must_use]
    pub fn of_canonical(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn spelling_does_not_matter_and_values_do() {
        let of = |text: &str| Fingerprint::of(&parse(text).unwrap().value);
        assert_eq!(of(r#"{"a":1.0,"b":"é"}"#), of(r#"{"b":"\u00e9","a":1}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
        assert_eq!(
            of("{}").to_string(),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
