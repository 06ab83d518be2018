//! Calls that are still accepted but have a different effect.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_schema::{Callers, SchemaPair, SchemaVerdict, ValueDomain};

use super::value_path::ValuePath;
use crate::change::CallEffect;
use crate::options::Options;

/// The deepest chain of references that is followed.
const MAX_DEPTH: usize = 32;

/// A value that a schema accepts, as small as the search makes it.
pub(super) fn find_accepted_value(
    schema: &Value,
    domain: ValueDomain,
    options: &Options,
) -> Option<Value> {
    let nothing = Value::Bool(false);
    let pair = SchemaPair::new(schema, &nothing, domain, options.formats, options.budget);
    match pair.ok()?.verdict(Callers::Declared) {
        SchemaVerdict::Breaking(witness) => Some(witness.value),
        SchemaVerdict::Equivalent(_)
        | SchemaVerdict::Compatible { .. }
        | SchemaVerdict::Unknown(_) => None,
    }
}

/// A call that both schemas accept, with a value for an argument that only the old one declares.
pub(super) fn find_ignored_argument(
    pair: &mut SchemaPair<'_>,
    (old, new): (&Value, &Value),
    (path, at, property): (&ValuePath, &Pointer, &Value),
    options: &Options,
) -> Option<CallEffect> {
    let values = values(property, options);
    let conditions = ValuePath::conditions(at);
    // The simplest calls first: each further base is searched only if the ones before were no use.
    let bases: [&dyn Fn() -> Option<Value>; 6] = [
        &|| Some(Value::Object(Object::new())),
        &|| find_accepted_value(old, ValueDomain::Objects, options),
        &|| find_accepted_value(new, ValueDomain::Objects, options),
        &|| find_call_with(old, (path, &conditions), "prefixItems", options),
        &|| find_call_with(old, (path, &conditions), "items", options),
        &|| find_call_with(new, (path, &[]), "prefixItems", options),
    ];
    for base in bases {
        if options.budget.time.is_over() {
            return None;
        }
        let Some(base) = base() else {
            continue;
        };
        let filled = values.iter().map(|value| path.put(&base, value.clone()));
        let calls: Vec<Value> = filled.chain([base.clone()]).collect();
        for call in calls {
            let lost = path.find(&call, &mut |place| pair.loses_member(&call, place));
            if let Some(pointer) = lost {
                return Some(CallEffect::Ignored { call, pointer });
            }
        }
    }
    None
}

/// Names for a member of a map: any, or those that match a pattern.
pub(super) fn key_names(pattern: Option<&str>, options: &Options) -> Vec<String> {
    let Some(pattern) = pattern else {
        return ["key", "other_key", "x"].map(ToOwned::to_owned).to_vec();
    };
    // A longer name is more telling than the shortest one, if the pattern leaves the choice.
    let lengths = [4, 1, 0].into_iter();
    let names = lengths.filter_map(|length| {
        let schema = json!({"type": "string", "pattern": pattern, "minLength": length});
        let name = find_accepted_value(&schema, ValueDomain::Values, options)?;
        name.as_str().map(ToOwned::to_owned)
    });
    names.collect()
}

/// A call that a schema accepts, with something at a place, under conditions on other places.
fn find_call_with(
    schema: &Value,
    (path, conditions): (&ValuePath, &[(ValuePath, Value)]),
    list_keyword: &str,
    options: &Options,
) -> Option<Value> {
    let mut schema = schema.as_object()?.clone();
    let all = schema.entry("allOf").or_insert_with(|| json!([]));
    let all = all.as_array_mut()?;
    all.push(path.presence(json!({}), list_keyword));
    let conditions = conditions.iter();
    all.extend(conditions.map(|(place, what)| place.presence(what.clone(), list_keyword)));
    find_accepted_value(&Value::Object(schema), ValueDomain::Objects, options)
}

/// Possible values of an argument, the most distinctive first.
fn values(property: &Value, options: &Options) -> Vec<Value> {
    let default = property.get("default");
    let list = |key: &str| property.get(key).and_then(Value::as_array).cloned();
    let mut values = Vec::new();
    let kind = property.get("type").and_then(Value::as_str);
    if kind == Some("boolean") {
        let opposite = default != Some(&Value::Bool(true));
        values.extend([Value::Bool(opposite), Value::Bool(!opposite)]);
    }
    let listed = list("enum").into_iter().flatten();
    values.extend(
        listed
            .filter(|value| Some(value) != default && !value.is_null())
            .take(4),
    );
    values.extend(property.get("const").cloned());
    values.extend(list("examples").into_iter().flatten().take(2));
    values.extend(default.filter(|it| !it.is_null()).cloned());
    match kind {
        Some("string") => values.push(json!("a")),
        Some("integer" | "number") => values.push(json!(1)),
        _ => {}
    }
    values.extend(find_accepted_value(property, ValueDomain::Values, options));
    values.extend([json!(true), json!("a"), json!(1), json!({}), json!([])]);
    values
}

/// The effect of a changed default on a call that omits the argument. The caller of this function
/// states whether the tool writes.
pub(super) fn default_effect(
    pair: &mut SchemaPair<'_>,
    (old, new): (&Value, &Value),
    at: &Pointer,
    options: &Options,
) -> Option<CallEffect> {
    let mut property = at.clone();
    property.pop();
    if is_required(new, &property) {
        return None;
    }
    let (before, after) = (at.find(old), at.find(new));
    let schema = property.find(new).or_else(|| property.find(old));
    let is_choice = schema.is_some_and(|schema| {
        schema.get("enum").is_some() || schema.get("type").is_some_and(|it| it == "boolean")
    });
    let is_truth = |value: Option<&Value>| value.is_some_and(Value::is_boolean);
    let calls = ValuePath::of(&property)
        .and_then(|path| completed(pair, old, &path, (before, after), options));
    Some(CallEffect::Default {
        calls,
        replaced: before.is_some_and(|before| after.is_some() || !before.is_null()),
        switch: is_choice || is_truth(before) || is_truth(after),
        writes: true,
    })
}

/// A call that omits an argument, completed with the old default and with the new one.
pub(super) fn completed(
    pair: &mut SchemaPair<'_>,
    old: &Value,
    path: &ValuePath,
    (before, after): (Option<&Value>, Option<&Value>),
    options: &Options,
) -> Option<(Value, Value)> {
    let empty = Value::Object(Object::new());
    let base = if pair.old_accepts(&empty) {
        empty
    } else {
        find_accepted_value(old, ValueDomain::Objects, options)?
    };
    let base = path.without(&base);
    let completed = |value: Option<&Value>| match value {
        Some(value) => path.put(&base, value.clone()),
        None => base.clone(),
    };
    Some((completed(before), completed(after)))
}

fn is_required(schema: &Value, property: &Pointer) -> bool {
    let mut holder = property.clone();
    let Some(name) = property.segments().last() else {
        return false;
    };
    holder.pop();
    holder.pop();
    let required = holder.find(schema).and_then(|it| it.get("required"));
    let mut names = required.and_then(Value::as_array).into_iter().flatten();
    names.any(|it| it.as_str() == Some(&name))
}

/// Whether an object schema, or one of the schemas it is composed of, still describes a member.
pub(super) fn declares(root: &Value, schema: &Value, name: &str) -> bool {
    mentions_member(root, schema, name, 0)
}

fn mentions_member(root: &Value, schema: &Value, name: &str, depth: usize) -> bool {
    let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return false;
    };
    let inner = |schema: &Value| mentions_member(root, schema, name, depth + 1);
    members
        .iter()
        .any(|(keyword, value)| match keyword.as_str() {
            "properties" => value.get(name).is_some(),
            // A map from arbitrary keys to values reads every key.
            "patternProperties" => value.as_object().is_some_and(|it| !it.is_empty()),
            "additionalProperties" | "unevaluatedProperties" => {
                value.as_object().is_some_and(|it| !it.is_empty())
            }
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().any(inner),
            "then" | "else" | "if" => inner(value),
            "dependentSchemas" => {
                let schemas = value.as_object().into_iter().flat_map(Object::values);
                schemas.into_iter().any(inner)
            }
            "$ref" => {
                let target = value.as_str().and_then(|it| it.strip_prefix('#'));
                let target = target.and_then(|it| root.pointer(it));
                target.is_some_and(inner)
            }
            _ => false,
        })
}
