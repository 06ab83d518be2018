use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::json::{Value, tokens, write_canonical};

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

    /// The fingerprint of a text that is already canonical JSON.
    #[must_use]
    pub fn of_canonical(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// The plain SHA-256 of any bytes, as other programs compute it.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The fingerprint of a list of parts. The tag separates it from every other use of the same
    /// bytes. Lengths are included, so that no two lists of parts have the same input.
    #[must_use]
    pub fn tagged<'p>(tag: &'p str, parts: impl IntoIterator<Item = &'p str>) -> Self {
        let mut digest = Sha256::new();
        for part in std::iter::once(tag).chain(parts) {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(digest.finalize().into())
    }

    /// The fingerprint of a JSON text as received, ignoring white space between tokens.
    ///
    /// Unlike [`Self::of`] it needs no parsed value, so it is the cheapest way to detect that
    /// nothing changed; texts that differ may still have the same meaning.
    #[must_use]
    pub fn of_wire(text: &str) -> Self {
        let mut pieces = tokens(text);
        let first = pieces.next().unwrap_or_default();
        let Some(second) = pieces.next() else {
            return Self::of_canonical(first);
        };
        // One long piece is hashed faster than many short ones.
        let mut compact = String::with_capacity(text.len());
        compact.push_str(first);
        compact.push_str(second);
        compact.extend(pieces);
        Self::of_canonical(&compact)
    }

    /// A digest that was stored as bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
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

/// A text that is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFingerprint(String);

impl fmt::Display for InvalidFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not 64 hexadecimal digits", self.0)
    }
}

impl std::error::Error for InvalidFingerprint {}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: Option<Vec<u8>> = text.chars().map(digit).collect();
        let bytes = digits.and_then(|digits| {
            let (pairs, []) = digits.as_chunks::<2>() else {
                return None;
            };
            let bytes = pairs.iter().map(|[high, low]| high << 4 | low);
            bytes.collect::<Vec<u8>>().try_into().ok()
        });
        let bytes = bytes.ok_or_else(|| InvalidFingerprint(text.to_owned()))?;
        Ok(Self(bytes))
    }
}

fn digit(character: char) -> Option<u8> {
    character.to_digit(16).and_then(|it| u8::try_from(it).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&str]| Fingerprint::tagged("t", parts.iter().copied());
        assert_ne!(of(&["a|b", "c"]), of(&["a", "b|c"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
        assert_ne!(of(&["a"]), Fingerprint::tagged("u", ["a"]));
    }

    #[test]
    fn white_space_between_tokens_is_all_that_a_text_may_differ_in() {
        let of = Fingerprint::of_wire;
        assert_eq!(of("{\"a b\": [1,\n 2]}\n"), of("{\"a b\":[1,2]}"));
        assert_ne!(of(r#"{"a b":1}"#), of(r#"{"ab":1}"#));
        assert_ne!(of(r#"{"a":1.0}"#), of(r#"{"a":1}"#));
        assert_ne!(of("[1 2]"), of("[12]"), "invalid JSON equals valid JSON");
        assert_eq!(of(r#"["\\" , "x"]"#), of(r#"["\\","x"]"#));
        assert_ne!(of(r#"["\"  ,"]"#), of(r#"["\",""]"#));
    }

    #[test]
    fn what_is_shown_can_be_read() {
        let shown = Fingerprint::of_canonical("x").to_string();
        assert_eq!(shown.parse(), Ok(Fingerprint::of_canonical("x")));
        let longer = format!("{shown}0");
        for text in ["", "12", &"0".repeat(63), &longer, &"é".repeat(32)] {
            let told = text.parse::<Fingerprint>().unwrap_err();
            assert_eq!(told, InvalidFingerprint(text.to_owned()));
        }
    }

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
