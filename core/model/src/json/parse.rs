use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use thiserror::Error;

use super::positions::{self, DuplicateKey, Position};
use super::{Map, Number, Value};

/// The maximum nesting depth. `serde_json` enforces it on text.
pub const MAX_DEPTH: usize = 128;

/// The key under which `serde_json` passes a number when `arbitrary_precision` is on.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// A parsed JSON text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value, keys in written order, numbers with their written text.
    pub value: Value,
    /// Keys that occur twice in one object; the last value is kept.
    pub duplicates: Vec<DuplicateKey>,
}

/// Why a text cannot be read as JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} at line {}, column {}", position.line, position.column)]
pub struct JsonError {
    /// Where reading stopped.
    pub position: Position,
    /// What is wrong there.
    pub kind: JsonErrorKind,
}

/// What is wrong with a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonErrorKind {
    /// The text ends inside a value.
    #[error("unexpected end of the text")]
    Truncated,
    /// The nesting is deeper than [`MAX_DEPTH`].
    #[error("nesting deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A byte sequence is not UTF-8.
    #[error("invalid UTF-8 (byte {offset})")]
    InvalidUtf8 {
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The text is UTF-16, recognized by its byte order mark.
    #[error("UTF-16 text; convert it to UTF-8")]
    Utf16,
    /// Any other syntax error, in the parser's words.
    #[error("{message}")]
    Syntax {
        /// The parser's words, without its position.
        message: String,
    },
}

/// Parses one JSON text. A leading byte order mark is skipped.
///
/// # Errors
/// Says where and why the text is not JSON, or is nested too deeply.
pub fn parse(text: &str) -> Result<Parsed, JsonError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut notes = ParseFlags::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = ValueSeed { flags: &mut notes };
    let mut value = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| JsonError::from_serde(&error))?;
    if notes.exponent {
        restore_number_text(text, &mut value);
    }
    let duplicates = if notes.duplicate {
        positions::duplicate_keys(text)
    } else {
        Vec::new()
    };
    Ok(Parsed { value, duplicates })
}

/// Decodes bytes as UTF-8 text without a byte order mark.
///
/// # Errors
/// Names the first invalid byte.
pub fn decode_utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let position = Position { line: 1, column: 1 };
        return Err(JsonError {
            position,
            kind: JsonErrorKind::Utf16,
        });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let offset = error.valid_up_to();
            let before = bytes.get(..offset).unwrap_or_default();
            let position = Position::after(&String::from_utf8_lossy(before));
            Err(JsonError {
                position,
                kind: JsonErrorKind::InvalidUtf8 { offset },
            })
        }
    }
}

/// Whether a value is nested no deeper than [`MAX_DEPTH`], checked without recursion.
///
/// [`parse`] limits texts; this is for values built in memory.
#[must_use]
pub fn depth_within(value: &Value) -> bool {
    let mut pending = vec![(value, 1_usize)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return false;
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => pending.extend(map.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

/// Drops a value level by level: dropping a very deep value at once would overflow the stack.
pub fn drop_iteratively(value: Value) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => pending.extend(map.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

impl JsonError {
    /// Converts the parser's error.
    #[must_use]
    pub fn from_serde(error: &serde_json::Error) -> Self {
        let position = Position {
            line: error.line(),
            column: error.column(),
        };
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let kind = if error.is_eof() {
            JsonErrorKind::Truncated
        } else if message == "recursion limit exceeded" {
            JsonErrorKind::TooDeep
        } else {
            JsonErrorKind::Syntax {
                message: plain_message(message).to_owned(),
            }
        };
        Self { position, kind }
    }
}

/// The parser's message, or a plainer one where it names its own grammar.
fn plain_message(message: &str) -> &str {
    match message {
        "expected ident" => {
            "a word that is not JSON; write true, false, null, or text in double quotes"
        }
        "key must be a string" => "a key must be text in double quotes",
        "trailing characters" => "more text after the end of the document",
        "trailing comma" => "a comma before the closing bracket",
        "invalid escape" => "a backslash that starts no escape; write it twice",
        other => other,
    }
}

/// What the fast pass found and a slow pass must check.
#[derive(Default)]
struct ParseFlags {
    duplicate: bool,
    exponent: bool,
}

/// Builds a [`Value`] as `serde_json` does, but detects duplicate keys.
struct ValueSeed<'n> {
    flags: &'n mut ParseFlags,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(ValueSeed { flags: self.flags })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let Some(first) = access.next_key::<String>()? else {
            return Ok(Value::Object(Map::new()));
        };
        // Most objects of a schema have two to seven members; this capacity holds them without
        // reallocation.
        let mut map = Map::with_capacity(if first == NUMBER_TOKEN { 0 } else { 4 });
        if first == NUMBER_TOKEN {
            match access.next_value_seed(TokenSeed(ValueSeed { flags: self.flags }))? {
                NumberOrMember::Number(text) => return Ok(self.number(text)),
                NumberOrMember::Member(value) => {
                    map.insert(first, value);
                }
            }
        } else {
            map.insert(
                first,
                access.next_value_seed(ValueSeed { flags: self.flags })?,
            );
        }
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(ValueSeed { flags: self.flags })?;
            if map.insert(key, value).is_some() {
                self.flags.duplicate = true;
            }
        }
        Ok(Value::Object(map))
    }
}

impl ValueSeed<'_> {
    fn number(self, text: String) -> Value {
        if text.contains('e') {
            self.flags.exponent = true;
        }
        Value::Number(Number::from_string_unchecked(text))
    }
}

enum NumberOrMember {
    Number(String),
    Member(Value),
}

/// Reads what follows [`NUMBER_TOKEN`]: the parser passes a number's text as an owned string, while
/// an input object that happens to have this key gives a borrowed one.
struct TokenSeed<'n>(ValueSeed<'n>);

impl<'de> DeserializeSeed<'de> for TokenSeed<'_> {
    type Value = NumberOrMember;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TokenSeed<'_> {
    type Value = NumberOrMember;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Number(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Member(Value::String(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Member(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Member(Value::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Member(Value::from(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(NumberOrMember::Member(Value::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        self.0.visit_seq(access).map(NumberOrMember::Member)
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        self.0.visit_map(access).map(NumberOrMember::Member)
    }
}

/// Restores exponents as written: the parser turns `1E5` into `1e+5`.
///
/// Numbers are matched in document order. With duplicate keys the orders differ, and the parser's
/// spelling stays.
fn restore_number_text(text: &str, value: &mut Value) {
    let texts = positions::numbers(text);
    let mut numbers = Vec::new();
    collect_numbers(value, &mut numbers);
    if numbers.len() != texts.len() {
        return;
    }
    for (number, text) in numbers.into_iter().zip(texts) {
        if text.contains(['e', 'E']) {
            *number = Number::from_string_unchecked(text.to_owned());
        }
    }
}

fn collect_numbers<'v>(value: &'v mut Value, numbers: &mut Vec<&'v mut Number>) {
    match value {
        Value::Number(number) => numbers.push(number),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| collect_numbers(item, numbers)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|item| collect_numbers(item, numbers)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn number_text_survives() {
        for text in [
            "1e5",
            "1E5",
            "1e+5",
            "1.0",
            "-0",
            "0.10",
            "12345678901234567890123",
            "1E-400",
        ] {
            assert_eq!(parse(text).unwrap().value.to_string(), text);
        }
    }

    #[test]
    fn an_object_with_the_parsers_own_number_key_stays_an_object() {
        for value in ["\"7\"", "7", "null", "true", "[1]", "{\"a\":1}"] {
            let text = format!("{{\"{NUMBER_TOKEN}\":{value}}}");
            assert_eq!(parse(&text).unwrap().value.to_string(), text);
        }
    }

    #[test]
    fn key_order_survives() {
        let text = r#"{"b":1,"a":{"d":[1e3,{"z":null}],"c":true}}"#;
        assert_eq!(parse(text).unwrap().value.to_string(), text);
    }

    #[test]
    fn duplicate_keys_are_reported_with_their_place() {
        let parsed = parse("{\"a\":1,\n \"b\":{\"x\":1,\"x\":2},\n \"a\":3}").unwrap();
        assert_eq!(parsed.value.to_string(), r#"{"a":3,"b":{"x":2}}"#);
        let places: Vec<String> = parsed
            .duplicates
            .iter()
            .map(|d| format!("{} {}:{}", d.pointer, d.position.line, d.position.column))
            .collect();
        assert_eq!(places, ["/b/x 2:13", "/a 3:2"]);
    }

    #[test]
    fn errors_name_the_place() {
        assert_eq!(
            error("{\"a\":\n  oops}"),
            "expected value at line 2, column 3"
        );
        assert_eq!(
            error("{\"a\":"),
            "unexpected end of the text at line 1, column 5"
        );
        assert_eq!(error(""), "unexpected end of the text at line 1, column 0");
        assert_eq!(
            error("1 2"),
            "more text after the end of the document at line 1, column 3"
        );
        assert_eq!(
            error("[tru]"),
            "a word that is not JSON; write true, false, null, or text in double quotes at line 1, column 5"
        );
        assert_eq!(
            error(&"[".repeat(10_000)),
            "nesting deeper than 128 levels at line 1, column 128"
        );
        assert!(error(r#""\ud800""#).contains("at line 1"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_place() {
        let error = decode_utf8(b"{\n\"a\":\"\xff\"}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid UTF-8 (byte 7) at line 2, column 6"
        );
        let error = decode_utf8(b"\xff\xfe{\0").unwrap_err();
        assert_eq!(error.kind, JsonErrorKind::Utf16);
        assert_eq!(decode_utf8("\u{feff}{}".as_bytes()).unwrap(), "{}");
    }

    #[test]
    fn depth_of_built_values_is_bounded_without_recursion() {
        let mut value = Value::Null;
        for _ in 0..MAX_DEPTH - 1 {
            value = Value::Array(vec![value]);
        }
        assert!(depth_within(&value));
        value = Value::Array(vec![value]);
        assert!(!depth_within(&value));
    }
}
