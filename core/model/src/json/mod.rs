//! JSON as received: key order, number text and duplicate keys are preserved or reported.

mod canonical;
mod duplicates;
mod parse;
mod pointer;
mod positions;
mod raw_object;
mod tokens;

pub(crate) use canonical::{Member, sort_members, write_canonical_object, write_canonical_text};
pub use canonical::{to_canonical_string, write_canonical};
pub use duplicates::first_duplicate;
pub use parse::{
    JsonError, JsonErrorKind, MAX_DEPTH, Parsed, decode_utf8, depth_within, drop_iteratively, parse,
};
pub use pointer::{Pointer, percent_decode};
pub use positions::{DuplicateKey, Position, Positions};
pub use raw_object::RawObject;
pub use tokens::{indent, tokens};

pub use serde_json::{Map, Number, Value};

/// A JSON object with its keys in written order.
pub type Object = Map<String, Value>;

/// The JSON type of a value, as error messages name it.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
