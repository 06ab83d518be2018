//! Keeps secrets out of records.

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{MAX_DEPTH, Object};

use crate::input::shallow;
use crate::policy::{Arguments, AuditRules};

/// What stands in a record in place of what is not kept.
pub const REDACTED: &str = "[redacted]";

/// What stands in a record in place of arguments nested beyond every limit.
const TOO_DEEP: &str = "[nested too deeply]";

/// What is kept of arguments.
#[derive(Clone, Debug)]
pub struct Redaction {
    arguments: Arguments,
    places: Vec<Vec<String>>,
    keys: Vec<KeyPattern>,
}

/// A member name, `*` standing for any text, in any case.
#[derive(Clone, Debug)]
struct KeyPattern(Vec<String>);

impl Redaction {
    /// What the rules of a policy say.
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
        self.arguments == Arguments::Full
    }

    /// What a record keeps of arguments: themselves, themselves without secrets, or their digest.
    #[must_use]
    pub fn kept(&self, arguments: &Value) -> Value {
        if !shallow(arguments, MAX_DEPTH) {
            // Nobody's arguments, and whoever walks through them runs out of stack.
            return TOO_DEEP.into();
        }
        match self.arguments {
            Arguments::Full => arguments.clone(),
            Arguments::Redacted => {
                let places: Vec<&[String]> = self.places.iter().map(Vec::as_slice).collect();
                self.without_secrets(arguments, &places)
            }
            Arguments::Digest => {
                let digest = format!("sha256:{}", Fingerprint::of(arguments));
                Value::Object(Object::from_iter([("digest".to_owned(), digest.into())]))
            }
        }
    }

    fn without_secrets(&self, value: &Value, places: &[&[String]]) -> Value {
        if places.iter().any(|place| place.is_empty()) {
            return REDACTED.into();
        }
        match value {
            Value::Object(members) => {
                let kept = members.iter().map(|(key, value)| {
                    if self.keys.iter().any(|pattern| pattern.matches(key)) {
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
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
}

/// The rest of every place that leads through a member.
fn below<'p>(places: &[&'p [String]], key: &str) -> Vec<&'p [String]> {
    let through = places.iter().filter_map(|place| place.split_first());
    through
        .filter(|(first, _)| *first == key || *first == "*")
        .map(|(_, rest)| rest)
        .collect()
}

impl KeyPattern {
    fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_lowercase).collect())
    }

    fn matches(&self, key: &str) -> bool {
        let key = key.to_lowercase();
        let [first, between @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| *only == key);
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
    use toolwarden_model::json::Pointer;

    fn kept(arguments: Arguments, pointers: &[&str], keys: &[&str]) -> Value {
        let rules = AuditRules {
            arguments,
            redact_pointers: pointers.iter().map(|it| Pointer::from(*it)).collect(),
            redact_keys: keys.iter().map(|it| (*it).to_owned()).collect(),
            ..AuditRules::default()
        };
        Redaction::new(&rules).kept(&json!({
            "query": "q", "API_Key": "k", "card": {"number": 4, "name": "n"},
            "rows": [{"ssn": 1, "id": 2}, {"ssn": 3}], "auth": {"deep": {"token_value": "t"}},
        }))
    }

    #[test]
    fn keys_match_anywhere_and_places_exactly() {
        assert_eq!(
            kept(
                Arguments::Redacted,
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
        let matches = |pattern: &str, key: &str| KeyPattern::new(pattern).matches(key);
        assert!(matches("*token*", "accessTokenId") && matches("*token*", "token"));
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*", ""));
        assert!(!matches("a*c", "acb") && !matches("token", "tokens"));
        assert!(!matches("ab*ba", "aba"), "parts do not overlap");
    }

    #[test]
    fn a_digest_tells_nothing_and_full_everything() {
        let digest = kept(Arguments::Digest, &[], &[]);
        assert_eq!(digest.as_object().unwrap().len(), 1);
        assert!(digest["digest"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(kept(Arguments::Full, &["/query"], &["*"])["query"], "q");
    }
}
