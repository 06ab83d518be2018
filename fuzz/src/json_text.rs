//! JSON text, objects one level deep, and pointers.

use serde_json::value::RawValue;
use toolwarden_model::json::{
    Pointer, Positions, RawObject, Value, decode_utf8, indent, parse, percent_decode,
    to_canonical_string, tokens,
};

use crate::{assert_inside, text};

/// Canonical text is JSON, has no duplicate keys and is its own canonical text. Indented text has the same value.
pub fn json(data: &[u8]) {
    let Ok(text) = decode_utf8(data) else {
        return;
    };
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return assert_inside(text, error.position, &error),
    };
    for duplicate in &parsed.duplicates {
        assert_inside(text, duplicate.position, &duplicate.pointer);
        let found = duplicate.pointer.find(&parsed.value);
        assert!(found.is_some(), "{duplicate:?} names no value");
    }
    let canonical = to_canonical_string(&parsed.value);
    let again = parse(&canonical).map(|again| (to_canonical_string(&again.value), again));
    match again {
        Ok((text, again)) => {
            assert_eq!(text, canonical);
            assert_eq!(again.duplicates, []);
            assert_same(&parsed.value, &again.value);
        }
        Err(error) => assert!(canonical.is_empty(), "{error}: {canonical}"),
    }
    let indented = indent(text, 2);
    assert_eq!(
        parse(&indented).map(|again| again.value),
        Ok(parsed.value),
        "{indented}"
    );
    // Every token is a part of the text, in order.
    let mut rest = text;
    for token in tokens(text) {
        let found = rest.split_once(token);
        assert!(found.is_some(), "token {token:?} is not in {rest:?}");
        rest = found.map_or("", |(_, after)| after);
    }
    assert_inside(
        text,
        Positions::of(text).nearest(&Pointer::root()),
        &"the root",
    );
}

/// Asserts that two values differ at most in the spelling of numbers.
fn assert_same(one: &Value, other: &Value) {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter()
                .zip(other)
                .for_each(|(one, other)| assert_same(one, other));
        }
        (Value::Object(one), Value::Object(other)) => {
            assert_eq!(one.len(), other.len());
            for (key, value) in one {
                let found = other.get(key);
                assert!(found.is_some(), "{key:?} is lost");
                if let Some(found) = found {
                    assert_same(value, found);
                }
            }
        }
        (Value::Number(one), Value::Number(other)) => {
            let double = |number: &serde_json::Number| number.to_string().parse::<f64>().ok();
            assert_eq!(double(one), double(other), "{one} and {other}");
        }
        _ => assert_eq!(one, other),
    }
}

/// An object that is read one level deep and written again has the same members with the same text.
pub fn raw_object(data: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(data) else {
        return;
    };
    let Ok(object) = RawObject::parse(raw) else {
        return;
    };
    let written = object.to_string();
    assert_eq!(object.to_raw().get(), written);
    let again = serde_json::from_str::<&RawValue>(&written);
    let again = again.and_then(RawObject::parse);
    let again = again.map(|again| members(&again));
    assert_eq!(again.ok(), Some(members(&object)), "{written}");
    if object.duplicate_key().is_none() {
        for (name, value) in object.iter() {
            assert_eq!(object.get(name), Some(value));
        }
    }
    // What is deeper may be nested too deeply for a value, which the one-level reader does not notice.
    if let (Ok(value), Ok(written)) = (parse(raw.get()), parse(&written)) {
        assert_eq!(value.value, written.value);
    }
}

fn members(object: &RawObject<'_>) -> Vec<(String, String)> {
    object
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A pointer of any segments has these segments. Text without a percent sign decodes to itself.
pub fn pointer(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let segments: Vec<&str> = text.split('\n').collect();
    let pointer = Pointer::of(segments.iter().copied());
    assert_eq!(pointer.segments().collect::<Vec<_>>(), segments);
    let mut parent = pointer.clone();
    parent.push("x/~y");
    parent.pop();
    assert_eq!(parent, pointer);
    let decoded = percent_decode(text);
    if !text.contains('%') {
        assert_eq!(decoded.as_deref(), Some(text));
    }
}
