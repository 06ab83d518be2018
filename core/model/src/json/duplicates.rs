//! Finds a key that an object has twice, without building values.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::positions::{self, DuplicateKey};

/// The first key of a valid JSON text that its object already has.
#[must_use]
pub fn first_duplicate(text: &str) -> Option<DuplicateKey> {
    let mut found = false;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // A text that is not JSON is reported by its own reader.
    DuplicateSeed(&mut found)
        .deserialize(&mut deserializer)
        .ok()?;
    match found {
        true => positions::duplicate_keys(text).into_iter().next(),
        false => None,
    }
}

struct DuplicateSeed<'f>(&'f mut bool);

impl<'de> DeserializeSeed<'de> for DuplicateSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A key as borrowed text where it has no escapes.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// Up to this many keys are compared one by one.
const FEW: usize = 16;

impl<'de> Visitor<'de> for DuplicateSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access
            .next_element_seed(DuplicateSeed(&mut *self.0))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut few: Vec<Cow<'de, str>> = Vec::new();
        let mut many: BTreeSet<Cow<'de, str>> = BTreeSet::new();
        while let Some(key) = access.next_key_seed(KeySeed)? {
            access.next_value_seed(DuplicateSeed(&mut *self.0))?;
            if few.len() < FEW {
                *self.0 |= few.contains(&key);
                few.push(key);
            } else {
                *self.0 |= few.contains(&key) || !many.insert(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_an_object_has_twice_is_found_with_its_place() {
        let place = |text: &str| {
            let found = first_duplicate(text);
            found.map(|it| (it.pointer.to_string(), it.position.line))
        };
        assert_eq!(place(r#"{"a": 1.5e3, "b": [{"a": -1}, null, true]}"#), None);
        let doubled = "{\"a\": [{\"b\": 1,\n\"\\u0062\": 2}]}";
        assert_eq!(place(doubled), Some(("/a/0/b".to_owned(), 2)));
        let many: Vec<String> = (0..40).map(|at| format!("\"k{at}\": {at}")).collect();
        let many = many.join(",");
        assert_eq!(place(&format!("{{{many}}}")), None);
        for again in ["k0", "k39"] {
            let text = format!("{{{many}, \"{again}\": 0}}");
            assert_eq!(place(&text), Some((format!("/{again}"), 1)));
        }
        assert_eq!(place("{"), None);
    }
}
