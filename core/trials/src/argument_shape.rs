//! The structure of the arguments of many calls, without their values.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use toolwarden_model::json::{Object, Pointer};

use super::member_declaration::{MemberDeclaration, SchemaCursor};
use super::rate::Rate;

/// The maximum number of paths kept per tool.
pub const MAX_PATHS: usize = 2_000;
/// The maximum depth to which arguments are inspected.
pub const MAX_DEPTH: usize = 32;

/// The maximum number of undeclared arguments reported per call.
const MAX_EXTRA: usize = 16;

/// The segment that stands for every item of an array.
const ITEMS: &str = "*";

/// Which members the arguments of calls had, at any depth.
///
/// Paths are JSON pointers in which `*` stands for the items of an array; a member that is itself
/// called `*` is written `~2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentShape {
    /// The number of calls observed.
    pub calls: u64,
    /// What was seen at each path.
    pub paths: BTreeMap<String, PathShape>,
    /// How many observations were left out because there are too many paths or they are too deep.
    pub dropped: u64,
}

/// What was seen at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathShape {
    /// How the schema of the tool declares it.
    pub declared: MemberDeclaration,
    /// How many of the objects that could have it did; for an array, how many had items.
    pub present: Rate,
    /// How often each type was seen. A number without fraction is an integer, however it is spelled.
    pub types: BTreeMap<String, u64>,
}

impl ArgumentShape {
    /// Adds the arguments of a call, and returns the first undeclared ones.
    pub(super) fn observe(&mut self, arguments: &Object, schema: &Value) -> BTreeSet<String> {
        self.calls += 1;
        let mut extra = BTreeSet::new();
        let place = SchemaCursor::root(schema);
        self.object(&Pointer::root(), arguments, place, (1, &mut extra));
        extra
    }

    /// Fills in how often each path could have occurred.
    pub(super) fn finish(&mut self) {
        let count = |path: &str, kind: &str| {
            let shape: Option<&PathShape> = self.paths.get(path);
            shape.and_then(|it| it.types.get(kind)).copied()
        };
        let totals: Vec<u64> = self
            .paths
            .keys()
            .map(|path| match path.rsplit_once('/') {
                Some((parent, ITEMS)) => count(parent, "array").unwrap_or(0),
                Some(("", _)) | None => self.calls,
                Some((parent, _)) => count(parent, "object").unwrap_or(0),
            })
            .collect();
        for (shape, of) in self.paths.values_mut().zip(totals) {
            shape.present.of = of;
        }
    }

    /// The types at each path, as a text that is equal for arguments of the same shape.
    pub(super) fn signature(&self) -> String {
        let paths = self.paths.iter().map(|(path, shape)| {
            let types: Vec<&str> = shape.types.keys().map(String::as_str).collect();
            format!("{path}={}", types.join("|"))
        });
        paths.collect::<Vec<_>>().join("\n")
    }

    fn object(
        &mut self,
        at: &Pointer,
        object: &Object,
        place: SchemaCursor<'_>,
        (depth, extra): (usize, &mut BTreeSet<String>),
    ) {
        for (name, value) in object {
            let (declared, below) = place.member(name);
            let mut path = at.child(name);
            if name == ITEMS {
                path = Pointer::from(format!("{}/~2", at.as_str()).as_str());
            }
            if declared == MemberDeclaration::Extra {
                extra.insert(path.as_str().to_owned());
                // Takes the first in sort order, so that the order of members makes no difference.
                if extra.len() > MAX_EXTRA {
                    extra.pop_last();
                }
            }
            if let Some(shape) = self.at(&path) {
                shape.declared = declared;
                shape.present.hits += 1;
                self.value(&path, value, below, (depth, extra));
            }
        }
    }

    fn value(
        &mut self,
        at: &Pointer,
        value: &Value,
        place: SchemaCursor<'_>,
        (depth, extra): (usize, &mut BTreeSet<String>),
    ) {
        if let Some(shape) = self.paths.get_mut(at.as_str()) {
            match shape.types.get_mut(json_type(value)) {
                Some(count) => *count += 1,
                None => {
                    shape.types.insert(json_type(value).to_owned(), 1);
                }
            }
        }
        if depth >= MAX_DEPTH {
            self.dropped += u64::from(matches!(value, Value::Array(_) | Value::Object(_)));
            return;
        }
        match value {
            Value::Object(object) => self.object(at, object, place, (depth + 1, extra)),
            Value::Array(items) if !items.is_empty() => {
                let path = at.child(ITEMS);
                let Some(shape) = self.at(&path) else {
                    return;
                };
                shape.present.hits += 1;
                let place = place.items();
                for item in items {
                    self.value(&path, item, place, (depth + 1, &mut *extra));
                }
            }
            _ => {}
        }
    }

    fn at(&mut self, path: &Pointer) -> Option<&mut PathShape> {
        if !self.paths.contains_key(path.as_str()) {
            if self.paths.len() >= MAX_PATHS {
                self.dropped += 1;
                return None;
            }
            self.paths
                .insert(path.as_str().to_owned(), PathShape::default());
        }
        self.paths.get_mut(path.as_str())
    }
}

/// A place in arguments with `*` for every step into an array.
pub(super) fn generalize_path(pointer: &Pointer, arguments: Option<&Object>) -> String {
    let mut path = Pointer::root();
    let mut members = arguments;
    let mut items: Option<&Vec<Value>> = None;
    for segment in pointer.segments() {
        let value = match (members, items) {
            (Some(members), _) => {
                path.push(&segment);
                members.get(&segment)
            }
            (None, Some(items)) => {
                path.push(ITEMS);
                segment.parse().ok().and_then(|at: usize| items.get(at))
            }
            (None, None) => {
                path.push(&segment);
                None
            }
        };
        members = value.and_then(Value::as_object);
        items = value.and_then(Value::as_array);
    }
    path.as_str().to_owned()
}

/// The JSON type of a value, by the equality of JSON Schema.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a number is whole, decided from its text because it may exceed any number type.
fn is_integer(number: &Number) -> bool {
    let text = number.to_string();
    let text = text.trim_start_matches(['-', '+']);
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let significant = format!("{whole}{fraction}");
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        return true;
    }
    let zeros = significant.len() - trimmed.len();
    let Ok(exponent) = exponent.parse::<i64>() else {
        return !exponent.starts_with('-');
    };
    let places = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    exponent.saturating_add(places(zeros)) >= places(fraction.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwarden_model::json::parse;

    use super::*;

    #[test]
    fn whole_numbers_are_integers_however_they_are_spelled() {
        for (text, expected) in [
            ("3", "integer"),
            ("3.0", "integer"),
            ("-0.0", "integer"),
            ("1e2", "integer"),
            ("1.5E1", "integer"),
            ("1.5", "number"),
            ("1e-1", "number"),
            ("10e-1", "integer"),
            ("12345678901234567890123.0", "integer"),
            ("1e99999", "integer"),
        ] {
            assert_eq!(json_type(&parse(text).unwrap().value), expected, "{text}");
        }
    }

    #[test]
    fn every_place_is_counted_against_what_could_have_had_it() {
        let schema = json!({"properties": {"a": {}, "list": {"items": {"properties": {"x": {}}}}},
            "required": ["a"]});
        let mut shape = ArgumentShape::default();
        let values = [
            json!({"a": 1, "list": [{"x": 1}, {"x": "s", "*": null}, {}]}),
            json!({"a": 2.0, "list": []}),
            json!({"b": true}),
        ];
        let extra = values.map(|value| shape.observe(value.as_object().unwrap(), &schema));
        shape.finish();
        assert_eq!(
            extra.map(|it| it.into_iter().collect::<Vec<_>>()),
            [
                vec!["/list/*/~2".to_owned()],
                Vec::new(),
                vec!["/b".to_owned()]
            ]
        );
        let told: Vec<String> = shape
            .paths
            .iter()
            .map(|(path, it)| format!("{path} {:?} {} {:?}", it.declared, it.present, it.types))
            .collect();
        assert_eq!(
            told,
            [
                r#"/a Required 2 of 3 {"integer": 2}"#,
                r#"/b Extra 1 of 3 {"boolean": 1}"#,
                r#"/list Optional 2 of 3 {"array": 2}"#,
                r#"/list/* Open 1 of 2 {"object": 3}"#,
                r#"/list/*/x Optional 2 of 3 {"integer": 1, "string": 1}"#,
                r#"/list/*/~2 Extra 1 of 3 {"null": 1}"#,
            ]
        );
    }

    #[test]
    fn shapes_are_bounded() {
        let mut shape = ArgumentShape::default();
        let wide: Object = (0..5_000).map(|it| (format!("k{it}"), json!(it))).collect();
        shape.observe(&wide, &json!({}));
        assert_eq!((shape.paths.len(), shape.dropped), (2_000, 3_000));
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({"d": deep});
        }
        let mut shape = ArgumentShape::default();
        shape.observe(deep.as_object().unwrap(), &json!({}));
        assert_eq!((shape.paths.len(), shape.dropped), (MAX_DEPTH, 1));
    }

    #[test]
    fn places_in_arrays_are_one_place() {
        let value = json!({"a": [{"0": 1}]});
        let of = |text: &str| generalize_path(&Pointer::from(text), value.as_object());
        assert_eq!(of("/a/0/0"), "/a/*/0");
        assert_eq!(of("/a/7/x"), "/a/*/x");
        assert_eq!(of("/z/0"), "/z/0");
        assert_eq!(of(""), "");
    }
}
