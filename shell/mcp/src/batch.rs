//! Splits batches of messages without building more than a bounded number of them.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Why a text is not a batch within the limit.
#[derive(Debug)]
pub(crate) enum BatchError {
    /// Not a JSON array.
    Json(serde_json::Error),
    /// More messages than the limit.
    TooMany,
}

/// The texts of the messages of a batch.
pub(crate) fn split(text: &[u8], most: usize) -> Result<Vec<&RawValue>, BatchError> {
    let is_full = Cell::new(false);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let split = BatchVisitor {
        max: most,
        is_full: &is_full,
    }
    .deserialize(&mut reader);
    let split = split.and_then(|texts| reader.end().map(|()| texts));
    split.map_err(|error| {
        if is_full.get() {
            BatchError::TooMany
        } else {
            BatchError::Json(error)
        }
    })
}

struct BatchVisitor<'c> {
    max: usize,
    is_full: &'c Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for BatchVisitor<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for BatchVisitor<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = items.next_element()? {
            if texts.len() == self.max {
                self.is_full.set(true);
                return Err(A::Error::custom("too many"));
            }
            texts.push(text);
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded() {
        assert_eq!(split(b" [1, {\"a\":2}] ", 2).unwrap().len(), 2);
        let error = split(b"[1,2,3]", 2).unwrap_err();
        assert!(matches!(error, BatchError::TooMany));
        for text in ["[1", "[1] 2", "{}"] {
            let error = split(text.as_bytes(), 1).unwrap_err();
            assert!(matches!(error, BatchError::Json(_)), "{text}");
        }
    }
}
