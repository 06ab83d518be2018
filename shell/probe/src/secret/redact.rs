use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::Key;

/// What stands in place of a secret.
pub(super) const MASK: &[u8] = b"***";

/// A shorter key is no secret, and masking it would tear ordinary words apart.
const SHORTEST_KEY: usize = 6;

/// A shorter piece of base64 could be anything.
const SHORTEST_BASE64: usize = 7;

/// Four levels of escaping, and a bound on how far a run of backslashes is followed.
const MOST_BACKSLASHES: usize = 16;

/// How many marks may stand between the name of a header and its value.
const MOST_SEPARATORS: usize = 12;

/// Masks keys wherever they turn up: in bodies that echo them, in errors, in captures.
///
/// A key is found as it is, percent-encoded, JSON-escaped, in any mix of these, whatever the case of
/// its letters, in hexadecimal, and inside base64.
/// Bearer tokens, and what follows the name of an authorizing header, are masked although nobody
/// told us the key: a proxy may echo one of its own.
#[derive(Clone)]
pub struct Redactor {
    keys: Vec<Key>,
    /// How the keys read in base64, the longest first.
    encoded: Vec<Vec<u8>>,
    /// How the keys read in hexadecimal.
    hexadecimal: Vec<Vec<u8>>,
    /// Which bytes a secret may begin with, so that most places need no look.
    starts: Vec<bool>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// A redactor of all keys in use.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let mut keys: Vec<Key> = keys
            .into_iter()
            .filter(|key| key.expose().chars().count() >= SHORTEST_KEY)
            .collect();
        // A key may begin with another one.
        keys.sort_by_key(|key| std::cmp::Reverse(key.expose().len()));
        keys.dedup();
        let mut encoded: Vec<_> = keys.iter().flat_map(base64_forms).collect();
        encoded.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let hexadecimal: Vec<_> = keys.iter().map(hexadecimal).collect();
        let mut starts = vec![false; 256];
        let firsts = keys.iter().filter_map(|key| key.expose().bytes().next());
        let firsts = firsts.chain(hexadecimal.iter().filter_map(|form| form.first().copied()));
        let firsts = firsts.flat_map(|it| [it.to_ascii_lowercase(), it.to_ascii_uppercase()]);
        let firsts = firsts.chain(encoded.iter().filter_map(|form| form.first().copied()));
        for byte in firsts.chain(*br"aAbBs%\") {
            if let Some(may) = starts.get_mut(usize::from(byte)) {
                *may = true;
            }
        }
        Self {
            keys,
            encoded,
            hexadecimal,
            starts,
        }
    }

    /// Whether there is no key to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The text with every secret masked.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> String {
        let redacted = self.redact_bytes(text.as_bytes());
        // Whole characters are masked, so this never has to repair anything.
        String::from_utf8_lossy(&redacted).into_owned()
    }

    /// The bytes with every secret masked.
    #[must_use]
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        for found in self.places(bytes, Self::secret) {
            out.extend_from_slice(bytes.get(copied..found.start).unwrap_or_default());
            out.extend_from_slice(MASK);
            copied = found.end;
        }
        out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
        out
    }

    /// Where keys are that we were told, in order.
    pub(super) fn keys_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        self.places(bytes, Self::key)
    }

    fn places(
        &self,
        bytes: &[u8],
        look: impl Fn(&Self, &[u8], usize) -> Option<Secret>,
    ) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let is_start = self.starts.get(usize::from(*byte)).copied();
            let secret = match is_start.unwrap_or_default() {
                true => look(self, bytes, at),
                false => None,
            };
            let Some(Secret { kept, length }) = secret else {
                at += 1;
                continue;
            };
            found.push(at + kept..at + length);
            at += length;
        }
        found
    }

    /// The secret that begins at a place.
    fn secret(&self, all: &[u8], at: usize) -> Option<Secret> {
        let key = self.key(all, at);
        let previous = at.checked_sub(1).and_then(|before| all.get(before));
        if key.is_some() || previous.is_some_and(u8::is_ascii_alphanumeric) {
            return key;
        }
        let bytes = all.get(at..)?;
        match bytes.first()? {
            b'a' | b'A' => after_header(bytes),
            b'b' | b'B' => after_bearer(bytes),
            b's' => lone_key(bytes),
            _ => None,
        }
    }

    /// The key that begins at a place.
    fn key(&self, all: &[u8], at: usize) -> Option<Secret> {
        let bytes = all.get(at..)?;
        let mut keys = self.keys.iter();
        let whole = |length| Secret { kept: 0, length };
        if let Some(length) = keys.find_map(|key| spelled(bytes, key.expose().as_bytes())) {
            return Some(whole(length));
        }
        let mut encoded = self.encoded.iter();
        if let Some(form) = encoded.find(|form| bytes.starts_with(form)) {
            return Some(whole(form.len()));
        }
        let mut hexadecimal = self.hexadecimal.iter();
        let form = hexadecimal.find(|form| begins(bytes, form))?;
        Some(whole(form.len()))
    }
}

/// A secret at the beginning of some bytes.
struct Secret {
    /// How many bytes before it stay.
    kept: usize,
    /// Where it ends.
    length: usize,
}

/// How the key reads inside base64 of a longer text, whichever of three bytes it begins at; only
/// characters that hold nothing but the key.
fn base64_forms(key: &Key) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend_from_slice(key.expose().as_bytes());
        let begin = (before * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            let form = text.as_bytes().get(begin..end).unwrap_or_default();
            if form.len() >= SHORTEST_BASE64 {
                forms.push(form.to_vec());
            }
        }
    }
    forms.dedup();
    forms
}

fn hexadecimal(key: &Key) -> Vec<u8> {
    let digits = key.expose().bytes().map(|it| format!("{it:02x}"));
    digits.collect::<String>().into_bytes()
}

/// How long the key is at the beginning of the bytes, each of its bytes plain or escaped, each of
/// its letters in either case.
fn spelled(bytes: &[u8], key: &[u8]) -> Option<usize> {
    if begins(bytes, key) {
        return Some(key.len());
    }
    let mut at = 0;
    let mut wanted = key;
    while let Some(first) = wanted.first() {
        let rest = bytes.get(at..)?;
        if let Some(length) = escaped(rest, *first) {
            at += length;
            wanted = wanted.get(1..)?;
            continue;
        }
        // Each level of escaping doubles backslashes, and adds some before quotes and slashes.
        let (found, expected) = (backslashes(rest), backslashes(wanted));
        if found < expected {
            return None;
        }
        wanted = wanted.get(expected..)?;
        let Some(next) = wanted.first() else {
            return Some(at + found.min(2 * expected));
        };
        let after = *rest.get(found)?;
        let lone = found == 0 || expected > 0 || matches!(after, b'/' | b'"');
        if !lone || !after.eq_ignore_ascii_case(next) {
            return None;
        }
        at += found + 1;
        wanted = wanted.get(1..)?;
    }
    Some(at)
}

/// How long an escape of the byte is at the beginning: `%2F` or `\u002f`, also where the backslash
/// is escaped itself.
fn escaped(bytes: &[u8], wanted: u8) -> Option<usize> {
    let is_wanted = |code: u32| u8::try_from(code).is_ok_and(|it| it.eq_ignore_ascii_case(&wanted));
    if let Some(digits) = bytes.strip_prefix(b"%") {
        return is_wanted(hex(digits.get(..2)?)?).then_some(3);
    }
    let slashes = backslashes(bytes);
    let digits = bytes.get(slashes..)?.strip_prefix(b"u")?.get(..4)?;
    (slashes > 0 && is_wanted(hex(digits)?)).then_some(slashes + 5)
}

fn backslashes(bytes: &[u8]) -> usize {
    let escapes = bytes.iter().take_while(|it| **it == b'\\');
    escapes.take(MOST_BACKSLASHES).count()
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(text, 16).ok()
}

/// `Authorization: Bearer …` and `api-key: …`, quoted or not.
fn after_header(bytes: &[u8]) -> Option<Secret> {
    let names: [&[u8]; 4] = [b"authorization", b"api-key", b"api_key", b"apikey"];
    let name = names.into_iter().find(|it| begins(bytes, it))?.len();
    let rest = bytes.get(name..)?;
    let is_separator = |it: &&u8| b" \t\"'\\:=[".contains(it);
    let gap = rest.iter().take_while(is_separator).count();
    if gap == 0 || gap > MOST_SEPARATORS {
        return None;
    }
    let value = rest.get(gap..)?;
    let scheme = [b"bearer ".as_slice(), b"basic ", b"token "]
        .into_iter()
        .find(|it| begins(value, it));
    let kept = name + gap + scheme.map_or(0, <[u8]>::len);
    let value = bytes.get(kept..)?;
    if scheme.is_none() && !begins(value, b"sk-") {
        return None;
    }
    let token = token(value);
    (token.len() >= SHORTEST_KEY).then_some(Secret {
        kept,
        length: kept + token.len(),
    })
}

/// `Bearer …`, unless what follows is an ordinary word.
fn after_bearer(bytes: &[u8]) -> Option<Secret> {
    let scheme = [b"bearer ".as_slice(), b"bearer%20", b"bearer+"]
        .into_iter()
        .find(|it| begins(bytes, it))?;
    let token = token(bytes.get(scheme.len()..)?);
    let is_word = token.len() < 20 && !token.iter().any(u8::is_ascii_digit);
    let secret = token.len() >= SHORTEST_KEY && (!is_word || begins(token, b"sk-"));
    secret.then_some(Secret {
        kept: scheme.len(),
        length: scheme.len() + token.len(),
    })
}

/// `sk-…` with as many characters as a key has.
fn lone_key(bytes: &[u8]) -> Option<Secret> {
    const SHORTEST: usize = 20;
    const SURE: usize = 40;
    if !bytes.starts_with(b"sk-") {
        return None;
    }
    let token = token(bytes);
    let has_digit = || token.iter().any(u8::is_ascii_digit);
    // INVARIANT: what is not masked is short, so that no body makes us look at it over and over.
    (token.len() >= SURE || (token.len() >= SHORTEST && has_digit())).then_some(Secret {
        kept: 0,
        length: token.len(),
    })
}

/// The characters a token may have.
fn token(bytes: &[u8]) -> &[u8] {
    let length = bytes
        .iter()
        .take_while(|it| it.is_ascii_alphanumeric() || b"-._~+/=*".contains(it))
        .count();
    bytes.get(..length).unwrap_or_default()
}

fn begins(bytes: &[u8], word: &[u8]) -> bool {
    let start = bytes.get(..word.len());
    start.is_some_and(|it| it.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor(keys: &[&str]) -> Redactor {
        Redactor::new(keys.iter().filter_map(|key| Key::new(key)))
    }

    #[test]
    fn a_known_key_is_masked_in_every_spelling() {
        let redactor = redactor(&[r#"k/ey+"é\z"#, "plain-key"]);
        for (text, redacted) in [
            (r#"<k/ey+"é\z>"#, "<***>"),
            (r#"<k\/ey+\"é\\z>"#, "<***>"),
            (r#"<k\\/ey\u002b\\\"é\\\\z>"#, "<***>"),
            ("<k%2Fey%2b%22%c3%A9%5cz>", "<***>"),
            ("plain-keyplain-key", "******"),
            ("PLAIN-KEY Plain\\u002dKey plain-kez", "*** *** plain-kez"),
            ("<706c61696e2d6b6579706C61696E2D6B6579>", "<******>"),
            ("?key=plain%2Dkey&x", "?key=***&x"),
        ] {
            assert_eq!(redactor.redact_text(text), redacted, "{text}");
        }
        assert_eq!(format!("{redactor:?}").matches("***").count(), 2);
        assert!(!format!("{redactor:?}").contains("plain"));
    }

    #[test]
    fn a_key_is_masked_inside_base64() {
        let redactor = redactor(&["my-secret-key"]);
        for before in ["", "a", "us", "usr", "Bearer "] {
            for after in ["", "x", "xy"] {
                let text = STANDARD_NO_PAD.encode(format!("{before}my-secret-key{after}"));
                let redacted = redactor.redact_text(&text);
                assert!(redacted.contains("***"), "{before} {after}");
                let left = redacted.replace("***", "");
                assert!(
                    left.len() <= text.len() - 15,
                    "{before} {after}: {redacted}"
                );
            }
        }
    }

    #[test]
    fn what_authorizes_is_masked_without_knowing_the_key() {
        let redactor = redactor(&[]);
        for (text, redacted) in [
            ("Authorization: Bearer abcdef", "Authorization: Bearer ***"),
            (
                r#"{"authorization": "Bearer sk-test-key-123", "a": 1}"#,
                r#"{"authorization": "Bearer ***", "a": 1}"#,
            ),
            (
                r#"{\"Authorization\":[\"Basic dXNlcjpw\"]}"#,
                r#"{\"Authorization\":[\"Basic ***\"]}"#,
            ),
            ("x-api-key: sk-ant-secret", "x-api-key: ***"),
            ("got Bearer sk-test-key-123.", "got Bearer ***"),
            ("bearer%20abc123def", "bearer%20***"),
            (
                "Incorrect API key provided: sk-proj-0123456789abcdef. See",
                "Incorrect API key provided: *** See",
            ),
            (
                "missing bearer authentication",
                "missing bearer authentication",
            ),
            ("Bearer token required", "Bearer token required"),
            ("authorization: required", "authorization: required"),
            ("authorization of payments", "authorization of payments"),
            (
                "task-force-0123456789-abcdef",
                "task-force-0123456789-abcdef",
            ),
            ("sk-learn", "sk-learn"),
        ] {
            assert_eq!(redactor.redact_text(text), redacted, "{text}");
        }
    }

    #[test]
    fn a_key_that_is_no_secret_masks_nothing() {
        let redactor = redactor(&["x", "none", "EMPTY"]);
        let text = "EMPTY x none of it";
        assert_eq!(redactor.redact_text(text), text);
    }

    #[test]
    fn no_body_takes_more_than_one_look_at_each_place() {
        let redactor = redactor(&["\\key\\\\of/backslashes"]);
        for piece in [
            "\\",
            "sk-=",
            "sk-a",
            "bearer+=",
            "authorization=",
            "%5c",
            "\\u005",
        ] {
            let text = piece.repeat(200_000);
            let redacted = redactor.redact_text(&text);
            assert!(redacted.len() <= text.len(), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn no_key_is_left(key in "[ -~é]{6,40}", before in ".{0,20}", after in ".{0,20}") {
            prop_assume!(key.trim().len() >= 6);
            let Some(secret) = Key::new(&key) else { return Ok(()) };
            let redactor = Redactor::new([secret.clone()]);
            for form in [secret.expose().to_owned(), serde_json::json!(secret.expose()).to_string()] {
                let text = format!("{before}{form}{after}");
                let redacted = redactor.redact_text(&text);
                prop_assert!(!redacted.contains(&form), "{}", redacted);
            }
        }

        #[test]
        fn texts_without_a_key_stay(text in "[a-z ,.:{}\"]{0,60}") {
            let redactor = Redactor::new(Key::new("sk-0123456789abcdef"));
            prop_assert_eq!(redactor.redact_text(&text), text);
        }
    }
}
