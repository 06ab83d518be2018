use serde_json::Value;

use crate::comparison_policy::SearchBudget;

/// The most simplifications of one value that are considered.
const MAX_EDITS: usize = 1_000;
/// How many bytes one try may cost: larger values get fewer tries.
const BYTES_PER_TRY: usize = 65_536;

/// The smallest value reached by removing parts while it is still a witness.
pub(crate) fn shrink(
    value: Value,
    budget: &SearchBudget,
    proves: &dyn Fn(&Value) -> bool,
) -> Value {
    let mut current = value;
    let mut left = budget.shrinks;
    loop {
        let mut smaller = None;
        let cost = u32::try_from(size(&current) / BYTES_PER_TRY).unwrap_or(u32::MAX);
        for edit in edits(&current) {
            if left == 0 || budget.time.is_over() {
                return current;
            }
            left = left.saturating_sub(cost.saturating_add(1));
            let mut candidate = current.clone();
            if edit.apply(&mut candidate) && proves(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(candidate) => current = candidate,
            None => return current,
        }
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    let mut open = vec![value];
    let mut size = 0;
    while let Some(value) = open.pop() {
        size += 32;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(text) => size += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

/// One simplification of a part of a value.
#[derive(Clone, Debug)]
struct Simplification {
    /// The path to the part.
    path: Vec<PathStep>,
    replacement: Replacement,
}

#[derive(Clone, Debug)]
enum PathStep {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug)]
enum Replacement {
    /// The part replaces the value that encloses it, this many levels up.
    InPlaceOf(usize),
    /// The part is removed from the value that encloses it.
    Removed,
    /// The list keeps its first items only.
    Truncated(usize),
    /// The part becomes something simpler.
    Simpler(Value),
}

/// The simplifications of a value, those near the root first.
fn edits(value: &Value) -> Vec<Simplification> {
    let mut found = Vec::new();
    let mut open: std::collections::VecDeque<(Vec<PathStep>, &Value)> =
        [(Vec::new(), value)].into();
    while let Some((path, part)) = open.pop_front() {
        if found.len() > MAX_EDITS {
            break;
        }
        let mut add = |replacement| {
            found.push(Simplification {
                path: path.clone(),
                replacement,
            });
        };
        // If a schema is recursive, a part may replace the whole.
        if part.is_object() || part.is_array() {
            (1..=path.len().min(2))
                .rev()
                .for_each(|levels| add(Replacement::InPlaceOf(levels)));
        }
        if !path.is_empty() {
            add(Replacement::Removed);
        }
        match part {
            Value::Array(items) if items.len() > 3 => add(Replacement::Truncated(items.len() / 2)),
            _ => {}
        }
        simpler(part)
            .into_iter()
            .for_each(|value| add(Replacement::Simpler(value)));
        let inside = |step: PathStep| {
            path.iter()
                .cloned()
                .chain([step])
                .collect::<Vec<PathStep>>()
        };
        match part {
            Value::Object(members) => {
                open.extend(
                    members
                        .iter()
                        .map(|(key, member)| (inside(PathStep::Key(key.clone())), member)),
                );
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, item)| (inside(PathStep::Index(index)), item)));
            }
            _ => {}
        }
    }
    found
}

impl Simplification {
    /// Whether the edit could be made.
    fn apply(&self, value: &mut Value) -> bool {
        match &self.replacement {
            Replacement::InPlaceOf(levels) => {
                let Some(part) = find(value, &self.path).map(|part| part.take()) else {
                    return false;
                };
                let outer = self.path.len().saturating_sub(*levels);
                let outer: Vec<PathStep> = self.path.iter().take(outer).cloned().collect();
                find(value, &outer).map(|slot| *slot = part).is_some()
            }
            Replacement::Removed => self.remove(value),
            Replacement::Truncated(length) => match find(value, &self.path) {
                Some(Value::Array(items)) => {
                    items.truncate(*length);
                    true
                }
                _ => false,
            },
            Replacement::Simpler(simpler) => find(value, &self.path)
                .map(|slot| slot.clone_from(simpler))
                .is_some(),
        }
    }

    fn remove(&self, value: &mut Value) -> bool {
        let Some((last, outer)) = self.path.split_last() else {
            return false;
        };
        match (find(value, outer), last) {
            (Some(Value::Object(members)), PathStep::Key(key)) => {
                members.shift_remove(key).is_some()
            }
            (Some(Value::Array(items)), PathStep::Index(index)) if *index < items.len() => {
                items.remove(*index);
                true
            }
            _ => false,
        }
    }
}

fn find<'v>(value: &'v mut Value, path: &[PathStep]) -> Option<&'v mut Value> {
    path.iter()
        .try_fold(value, |value, step| match (value, step) {
            (Value::Object(members), PathStep::Key(key)) => members.get_mut(key),
            (Value::Array(items), PathStep::Index(index)) => items.get_mut(*index),
            _ => None,
        })
}

/// Plain values simpler than the given one, the boldest first.
fn simpler(value: &Value) -> Vec<Value> {
    match value {
        // Copies of a long text cost more than a shorter witness is worth.
        Value::String(text) if text.len() > BYTES_PER_TRY => vec![Value::from("")],
        Value::String(text) if !text.is_empty() => {
            let characters: Vec<char> = text.chars().collect();
            let take =
                |count: usize| Value::from(characters.iter().take(count).collect::<String>());
            let mut simpler = vec![Value::from("")];
            if characters.len() > 1 {
                simpler.push(take(characters.len() / 2));
                simpler.push(take(characters.len() - 1));
                simpler.push(Value::from(characters.iter().skip(1).collect::<String>()));
            }
            simpler
        }
        Value::Number(number) => match number.as_i64() {
            Some(0) => Vec::new(),
            Some(1) => vec![Value::from(0)],
            Some(whole) => vec![Value::from(0), Value::from(1), Value::from(whole / 2)],
            None => vec![Value::from(0), Value::from(1)],
        },
        Value::Bool(true) => vec![Value::Bool(false)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tries(shrinks: u32) -> SearchBudget {
        SearchBudget {
            shrinks,
            ..SearchBudget::default()
        }
    }

    #[test]
    fn keeps_only_what_proves() {
        let value = json!({"a": "hello", "b": [1, 2, 3], "c": {"d": 7, "e": "long text"}});
        let long = |value: &Value| {
            let text = value.pointer("/c/e").and_then(Value::as_str);
            text.is_some_and(|text| text.len() > 2)
        };
        assert_eq!(
            shrink(value, &tries(500), &long),
            json!({"c": {"e": "lon"}})
        );
    }

    #[test]
    fn a_part_may_take_the_place_of_the_whole() {
        let nested = json!({"kids": [{"kids": [{"v": 5}]}]});
        let deep = |value: &Value| value.to_string().contains("\"v\":5");
        assert_eq!(shrink(nested, &tries(500), &deep), json!({"v": 5}));
    }

    #[test]
    fn ends_on_numbers_and_within_its_tries() {
        assert_eq!(shrink(json!(1), &tries(100), &|_| true), json!(0));
        let below = |value: &Value| value.as_f64() < Some(-5.0);
        assert_eq!(shrink(json!(-5.5), &tries(100), &below), json!(-5.5));
        assert_eq!(
            shrink(json!("abcdef"), &tries(0), &|_| true),
            json!("abcdef")
        );
    }
}
