use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::ApiKey;
use super::html_escape::html_escape;

/// The text that replaces a secret.
pub(super) const MASK: &[u8] = b"***";

/// A shorter key is not a secret, and masking it would break ordinary words.
const MIN_KEY_LENGTH: usize = 6;

/// A shorter piece of base64 could be anything.
const MIN_BASE64_LENGTH: usize = 7;

/// Four levels of escaping, and the limit for following a run of backslashes.
const MAX_BACKSLASHES: usize = 16;

/// How many separators may be between the name of a header and its value.
const MAX_SEPARATORS: usize = 12;

/// Masks keys wherever they appear: in bodies that echo them, in errors, in captures.
///
/// A key is found in plain text, percent-encoded, HTML- or JSON-escaped, in any mix of these, in upper or
/// lower case, in hexadecimal, and inside base64. Bearer tokens, and values that follow the name of
/// an authorizing header, are masked even if the key is unknown: a proxy may echo its own.
#[derive(Clone)]
pub struct Redactor {
    keys: Vec<ApiKey>,
    /// The base64 forms of the keys, longest first.
    encoded: Vec<Vec<u8>>,
    /// The hexadecimal forms of the keys.
    hexadecimal: Vec<Vec<u8>>,
    /// The bytes that a secret may begin with, so that most positions need no further check.
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
    /// A redactor for all keys in use.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        let mut keys: Vec<ApiKey> = keys
            .into_iter()
            .filter(|key| key.expose().chars().count() >= MIN_KEY_LENGTH)
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
        for byte in firsts.chain(*br"aAbBs%\&") {
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

    /// Whether there are no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The text with every secret masked.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> String {
        let redacted = self.redact_bytes(text.as_bytes());
        // Only whole characters are masked, so the result is always valid UTF-8.
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

    /// The positions of known keys, in order.
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

    /// The secret that begins at a position.
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

    /// The key that begins at a position.
    fn key(&self, all: &[u8], at: usize) -> Option<Secret> {
        let bytes = all.get(at..)?;
        let mut keys = self.keys.iter();
        let whole = |length| Secret { kept: 0, length };
        if let Some(length) = keys.find_map(|key| match_key(bytes, key.expose().as_bytes())) {
            return Some(whole(length));
        }
        let mut encoded = self.encoded.iter();
        if let Some(form) = encoded.find(|form| bytes.starts_with(form)) {
            return Some(whole(form.len()));
        }
        let mut hexadecimal = self.hexadecimal.iter();
        let form = hexadecimal.find(|form| starts_with_ignore_case(bytes, form))?;
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

/// The base64 forms of the key inside a longer text, for each of the three byte alignments; only
/// characters that encode nothing but the key.
fn base64_forms(key: &ApiKey) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend_from_slice(key.expose().as_bytes());
        let begin = (before * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            let form = text.as_bytes().get(begin..end).unwrap_or_default();
            if form.len() >= MIN_BASE64_LENGTH {
                forms.push(form.to_vec());
            }
        }
    }
    forms.dedup();
    forms
}

fn hexadecimal(key: &ApiKey) -> Vec<u8> {
    let digits = key.expose().bytes().map(|it| format!("{it:02x}"));
    digits.collect::<String>().into_bytes()
}

/// The length of the key at the start of the bytes; each of its bytes may be plain or escaped, each
/// of its letters in either case.
fn match_key(bytes: &[u8], key: &[u8]) -> Option<usize> {
    if starts_with_ignore_case(bytes, key) {
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

/// The length of an escape of the byte at the start: `%2F`, `&#47;` or `\u002f`, even if the
/// backslash itself is escaped.
fn escaped(bytes: &[u8], wanted: u8) -> Option<usize> {
    let is_wanted = |code: u32| u8::try_from(code).is_ok_and(|it| it.eq_ignore_ascii_case(&wanted));
    if bytes.starts_with(b"&") {
        return html_escape(bytes, wanted);
    }
    if let Some(digits) = bytes.strip_prefix(b"%") {
        return is_wanted(hex(digits.get(..2)?)?).then_some(3);
    }
    let slashes = backslashes(bytes);
    let digits = bytes.get(slashes..)?.strip_prefix(b"u")?.get(..4)?;
    (slashes > 0 && is_wanted(hex(digits)?)).then_some(slashes + 5)
}

fn backslashes(bytes: &[u8]) -> usize {
    let escapes = bytes.iter().take_while(|it| **it == b'\\');
    escapes.take(MAX_BACKSLASHES).count()
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(text, 16).ok()
}

/// `Authorization: Bearer …` and `api-key: …`, quoted or not.
fn after_header(bytes: &[u8]) -> Option<Secret> {
    let names: [&[u8]; 4] = [b"authorization", b"api-key", b"api_key", b"apikey"];
    let name = names
        .into_iter()
        .find(|it| starts_with_ignore_case(bytes, it))?
        .len();
    let rest = bytes.get(name..)?;
    let is_separator = |it: &&u8| b" \t\"'\\:=[".contains(it);
    let gap = rest.iter().take_while(is_separator).count();
    if gap == 0 || gap > MAX_SEPARATORS {
        return None;
    }
    let value = rest.get(gap..)?;
    let scheme = [b"bearer ".as_slice(), b"basic ", b"token "]
        .into_iter()
        .find(|it| starts_with_ignore_case(value, it));
    let kept = name + gap + scheme.map_or(0, <[u8]>::len);
    let value = bytes.get(kept..)?;
    if scheme.is_none() && !starts_with_ignore_case(value, b"sk-") {
        return None;
    }
    let token = token(value);
    (token.len() >= MIN_KEY_LENGTH).then_some(Secret {
        kept,
        length: kept + token.len(),
    })
}

/// `Bearer …`, unless an ordinary word follows.
fn after_bearer(bytes: &[u8]) -> Option<Secret> {
    let scheme = [b"bearer ".as_slice(), b"bearer%20", b"bearer+"]
        .into_iter()
        .find(|it| starts_with_ignore_case(bytes, it))?;
    let token = token(bytes.get(scheme.len()..)?);
    let is_word = token.len() < 20 && !token.iter().any(u8::is_ascii_digit);
    let secret =
        token.len() >= MIN_KEY_LENGTH && (!is_word || starts_with_ignore_case(token, b"sk-"));
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
    // INVARIANT: text that is not masked is short, so that no body causes it to be scanned
    // repeatedly.
    (token.len() >= SURE || (token.len() >= SHORTEST && has_digit())).then_some(Secret {
        kept: 0,
        length: token.len(),
    })
}

/// The longest prefix that may be a token.
fn token(bytes: &[u8]) -> &[u8] {
    let length = bytes
        .iter()
        .take_while(|it| it.is_ascii_alphanumeric() || b"-._~+/=*".contains(it))
        .count();
    bytes.get(..length).unwrap_or_default()
}

fn starts_with_ignore_case(bytes: &[u8], word: &[u8]) -> bool {
    let start = bytes.get(..word.len());
    start.is_some_and(|it| it.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor(keys: &[&str]) -> Redactor {
        Redactor::new(keys.iter().filter_map(|key| ApiKey::new(key)))
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
    fn redaction_time_is_linear() {
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
            prop_assume!(key.trim().chars().count() >= MIN_KEY_LENGTH);
            let Some(secret) = ApiKey::new(&key) else { return Ok(()) };
            let redactor = Redactor::new([secret.clone()]);
            for form in [secret.expose().to_owned(), serde_json::json!(secret.expose()).to_string()] {
                let text = format!("{before}{form}{after}");
                let redacted = redactor.redact_text(&text);
                prop_assert!(!redacted.contains(&form), "{}", redacted);
            }
        }

        #[test]
        fn texts_without_a_key_stay(text in "[a-z ,.:{}\"]{0,60}") {
            let redactor = Redactor::new(ApiKey::new("sk-0123456789abcdef"));
            prop_assert_eq!(redactor.redact_text(&text), text);
        }
    }
}
