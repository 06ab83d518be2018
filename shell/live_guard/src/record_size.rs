//! Limits the size of records: a denied caller could otherwise choose it.

use serde_json::{Value, json};
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Object, to_canonical_string};

/// The maximum length of a name that is stored whole, in bytes.
const MAX_NAME_LEN: usize = 1_024;

/// How much of a longer name is stored.
const KEPT_PREFIX_LEN: usize = 256;

/// The smallest limit: below it, the log would record only digests.
const MIN_LIMIT: usize = 1_024;

/// How much of a record its parts may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordSize {
    max_bytes: usize,
}

impl RecordSize {
    pub(super) fn new(most: usize) -> Self {
        Self {
            max_bytes: most.max(MIN_LIMIT),
        }
    }

    /// The maximum size of the arguments.
    pub(super) const fn arguments(self) -> usize {
        self.max_bytes / 2
    }

    /// The maximum size of any other part.
    pub(super) const fn part(self) -> usize {
        self.max_bytes / 16
    }

    /// The members of an object, long ones as digests; or one digest of all of them if that is not enough.
    pub(super) fn bound_members(self, object: Object) -> Object {
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
        if written.len() <= self.max_bytes {
            return object_of(parts);
        }
        object_of(digest(&written))
    }
}

/// The digest that replaces a text which is too long to store.
pub(super) fn digest(text: &str) -> Value {
    let fingerprint = Fingerprint::of_bytes(text.as_bytes());
    json!({"bytes": text.len(), "digest": format!("sha256:{fingerprint}")})
}

/// A name; if it is long, its beginning and the digest of the whole.
pub(super) fn short_name(name: &str) -> std::borrow::Cow<'_, str> {
    if name.len() <= MAX_NAME_LEN {
        return name.into();
    }
    let end = name.floor_char_boundary(KEPT_PREFIX_LEN);
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
        let bounded = size.bound_members(short);
        assert_eq!(bounded.get("a"), Some(&json!(1)));
        let written = json!("x".repeat(300)).to_string();
        assert_eq!(bounded.get("b"), Some(&digest(&written)));
        let many = (0..1_000).map(|at| (at.to_string(), Value::from("y")));
        let bounded = size.bound_members(many.collect());
        let keys: Vec<_> = bounded.keys().map(String::as_str).collect();
        assert_eq!(keys, ["bytes", "digest"]);
    }
}
