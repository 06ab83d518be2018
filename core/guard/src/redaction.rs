//! Keeps secrets out of records, and limits their size.

use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{MAX_DEPTH, Object, Pointer};
use unicode_normalization::UnicodeNormalization as _;

use crate::input::is_shallow;
use crate::policy::{ArgumentRecording, AuditRules};

/// The text that replaces a redacted value in a record.
pub const REDACTED: &str = "[redacted]";

/// The text that replaces arguments which nest too deeply.
const TOO_DEEP: &str = "[nested too deeply]";

/// The maximum length of a text in arguments that is stored whole, in bytes. Otherwise the log would store
/// every file that a call writes or sends.
const MAX_TEXT_BYTES: usize = 4_096;

/// How much of a longer text is stored.
const KEPT_PREFIX_BYTES: usize = 1_024;

/// The rules for storing arguments.
#[derive(Clone, Debug)]
pub struct Redaction {
    arguments: ArgumentRecording,
    places: Vec<Vec<String>>,
    keys: Vec<KeyPattern>,
}

/// A normalized member name; `*` stands for any text.
#[derive(Clone, Debug)]
enum KeyPattern {
    /// `*name*`, the usual form.
    Contains(Box<memchr::memmem::Finder<'static>>),
    /// The texts between the stars.
    Parts(Vec<String>),
}

impl Redaction {
    /// The redaction that the audit rules of a policy describe.
    #[must_use]
    pub fn new(rules: &AuditRules) -> Self {
        let places = rules.redact_pointers.iter();
        let keys = rules.redact_keys.iter();
        Self {
            arguments: rules.arguments,
            places: places.map(|it| it.segments().collect()).collect(),
            keys: keys.map(|it| KeyPattern::new(it)).collect(),
        }
    }

    /// Whether reasons may quote values.
    #[must_use]
    pub fn quotes_values(&self) -> bool {
        self.arguments == ArgumentRecording::Full
    }

    /// Whether texts that a tool derived from arguments may be stored.
    #[must_use]
    pub fn keeps_texts(&self) -> bool {
        self.arguments != ArgumentRecording::Digest
    }

    /// The form in which a record stores arguments: unchanged, without secrets and long texts, or as a
    /// digest.
    #[must_use]
    pub fn redact<'v>(&self, arguments: &'v Value) -> Cow<'v, Value> {
        if !is_shallow(arguments, MAX_DEPTH) {
            // No real call nests this deeply, and recursion through it would overflow the stack.
            return Cow::Owned(TOO_DEEP.into());
        }
        match self.arguments {
            ArgumentRecording::Full => Cow::Borrowed(arguments),
            // A value without a member name may be anything, so it is redacted.
            ArgumentRecording::Redacted if !arguments.is_object() => Cow::Owned(REDACTED.into()),
            ArgumentRecording::Redacted
                if self.places.is_empty() && self.is_harmless(arguments) =>
            {
                Cow::Borrowed(arguments)
            }
            ArgumentRecording::Redacted => {
                let places: Vec<&[String]> = self.places.iter().map(Vec::as_slice).collect();
                Cow::Owned(self.without_secrets(arguments, &places))
            }
            ArgumentRecording::Digest => {
                let digest = format!("sha256:{}", Fingerprint::of(arguments));
                let told = Object::from_iter([("digest".to_owned(), digest.into())]);
                Cow::Owned(Value::Object(told))
            }
        }
    }

    /// Whether no member name suggests a secret and no text is long.
    fn is_harmless(&self, value: &Value) -> bool {
        match value {
            Value::Object(members) => members
                .iter()
                .all(|(key, value)| !self.is_secret(key) && self.is_harmless(value)),
            Value::Array(items) => items.iter().all(|item| self.is_harmless(item)),
            Value::String(text) => text.len() <= MAX_TEXT_BYTES,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }

    /// A place in the arguments, cut off at the first redacted member, and whether it was cut.
    #[must_use]
    pub fn redact_pointer(&self, pointer: &Pointer) -> (Pointer, bool) {
        let mut kept = Pointer::root();
        if self.arguments == ArgumentRecording::Full {
            return (pointer.clone(), false);
        }
        let mut places: Vec<&[String]> = self.places.iter().map(Vec::as_slice).collect();
        for segment in pointer.segments() {
            places = below(&places, &segment);
            kept.push(&segment);
            if self.is_secret(&segment) || places.iter().any(|place| place.is_empty()) {
                return (kept, true);
            }
        }
        (kept, false)
    }

    fn is_secret(&self, key: &str) -> bool {
        let key = normalize_key(key);
        self.keys.iter().any(|pattern| pattern.matches(&key))
    }

    fn without_secrets(&self, value: &Value, places: &[&[String]]) -> Value {
        if places.iter().any(|place| place.is_empty()) {
            return REDACTED.into();
        }
        match value {
            Value::Object(members) => {
                let kept = members.iter().map(|(key, value)| {
                    if self.is_secret(key) {
                        return (key.clone(), REDACTED.into());
                    }
                    let inside = below(places, key);
                    (key.clone(), self.without_secrets(value, &inside))
                });
                Value::Object(kept.collect())
            }
            Value::Array(items) => {
                let kept = items.iter().enumerate().map(|(index, item)| {
                    let inside = below(places, &index.to_string());
                    self.without_secrets(item, &inside)
                });
                Value::Array(kept.collect())
            }
            Value::String(text) if text.len() > MAX_TEXT_BYTES => shortened(text).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
}

/// The beginning of a text, with the digest of the whole.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(KEPT_PREFIX_BYTES);
    let beginning = text.get(..end).unwrap_or_default();
    let digest = Fingerprint::of_bytes(text.as_bytes());
    format!("{beginning}… [{} bytes, sha256:{digest}]", text.len())
}

/// The remaining parts of every place that leads through a member.
fn below<'p>(places: &[&'p [String]], key: &str) -> Vec<&'p [String]> {
    let through = places.iter().filter_map(|place| place.split_first());
    through
        .filter(|(first, _)| *first == key || *first == "*")
        .map(|(_, rest)| rest)
        .collect()
}

/// A name without spelling differences: `api_key`, `API-Key` and `apiKey` are equal, and so are names with
/// characters that look the same.
fn normalize_key(name: &str) -> String {
    if name.is_ascii() {
        let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
        return letters
            .map(|it| char::from(it.to_ascii_lowercase()))
            .collect();
    }
    let letters = name.nfkc().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

impl KeyPattern {
    fn new(text: &str) -> Self {
        let parts: Vec<String> = text.split('*').map(normalize_key).collect();
        match parts.as_slice() {
            [first, name, last] if first.is_empty() && last.is_empty() => {
                let name = memchr::memmem::Finder::new(name.as_bytes());
                Self::Contains(Box::new(name.into_owned()))
            }
            _ => Self::Parts(parts),
        }
    }

    /// Whether it matches a normalized name.
    fn matches(&self, key: &str) -> bool {
        let parts = match self {
            Self::Contains(name) => return name.find(key.as_bytes()).is_some(),
            Self::Parts(parts) => parts.as_slice(),
        };
        let [first, between @ .., last] = parts else {
            return parts.first().is_some_and(|only| only == key);
        };
        let Some(mut rest) = key.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in between {
            let Some((_, after)) = rest.split_once(part.as_str()) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(arguments: ArgumentRecording, pointers: &[&str], keys: &[&str]) -> Value {
        let rules = AuditRules {
            arguments,
            redact_pointers: pointers.iter().map(|it| Pointer::from(*it)).collect(),
            redact_keys: keys.iter().map(|it| (*it).to_owned()).collect(),
            ..AuditRules::default()
        };
        let arguments = json!({
            "query": "q", "API_Key": "k", "card": {"number": 4, "name": "n"},
            "rows": [{"ssn": 1, "id": 2}, {"ssn": 3}], "auth": {"deep": {"token_value": "t"}},
        });
        Redaction::new(&rules).redact(&arguments).into_owned()
    }

    #[test]
    fn keys_match_anywhere_and_places_exactly() {
        assert_eq!(
            kept(
                ArgumentRecording::Redacted,
                &["/card/number", "/rows/*/ssn", "/nowhere"],
                &["api_key", "token*"]
            ),
            json!({
                "query": "q", "API_Key": REDACTED, "card": {"number": REDACTED, "name": "n"},
                "rows": [{"ssn": REDACTED, "id": 2}, {"ssn": REDACTED}],
                "auth": {"deep": {"token_value": REDACTED}},
            })
        );
    }

    #[test]
    fn stars_stand_for_any_text() {
        let matches =
            |pattern: &str, key: &str| KeyPattern::new(pattern).matches(&normalize_key(key));
        assert!(matches("*token*", "accessTokenId") && matches("*token*", "token"));
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*", ""));
        assert!(!matches("a*c", "acb") && !matches("token", "tokens"));
        assert!(!matches("ab*ba", "aba"), "parts do not overlap");
        assert!(
            matches("*password*", "ｐａｓｓ\u{200b}Word_2") && matches("*apikey*", "x-api-KEY")
        );
    }

    #[test]
    fn places_end_at_what_is_not_kept() {
        let rules = AuditRules {
            redact_pointers: vec![Pointer::from("/rows/*/ssn")],
            ..AuditRules::default()
        };
        let redaction = Redaction::new(&rules);
        let kept = |text: &str| {
            let (place, cut) = redaction.redact_pointer(&Pointer::from(text));
            (place.as_str().to_owned(), cut)
        };
        assert_eq!(kept("/rows/3/ssn/1234"), ("/rows/3/ssn".to_owned(), true));
        assert_eq!(kept("/auth/token/abc"), ("/auth/token".to_owned(), true));
        assert_eq!(kept("/rows/3/id"), ("/rows/3/id".to_owned(), false));
    }

    #[test]
    fn long_texts_are_kept_by_their_beginning_and_digest() {
        let redaction = |arguments| {
            Redaction::new(&AuditRules {
                arguments,
                ..AuditRules::default()
            })
        };
        let whole = json!({"a": ["x".repeat(MAX_TEXT_BYTES)], "b": 1});
        let kept = redaction(ArgumentRecording::Redacted);
        assert!(matches!(kept.redact(&whole), Cow::Borrowed(_)));
        let long = "é".repeat(MAX_TEXT_BYTES);
        let long = json!({"a": [format!("x{long}")], "password": "p"});
        let shown = kept.redact(&long);
        let text = shown["a"][0].as_str().unwrap();
        // The digest of the bytes, as `sha256sum` prints it.
        let digest = Fingerprint::of_bytes(long["a"][0].as_str().unwrap().as_bytes());
        let beginning = format!("x{}", "é".repeat(KEPT_PREFIX_BYTES / 2 - 1));
        assert_eq!(text, format!("{beginning}… [8193 bytes, sha256:{digest}]"));
        assert_eq!(shown["password"], REDACTED);
        assert!(matches!(
            redaction(ArgumentRecording::Full).redact(&long),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_digest_tells_nothing_and_full_everything() {
        let digest = kept(ArgumentRecording::Digest, &[], &[]);
        assert_eq!(digest.as_object().unwrap().len(), 1);
        assert!(digest["digest"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(
            kept(ArgumentRecording::Full, &["/query"], &["*"])["query"],
            "q"
        );
    }
}
