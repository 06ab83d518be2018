//! Keeps records short: who is refused chooses the size of what is recorded.

use serde_json::{Value, json};
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Object, to_canonical_string};

/// The longest name that is kept whole, in bytes.
const LONGEST_NAME: usize = 1_024;

/// How much of a longer one is kept.
const BEGINNING: usize = 256;

/// The smallest limit: below it, nothing but digests would be recorded.
const LEAST: usize = 1_024;

/// How much of a record its parts may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordSize {
    most: usize,
}

impl RecordSize {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(LEAST),
        }
    }

    /// The size of the arguments.
    pub(super) const fn arguments(self) -> usize {
        self.most / 2
    }

    /// The size of any other part.
    pub(super) const fn part(self) -> usize {
        self.most / 16
    }

    /// The members of an object, long ones as digests; or the digest of all of them where that is not enough.
    pub(super) fn bounded(self, object: Object) -> Object {
        let text = |value: &Value| to_canonical_string(value);
        let parts = object.into_iter().map(|(key, value)| {
            let written = text(&value);
            let kept = if written.len() > self.part() {
                digest(&written)
            } else {
                value
            };
            (key, kept)
        });
        let parts = Value::Object(parts.collect());
        let written = text(&parts);
        if written.len() <= self.most {
            return object_of(parts);
        }
        object_of(digest(&written))
    }
}

/// What stands for a text that is too long to keep.
pub(super) fn digest(text: &str) -> Value {
    let fingerprint = Fingerprint::of_bytes(text.as_bytes());
    json!({"bytes": text.len(), "digest": format!("sha256:{fingerprint}")})
}

/// A name, the beginning of it where it is long, and what the whole can be recognised by.
pub(super) fn short_name(name: &str) -> std::borrow::Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    let end = name.floor_char_boundary(BEGINNING);
    let beginning = name.get(..end).unwrap_or_default();
    let fingerprint = Fingerprint::of_bytes(name.as_bytes());
    format!("{beginning}… [{} bytes, sha256:{fingerprint}]", name.len()).into()
}

fn object_of(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_beginning() {
        assert_eq!(short_name("pay"), "pay");
        let long = "é".repeat(600);
        let short = short_name(&long);
        assert!(short.len() < 512 && short.contains("… [1200 bytes, sha256:"));
    }

    #[test]
    fn long_members_become_digests() {
        let size = RecordSize::new(4_096);
        let short = object_of(json!({"a": 1, "b": "x".repeat(300)}));
        let bounded = size.bounded(short);
        assert_eq!(bounded.get("a"), Some(&json!(1)));
        let written = json!("x".repeat(300)).to_string();
        assert_eq!(bounded.get("b"), Some(&digest(&written)));
        let many = (0..1_000).map(|at| (at.to_string(), Value::from("y")));
        let bounded = size.bounded(many.collect());
        let keys: Vec<_> = bounded.keys().map(String::as_str).collect();
        assert_eq!(keys, ["bytes", "digest"]);
    }
}
