use serde_json::{Map, Value};

/// The smallest value reached by taking parts away while it still proves what it proves.
pub(crate) fn shrink(value: Value, tries: u32, proves: &dyn Fn(&Value) -> bool) -> Value {
    let mut current = value;
    let mut left = tries;
    loop {
        let mut smaller = None;
        for candidate in smaller_values(&current) {
            if left == 0 {
                return current;
            }
            left -= 1;
            if proves(&candidate) {
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

/// Values one step simpler than the given one, the boldest step first.
fn smaller_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let mut smaller = containers_inside(value);
            smaller.extend(
                members
                    .keys()
                    .map(|key| Value::Object(without(members, key))),
            );
            for (key, member) in members {
                smaller.extend(smaller_values(member).into_iter().map(|member| {
                    let mut members = members.clone();
                    members.insert(key.clone(), member);
                    Value::Object(members)
                }));
            }
            smaller
        }
        Value::Array(items) => {
            let mut smaller = containers_inside(value);
            if items.len() > 3 {
                let half = items.iter().take(items.len() / 2).cloned();
                smaller.push(Value::Array(half.collect()));
            }
            smaller.extend((0..items.len().min(32)).map(|index| {
                let mut items = items.clone();
                items.remove(index);
                Value::Array(items)
            }));
            for (index, item) in items.iter().enumerate().take(8) {
                smaller.extend(smaller_values(item).into_iter().map(|item| {
                    let mut items = items.clone();
                    if let Some(slot) = items.get_mut(index) {
                        *slot = item;
                    }
                    Value::Array(items)
                }));
            }
            smaller
        }
        Value::String(text) if !text.is_empty() => {
            let characters: Vec<char> = text.chars().collect();
            let take =
                |count: usize| Value::from(characters.iter().take(count).collect::<String>());
            let mut smaller = vec![Value::from("")];
            if characters.len() > 1 {
                smaller.push(take(characters.len() / 2));
                smaller.push(take(characters.len() - 1));
                smaller.push(Value::from(characters.iter().skip(1).collect::<String>()));
            }
            smaller
        }
        Value::Number(number) if number.as_i64() != Some(0) => {
            let mut smaller = vec![Value::from(0), Value::from(1)];
            if let Some(whole) = number.as_i64().filter(|whole| whole.abs() > 1) {
                smaller.push(Value::from(whole / 2));
            }
            smaller.retain(|candidate| candidate != value);
            if number.as_i64() == Some(1) {
                smaller.truncate(1);
            }
            smaller
        }
        Value::Bool(true) => vec![Value::Bool(false)],
        Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The objects and arrays one or two levels inside a value: where a schema is recursive, one of
/// them may stand in its place.
fn containers_inside(value: &Value) -> Vec<Value> {
    let children = |value: &Value| -> Vec<Value> {
        let members: Vec<&Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().take(8).collect(),
            _ => Vec::new(),
        };
        let containers = members
            .into_iter()
            .filter(|m| m.is_object() || m.is_array());
        containers.cloned().collect()
    };
    let mut inside = children(value);
    let deeper: Vec<Value> = inside.iter().flat_map(children).collect();
    inside.extend(deeper);
    inside.reverse();
    inside
}

fn without(members: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let rest = members.iter().filter(|(name, _)| *name != key);
    rest.map(|(name, member)| (name.clone(), member.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_only_what_proves() {
        let value = json!({"a": "hello", "b": [1, 2, 3], "c": {"d": 7, "e": "long text"}});
        let proves = |value: &Value| {
            value
                .pointer("/c/e")
                .and_then(Value::as_str)
                .is_some_and(|text| text.len() > 2)
        };
        let smallest = shrink(value, 500, &proves);
        assert_eq!(smallest, json!({"c": {"e": "lon"}}));
    }

    #[test]
    fn ends_on_numbers_and_within_its_tries() {
        assert_eq!(shrink(json!(1), 100, &|_| true), json!(0));
        assert_eq!(
            shrink(json!(-5.5), 100, &|v| v.as_f64() < Some(-5.0)),
            json!(-5.5)
        );
        assert_eq!(shrink(json!("abcdef"), 0, &|_| true), json!("abcdef"));
    }
}
