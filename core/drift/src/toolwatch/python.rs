//! JSON as Python's `json.dumps(value, sort_keys=True)` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Number, Value};
use toolwarden_model::Fingerprint;

/// The hash that toolwatch computes of a definition.
#[must_use]
pub fn schema_hash(definition: &Value) -> String {
    Fingerprint::of_canonical(&dumps(definition)).to_string()
}

/// What toolwatch keeps of results: the types seen under each key of an object.
///
/// toolwatch fails on results that are not objects; here such results add nothing.
#[derive(Clone, Debug, Default)]
pub struct ResponsePattern(BTreeMap<String, BTreeSet<&'static str>>);

impl ResponsePattern {
    /// Adds a result.
    pub fn observe(&mut self, result: &Value) {
        for (key, value) in result.as_object().into_iter().flatten() {
            match self.0.get_mut(key) {
                Some(types) => {
                    types.insert(type_name(value));
                }
                None => {
                    self.0
                        .insert(key.clone(), BTreeSet::from([type_name(value)]));
                }
            }
        }
    }

    /// The hash that toolwatch computes of these results.
    #[must_use]
    pub fn hash(&self) -> String {
        let members = self.0.iter();
        let members = members.map(|(key, types)| (key.clone(), types.iter().copied().collect()));
        schema_hash(&Value::Object(members.collect()))
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if is_float(&number.to_string()) => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            // UTF-8 byte order equals code point order, which Python sorts by.
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_text(out, key);
                out.push_str(": ");
                write(out, member);
            }
            out.push('}');
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            '\u{8}' => out.push_str("\\b"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").unwrap_or_default();
                }
            }
        }
    }
    out.push('"');
}

fn is_float(text: &str) -> bool {
    text.contains(['.', 'e', 'E'])
}

fn write_number(out: &mut String, number: &Number) {
    let text = number.to_string();
    if !is_float(&text) {
        // Python has one integer zero.
        out.push_str(if text == "-0" { "0" } else { &text });
        return;
    }
    match text.parse::<f64>() {
        Ok(value) => write_float(out, value),
        Err(_) => out.push_str(&text),
    }
}

/// The shortest digits that are the number, with an exponent from 1e16 on and below 1e-4.
fn write_float(out: &mut String, value: f64) {
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
        return;
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..16).contains(&exponent) {
        let fixed = format!("{value}");
        out.push_str(&fixed);
        if !fixed.contains('.') {
            out.push_str(".0");
        }
        return;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{digits}e{sign}{:02}", exponent.abs()).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarden_model::json::parse;

    /// Reference values from CPython 3.11.
    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (text, expected) in [
            ("1e0", "1.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-1.5E-7", "-1.5e-07"),
            ("123456789012345.6", "123456789012345.6"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("5e-324", "5e-324"),
            ("1e400", "Infinity"),
            ("-1e400", "-Infinity"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            ("1E2", "100.0"),
        ] {
            let value = parse(text).unwrap().value;
            assert_eq!(dumps(&value), expected, "{text}");
        }
    }
}
