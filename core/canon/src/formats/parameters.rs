//! Parameters that are listed one by one, with their own words for what a schema says.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use super::python_types::{PythonType, schema_of_python};

/// Where a parameter has a schema of its own.
const SCHEMA_KEYS: [&str; 2] = ["schema_data", "schema"];

/// Where it names its type.
const TYPE_KEYS: [&str; 2] = ["type_", "type"];

/// Where it says whether callers must pass it.
const REQUIRED_KEYS: [&str; 3] = ["is_required", "isRequired", "required"];

/// Where it says what it is if callers leave it out.
const DEFAULT_KEYS: [&str; 3] = ["default_value", "defaultValue", "default"];

/// Keywords that mean the same in a parameter as in a schema.
const SCHEMA_KEYWORDS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "title",
    "uniqueItems",
];

/// The schema of a list of parameters, each of which names itself.
pub(super) fn schema_of_list(value: &Value) -> Option<Value> {
    let parameters = value.as_array()?.iter().map(|it| Some((name_of(it)?, it)));
    schema_of(parameters.collect::<Option<Vec<_>>>()?)
}

/// The schema of a map from names to parameters.
pub(super) fn schema_of_map(value: &Value) -> Option<Value> {
    let parameters = value.as_object()?.iter();
    schema_of(parameters.map(|(name, it)| (name.as_str(), it)).collect())
}

fn schema_of(parameters: Vec<(&str, &Value)>) -> Option<Value> {
    let mut properties = Object::new();
    let mut required = Vec::new();
    for (name, parameter) in parameters {
        let schema = parameter_schema(parameter.as_object()?);
        if is_required(parameter) {
            required.push(Value::from(name));
        }
        // Of two parameters of one name, no reader knows which counts.
        if properties
            .insert(name.to_owned(), Value::Object(schema))
            .is_some()
        {
            return None;
        }
    }
    Some(json!({ "type": "object", "properties": properties, "required": required }))
}

/// The schema of one parameter: its own schema where it has one, else what its words say.
pub(super) fn parameter_schema(parameter: &Object) -> Object {
    let own = SCHEMA_KEYS.iter().find_map(|key| parameter.get(*key));
    let mut schema = match own {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Object::new(),
    };
    if !schema.contains_key("type")
        && let Some(said) = type_of(parameter)
    {
        schema.extend(said.schema);
    }
    for keyword in ["description"].iter().chain(SCHEMA_KEYWORDS) {
        if let Some(value) = parameter.get(*keyword).filter(|it| !it.is_null())
            && !schema.contains_key(*keyword)
        {
            schema.insert((*keyword).to_owned(), value.clone());
        }
    }
    let default = DEFAULT_KEYS.iter().find_map(|key| parameter.get(*key));
    if let Some(default) = default.filter(|it| !it.is_null()) {
        schema.insert("default".to_owned(), default.clone());
    }
    schema
}

/// The members of listed parameters that [`schema_of_list`] does not carry over, by parameter.
pub(super) fn remainder_of_list(value: &Value) -> Option<Value> {
    let parameters = value.as_array()?.iter();
    remainder_of(parameters.filter_map(|it| Some((name_of(it)?, it))))
}

/// The members of mapped parameters that [`schema_of_map`] does not carry over, by parameter.
pub(super) fn remainder_of_map(value: &Value) -> Option<Value> {
    let parameters = value.as_object()?.iter();
    remainder_of(parameters.map(|(name, it)| (name.as_str(), it)))
}

fn remainder_of<'v>(parameters: impl Iterator<Item = (&'v str, &'v Value)>) -> Option<Value> {
    let members = parameters.filter_map(|(name, it)| {
        let rest = parameter_remainder(it.as_object()?);
        (!rest.is_empty()).then(|| (name.to_owned(), Value::Object(rest)))
    });
    let members: Object = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The members of one parameter that [`parameter_schema`] does not carry over.
pub(super) fn parameter_remainder(parameter: &Object) -> Object {
    let has_schema = SCHEMA_KEYS
        .iter()
        .find_map(|key| parameter.get(*key))
        .and_then(Value::as_object);
    let typed = has_schema.is_some_and(|schema| schema.contains_key("type"));
    let is_carried = |key: &str, value: &Value| {
        let word = key == "name"
            || key == "description"
            || key == "optional"
            || REQUIRED_KEYS.contains(&key)
            || SCHEMA_KEYWORDS.contains(&key)
            || (DEFAULT_KEYS.contains(&key) && !value.is_null());
        let is_type =
            TYPE_KEYS.contains(&key) && (typed || type_of(parameter).is_none_or(|it| it.is_exact));
        let is_schema = SCHEMA_KEYS.contains(&key) && value.is_object();
        word || is_type || is_schema || value.is_null()
    };
    let members = parameter.iter();
    members
        .filter(|(key, value)| !is_carried(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The types in a list or map of parameters that no schema can express, and where they are.
pub(super) fn unknown_types(value: &Value) -> Vec<(Pointer, String)> {
    let parameters: Vec<(Pointer, &Value)> = match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, it)| (Pointer::root().index(index), it))
                .collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, it)| (Pointer::of([name.as_str()]), it))
                .collect()
        }
        _ => Vec::new(),
    };
    let unknown = parameters.into_iter().filter_map(|(at, it)| {
        let rest = parameter_remainder(it.as_object()?);
        let key = TYPE_KEYS.iter().find(|key| rest.contains_key(**key))?;
        Some((at.child(key), rest.get(*key)?.as_str()?.to_owned()))
    });
    unknown.collect()
}

fn type_of(parameter: &Object) -> Option<PythonType> {
    let word = TYPE_KEYS.iter().find_map(|key| parameter.get(*key));
    let (schema, is_exact) = match word? {
        Value::String(word) => return Some(schema_of_python(word)),
        Value::Null => return None,
        // A list of types, as in a schema.
        words @ Value::Array(_) => (Some(("type".to_owned(), words.clone())), true),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => (None, false),
    };
    Some(PythonType {
        schema: schema.into_iter().collect(),
        is_exact,
    })
}

fn name_of(parameter: &Value) -> Option<&str> {
    parameter.get("name")?.as_str()
}

fn is_required(parameter: &Value) -> bool {
    let said = REQUIRED_KEYS.iter().find_map(|key| parameter.get(*key));
    said == Some(&Value::Bool(true)) || parameter.get("optional") == Some(&Value::Bool(false))
}

/// Whether a value looks like an input schema, or like a map from arguments to their schemas.
pub(crate) fn describes_arguments(value: &Value) -> bool {
    let Value::Object(members) = value else {
        return false;
    };
    let is_schema = members.get("properties").is_some_and(Value::is_object)
        || members.get("type").and_then(Value::as_str) == Some("object");
    let is_typed = |value: &Value| value.get("type").is_some_and(|it| it.is_string());
    is_schema || (!members.is_empty() && members.values().all(is_typed))
}
