use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, to_canonical_string};

/// One place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference<'v> {
    pub(crate) pointer: Pointer,
    pub(crate) before: Option<&'v Value>,
    pub(crate) after: Option<&'v Value>,
}

/// The places where two values differ, each as deep as possible. Key order and the spelling of numbers
/// do not count as differences.
pub(crate) fn differences<'v>(old: &'v Value, new: &'v Value) -> Vec<Difference<'v>> {
    let mut found = Vec::new();
    visit(old, new, &mut Pointer::root(), &mut found);
    found
}

fn visit<'v>(old: &'v Value, new: &'v Value, at: &mut Pointer, found: &mut Vec<Difference<'v>>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => members(old, new, at, found),
        (Value::Array(old), Value::Array(new)) if comparable(old, new) => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                at.push(&index.to_string());
                visit(old, new, at, found);
                at.pop();
            }
        }
        _ if old == new => {}
        (Value::Number(_), Value::Number(_))
            if to_canonical_string(old) == to_canonical_string(new) => {}
        _ => found.push(Difference {
            pointer: at.clone(),
            before: Some(old),
            after: Some(new),
        }),
    }
}

fn members<'v>(
    old: &'v Object,
    new: &'v Object,
    at: &mut Pointer,
    found: &mut Vec<Difference<'v>>,
) {
    for (key, before) in old {
        at.push(key);
        match new.get(key) {
            Some(after) => visit(before, after, at, found),
            None => found.push(Difference {
                pointer: at.clone(),
                before: Some(before),
                after: None,
            }),
        }
        at.pop();
    }
    for (key, after) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
        found.push(Difference {
            pointer: at.child(key),
            before: None,
            after: Some(after),
        });
    }
}

/// Compares lists of objects of the same length item by item, and any other lists as one value.
fn comparable(old: &[Value], new: &[Value]) -> bool {
    old.len() == new.len() && old.iter().chain(new).all(Value::is_object)
}

/// Whether two values are equal including key order. It looks up no keys, because most tools of a list
/// did not change at all.
pub(crate) fn is_identical(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && old
                    .iter()
                    .zip(new)
                    .all(|((a, before), (b, after))| a == b && is_identical(before, after))
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(a, b)| is_identical(a, b))
        }
        _ => old == new,
    }
}

/// A copy of a value with one difference applied.
pub(crate) fn apply(old: &Value, differences: &[&Difference<'_>]) -> Value {
    let mut changed = old.clone();
    for difference in differences {
        let mut parent = difference.pointer.clone();
        let Some(last) = parent.segments().last() else {
            if let Some(after) = difference.after {
                changed = after.clone();
            }
            continue;
        };
        parent.pop();
        match (changed.pointer_mut(parent.as_str()), difference.after) {
            (Some(Value::Object(members)), Some(after)) => {
                members.insert(last, after.clone());
            }
            (Some(Value::Object(members)), None) => {
                members.shift_remove(&last);
            }
            (Some(Value::Array(items)), Some(after)) => {
                let slot = last
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get_mut(index));
                if let Some(slot) = slot {
                    *slot = after.clone();
                }
            }
            _ => {}
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_as_deep_as_they_can_be() {
        let old = json!({"a": {"b": 1, "c": [1, 2]}, "d": [{"e": 1}, {"e": 2}], "gone": 1});
        let new = json!({"d": [{"e": 1}, {"e": 3}], "a": {"c": [2, 1], "b": 1.0}, "come": 2});
        let found = differences(&old, &new);
        let places: Vec<&str> = found.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(places, ["/a/c", "/d/1/e", "/gone", "/come"]);
        let all: Vec<&Difference<'_>> = found.iter().collect();
        assert!(differences(&apply(&old, &all), &new).is_empty());
    }
}
