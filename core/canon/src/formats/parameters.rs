//! Parameters that are listed one by one, with their own words for what a schema says.

use std::collections::BTreeSet;

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
        let read = read_parameter(parameter.as_object()?);
        if read.is_required {
            required.push(Value::from(name));
        }
        // Of two parameters of one name, no reader knows which counts.
        if properties
            .insert(name.to_owned(), Value::Object(read.schema))
            .is_some()
        {
            return None;
        }
    }
    Some(json!({ "type": "object", "properties": properties, "required": required }))
}

/// The schema of one parameter: its own schema where it has one, else what its words say.
pub(super) fn parameter_schema(parameter: &Object) -> Object {
    read_parameter(parameter).schema
}

/// What the members of one parameter say.
struct ParameterReading {
    schema: Object,
    is_required: bool,
    /// The members that neither the schema nor `is_required` expresses.
    remainder: Object,
    /// The key of a type that no schema expresses.
    unknown_type: Option<&'static str>,
}

/// Reads one parameter. A member counts as read only if its value is in the result.
fn read_parameter(parameter: &Object) -> ParameterReading {
    // Members with nothing to say, and members whose value is in the result.
    let mut read: BTreeSet<&str> = BTreeSet::from(["name"]);
    let is_object = |value: &Value| value.is_object();
    let own = first_of(&SCHEMA_KEYS, parameter, is_object);
    let mut schema = match own {
        Some((_, Value::Object(schema))) => schema.clone(),
        _ => Object::new(),
    };
    if let Some((_, own)) = own {
        read.extend(same_as(&SCHEMA_KEYS, parameter, own));
    }
    let is_said = |value: &Value| !value.is_null();
    let mut unknown_type = None;
    if let Some((key, word)) = first_of(&TYPE_KEYS, parameter, is_said) {
        let said = type_of(word);
        let is_typed = schema.contains_key("type");
        let agrees = said.schema.iter().all(|(keyword, value)| {
            let own = schema.get(keyword);
            own == Some(value) || (own.is_none() && !is_typed)
        });
        // A schema with a type says more than a type that no schema expresses.
        if agrees && (is_typed || said.is_exact) {
            read.extend(same_as(&TYPE_KEYS, parameter, word));
        } else if !is_typed && !said.is_exact {
            unknown_type = Some(key);
        }
        if agrees {
            schema.extend(said.schema);
        }
    }
    for keyword in ["description"].iter().chain(SCHEMA_KEYWORDS) {
        if let Some(value) = parameter.get(*keyword).filter(|it| !it.is_null())
            && is_inserted(&mut schema, keyword, value)
        {
            read.insert(keyword);
        }
    }
    // A list of names is about the members of the parameter, not about the parameter.
    if let Some(names @ Value::Array(_)) = parameter.get("required")
        && is_inserted(&mut schema, "required", names)
    {
        read.insert("required");
    }
    if let Some((_, default)) = first_of(&DEFAULT_KEYS, parameter, is_said) {
        read.extend(same_as(&DEFAULT_KEYS, parameter, default));
        let replaced = schema.insert("default".to_owned(), default.clone());
        if replaced.is_some_and(|it| it != *default) {
            // The default of the parameter's own schema is lost.
            SCHEMA_KEYS.iter().for_each(|key| {
                read.remove(key);
            });
        }
    }
    let said = first_of(&REQUIRED_KEYS, parameter, Value::is_boolean);
    let optional = parameter.get("optional").and_then(Value::as_bool);
    let is_required =
        said.is_some_and(|(_, it)| *it == Value::Bool(true)) || optional == Some(false);
    read.extend(same_as(
        &REQUIRED_KEYS,
        parameter,
        &Value::Bool(is_required),
    ));
    if optional == Some(!is_required) {
        read.insert("optional");
    }
    let members = parameter.iter();
    let remainder = members
        .filter(|(key, value)| !read.contains(key.as_str()) && !is_silent(key, value, parameter))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    ParameterReading {
        schema,
        is_required,
        remainder,
        unknown_type,
    }
}

/// The first spelling of a member whose value passes a test.
fn first_of<'p>(
    spellings: &[&'static str],
    parameter: &'p Object,
    test: impl Fn(&Value) -> bool,
) -> Option<(&'static str, &'p Value)> {
    let mut spellings = spellings.iter();
    spellings.find_map(|key| Some((*key, parameter.get(*key).filter(|it| test(it))?)))
}

/// The spellings of a member that have this value.
fn same_as(
    spellings: &[&'static str],
    parameter: &Object,
    value: &Value,
) -> impl Iterator<Item = &'static str> {
    let spellings = spellings.iter().copied();
    let same = spellings.filter(|key| parameter.get(*key) == Some(value));
    same.collect::<Vec<_>>().into_iter()
}

/// Puts a keyword into a schema, and returns whether the schema has this value of it now. A value that
/// the schema already has stays.
fn is_inserted(schema: &mut Object, keyword: &str, value: &Value) -> bool {
    match schema.get(keyword) {
        Some(own) => own == value,
        None => {
            schema.insert(keyword.to_owned(), value.clone());
            true
        }
    }
}

/// Whether a member is a null that says the same as no member. Beside another spelling that has a value
/// it is not: readers may take either.
fn is_silent(key: &str, value: &Value, parameter: &Object) -> bool {
    let groups: [&[&str]; 4] = [&SCHEMA_KEYS, &TYPE_KEYS, &REQUIRED_KEYS, &DEFAULT_KEYS];
    let group = groups.into_iter().find(|group| group.contains(&key));
    let mut spellings = group.into_iter().flatten();
    let is_alone = spellings.all(|it| parameter.get(*it).is_none_or(Value::is_null));
    value.is_null() && is_alone && key != "const"
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
        let parameter = it.as_object()?;
        let mut rest = parameter_remainder(parameter);
        // In a map, the key is the name.
        let other = parameter.get("name").filter(|it| !it.is_null());
        if let Some(other) = other.filter(|it| it.as_str() != Some(name)) {
            rest.insert("name".to_owned(), other.clone());
        }
        (!rest.is_empty()).then(|| (name.to_owned(), Value::Object(rest)))
    });
    let members: Object = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The members of one parameter that [`parameter_schema`] does not carry over.
pub(super) fn parameter_remainder(parameter: &Object) -> Object {
    read_parameter(parameter).remainder
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
        let key = read_parameter(it.as_object()?).unknown_type?;
        Some((at.child(key), it.get(key)?.as_str()?.to_owned()))
    });
    unknown.collect()
}

fn type_of(word: &Value) -> PythonType {
    let (schema, is_exact) = match word {
        Value::String(word) => return schema_of_python(word),
        // A list of types, as in a schema.
        words @ Value::Array(_) => (Some(("type".to_owned(), words.clone())), true),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => (None, false),
    };
    PythonType {
        schema: schema.into_iter().collect(),
        is_exact,
    }
}

fn name_of(parameter: &Value) -> Option<&str> {
    parameter.get("name")?.as_str()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_parameters_are_in_the_schema_or_the_remainder() {
        let all = |parameter: &Value| {
            let list = json!([parameter]);
            (schema_of_list(&list), remainder_of_list(&list))
        };
        for (old, new) in [
            (
                json!({"name": "o", "type": "object", "properties": {"x": {}}}),
                json!({"name": "o", "type": "object", "properties": {"x": {}}, "required": ["x"]}),
            ),
            (
                json!({"name": "o", "type": "str", "required": "false"}),
                json!({"name": "o", "type": "str", "required": "true"}),
            ),
            (
                json!({"name": "o", "is_required": false, "required": false}),
                json!({"name": "o", "is_required": false, "required": true}),
            ),
            (
                json!({"name": "o", "required": true, "optional": false}),
                json!({"name": "o", "required": true, "optional": true}),
            ),
            (
                json!({"name": "o", "schema_data": null, "schema": {"type": "integer"}}),
                json!({"name": "o", "schema_data": null, "schema": {"type": "string"}}),
            ),
            (
                json!({"name": "o", "default_value": null, "default": "staging"}),
                json!({"name": "o", "default_value": null, "default": "production"}),
            ),
            (
                json!({"name": "o", "default": "a", "schema": {"default": "a"}}),
                json!({"name": "o", "default": "a", "schema": {"default": "b"}}),
            ),
            (
                json!({"name": "o", "enum": ["a", "b"], "schema": {"enum": ["a", "b", "c"]}}),
                json!({"name": "o", "enum": ["a"], "schema": {"enum": ["a", "b", "c"]}}),
            ),
            (
                json!({"name": "o", "type": "str", "schema": {"type": "string"}}),
                json!({"name": "o", "type": "int", "schema": {"type": "string"}}),
            ),
            (
                json!({"name": "o", "type_": "Literal['a']", "schema": {"enum": ["a"]}}),
                json!({"name": "o", "type_": "Literal['a']", "schema": {"enum": ["b"]}}),
            ),
            (
                json!({"name": "o", "type": "str"}),
                json!({"name": "o", "type": "str", "const": null}),
            ),
        ] {
            assert_ne!(all(&old), all(&new), "{old} {new}");
        }
        let renamed = json!({"o": {"name": "p", "type": "str"}});
        assert_eq!(
            remainder_of_map(&renamed),
            Some(json!({"o": {"name": "p"}}))
        );
    }

    #[test]
    fn members_that_the_schema_expresses_are_no_remainder() {
        for (parameter, schema, is_required) in [
            (
                json!({"name": "a", "description": "d", "default_value": null, "type_": "str",
                    "is_required": true, "schema_data": {"type": "string", "description": "d"}}),
                json!({"type": "string", "description": "d"}),
                true,
            ),
            (
                json!({"name": "a", "type_": "Invoice", "schema_data": {"type": "object"}}),
                json!({"type": "object"}),
                false,
            ),
            (
                json!({"type": "object", "properties": {"x": {}}, "required": ["x"], "optional": false}),
                json!({"type": "object", "properties": {"x": {}}, "required": ["x"]}),
                true,
            ),
            (
                json!({"type": "int", "required": false, "optional": true, "default": 3, "x": null}),
                json!({"type": "integer", "default": 3}),
                false,
            ),
        ] {
            let read = read_parameter(parameter.as_object().unwrap());
            assert_eq!(Value::Object(read.schema), schema, "{parameter}");
            assert_eq!(read.is_required, is_required, "{parameter}");
            assert_eq!(read.remainder, Object::new(), "{parameter}");
        }
    }

    #[test]
    fn only_types_that_no_schema_expresses_are_unknown() {
        let list = json!([
            {"name": "a", "type": "Image"},
            {"name": "b", "type": "int", "schema": {"type": "string"}},
            {"name": "c", "type_": "Invoice", "schema": {"type": "object"}},
        ]);
        let image = (Pointer::of(["0", "type"]), "Image".to_owned());
        assert_eq!(unknown_types(&list), [image]);
    }
}
