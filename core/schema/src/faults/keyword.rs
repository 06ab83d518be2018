use serde_json::Value;
use toolwarden_model::closest;
use toolwarden_model::json::{Pointer, type_name};

use super::{Fault, FaultRule, fault};
use crate::prepare::{Draft, Form, Kind, kind};

/// The most errors of the metaschema that are looked at.
const MAX_ERRORS: usize = 32;

/// Keywords that inform, and what they must be.
const INFORMING: &[(&str, Form)] = &[
    ("title", Form::Text),
    ("description", Form::Text),
    ("$comment", Form::Text),
    ("$schema", Form::Text),
    ("$id", Form::Text),
    ("$anchor", Form::Text),
    ("$dynamicAnchor", Form::Text),
    ("format", Form::Text),
    ("contentEncoding", Form::Text),
    ("contentMediaType", Form::Text),
    ("examples", Form::List),
    ("deprecated", Form::Boolean),
    ("readOnly", Form::Boolean),
    ("writeOnly", Form::Boolean),
];

/// Keywords that no draft checks further, or only some know.
const FURTHER: &[&str] = &[
    "$defs",
    "definitions",
    "default",
    "$vocabulary",
    "$recursiveAnchor",
    "contentSchema",
    "id",
];

/// Keywords that a misspelled one may be meant to be.
const MEANT: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "anyOf",
    "allOf",
    "oneOf",
    "$ref",
    "$defs",
    "description",
];

/// Words of other vocabularies that resemble a keyword and are meant.
const OTHER_WORDS: &[&str] = &[
    "example",
    "min",
    "max",
    "item",
    "propertyNames",
    "types",
    "any_of",
];

/// What is wrong with the value of a keyword.
pub(super) fn fault_of(keyword: &str, value: &Value, draft: Draft, at: &Pointer) -> Option<Fault> {
    let place = at.child(keyword);
    let form = match kind(keyword, draft) {
        Kind::Plain(form) => form,
        Kind::Schema => return schema(keyword, value, place),
        Kind::Schemas => return list_of_schemas(keyword, value, place),
        Kind::SchemaMap => return map_of_schemas(keyword, value, place),
        Kind::Special => match keyword {
            "minimum" | "maximum" => Form::Number,
            "exclusiveMinimum" | "exclusiveMaximum" => Form::Boolean,
            "items" => return items(value, draft, place),
            "additionalItems" => return schema(keyword, value, place),
            "dependencies" => return map_of_schemas(keyword, value, place),
            _ => Form::Text,
        },
        Kind::Annotation => match INFORMING.iter().find(|(word, _)| *word == keyword) {
            Some((_, form)) => *form,
            None if matches!(keyword, "$defs" | "definitions") => {
                return map_of_schemas(keyword, value, place);
            }
            None => return unknown(keyword, draft, place),
        },
    };
    match form.check(value) {
        Ok(()) if form == Form::Names => repeated_name(value, &place),
        Ok(()) if keyword == "pattern" => pattern(value.as_str()?, place),
        Ok(()) => None,
        Err(expected) => Some(wrong_form(keyword, form, expected, value, place)),
    }
}

/// The errors of the metaschema at places where nothing was found yet.
pub(super) fn check_metaschema(schema: &Value, draft: Draft, faults: &mut Vec<Fault>) {
    let validator = match draft {
        Draft::Four => jsonschema::draft4::meta::validator(),
        Draft::Six => jsonschema::draft6::meta::validator(),
        Draft::Seven => jsonschema::draft7::meta::validator(),
        Draft::Draft2019 => jsonschema::draft201909::meta::validator(),
        Draft::Draft2020 => jsonschema::draft202012::meta::validator(),
    };
    for error in validator.iter_errors(schema).take(MAX_ERRORS) {
        let place = Pointer::from(error.instance_path().as_str());
        let known = |fault: &Fault| {
            let (a, b) = (fault.pointer.as_str(), place.as_str());
            a.starts_with(b) || b.starts_with(a)
        };
        if !faults.iter().any(known) {
            let message = format!("the metaschema does not allow it: {error}");
            let fix = "correct the value, or remove the keyword";
            faults.push(fault(FaultRule::Keyword, place, message, fix));
        }
    }
}

/// The type a word of a programming language stands for.
pub(super) fn type_for(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" | "varchar" | "char" | "date" | "datetime" | "uuid" | "file" => {
            "string"
        }
        "integer" | "int" | "int32" | "int64" | "long" | "uint" => "integer",
        "number" | "float" | "double" | "decimal" | "numeric" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" | "tuple" | "set" => "array",
        "object" | "dict" | "map" | "hash" | "record" | "struct" | "json" => "object",
        "null" | "none" | "nil" | "void" => "null",
        _ => return None,
    })
}

fn wrong_form(
    keyword: &str,
    form: Form,
    expected: &'static str,
    value: &Value,
    place: Pointer,
) -> Fault {
    if form == Form::Types {
        return wrong_type(value, place);
    }
    let message = format!("`{keyword}` must be {expected}, not {}", found(value));
    let fix = match (form, value) {
        (_, Value::Null) => format!("remove `{keyword}`"),
        (Form::Number | Form::PositiveNumber | Form::Count, Value::String(text))
            if form.check(&number(text)).is_ok() =>
        {
            format!("write {text} without quotes")
        }
        (Form::Number, Value::Bool(_)) if keyword.starts_with("exclusive") => {
            format!("put the bound itself into `{keyword}`, or name draft 4 in `$schema`")
        }
        (Form::Boolean, Value::Number(_)) if keyword.starts_with("exclusive") => {
            format!(
                "draft 4 has `{keyword}: true` beside the bound; name a newer draft in `$schema`"
            )
        }
        (Form::Boolean, Value::String(text)) if text == "true" || text == "false" => {
            format!("write {text} without quotes")
        }
        (Form::Names, Value::Bool(_)) if keyword == "required" => {
            "list the property's name in `required` of the object around it".to_owned()
        }
        (Form::Names, Value::String(name)) => format!("write [{}]", Value::from(name.as_str())),
        (Form::List, _) => format!("put the values into a list, or remove `{keyword}`"),
        _ => format!("write {expected}, or remove `{keyword}`"),
    };
    fault(FaultRule::Keyword, place, message, fix)
}

fn wrong_type(value: &Value, place: Pointer) -> Fault {
    const TYPES: &[&str] = &[
        "string", "number", "integer", "boolean", "array", "object", "null",
    ];
    let words: Vec<&Value> = match value {
        Value::Array(words) => words.iter().collect(),
        other => vec![other],
    };
    let wrong = words
        .into_iter()
        .find(|word| word.as_str().is_none_or(|word| !TYPES.contains(&word)));
    let known = TYPES.join(", ");
    match wrong.unwrap_or(value) {
        Value::String(word) => {
            let message = format!("`type` is `{word}`, which is not a type");
            let fix = match type_for(word) {
                Some(meant) => format!("write `{meant}`"),
                None if word == "any" => "remove `type`: without it every type is valid".to_owned(),
                None => match closest(word, TYPES.iter().copied()).strip_prefix(", ") {
                    Some(hint) => format!("{hint} (types: {known})"),
                    None => format!("write one of {known}"),
                },
            };
            fault(FaultRule::Keyword, place, message, fix)
        }
        other => {
            let message = format!(
                "`type` must be a type or a list of types, not {}",
                found(other)
            );
            fault(
                FaultRule::Keyword,
                place,
                message,
                format!("write one of {known}"),
            )
        }
    }
}

/// What a value is, with the value where it is short.
fn found(value: &Value) -> String {
    let kind = type_name(value);
    match value {
        Value::String(text) if text.chars().count() <= 40 => format!("{kind} {value}"),
        Value::Bool(_) | Value::Number(_) => format!("{value}"),
        _ => kind.to_owned(),
    }
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn repeated_name(value: &Value, place: &Pointer) -> Option<Fault> {
    let names = value.as_array()?;
    let (index, name) = names
        .iter()
        .enumerate()
        .find(|(index, name)| names.iter().take(*index).any(|earlier| earlier == *name))?;
    let message = format!("{name} is listed twice");
    let place = place.index(index);
    Some(fault(
        FaultRule::Keyword,
        place,
        message,
        "remove one of them",
    ))
}

/// What is wrong with a pattern.
pub(super) fn pattern(pattern: &str, place: Pointer) -> Option<Fault> {
    if jsonschema_regex::is_valid_ecma_regex(pattern) {
        return None;
    }
    let message = format!("`{pattern}` is not a regular expression of ECMA-262");
    let fix = match regex_syntax::ast::parse::Parser::new().parse(pattern) {
        Err(error) => format!(
            "{} at character {}",
            error.kind(),
            error.span().start.column
        ),
        Ok(_) => foreign_syntax(pattern).to_owned(),
    };
    Some(fault(FaultRule::Pattern, place, message, fix))
}

/// What other engines accept and ECMA-262 does not.
fn foreign_syntax(pattern: &str) -> &'static str {
    if pattern.contains("(?P<") {
        "write (?<name>…) instead of (?P<name>…)"
    } else if pattern.contains("(?i)") || pattern.contains("(?s)") || pattern.contains("(?m)") {
        "ECMA-262 has no flags inside a pattern; spell the letters out, such as [aA]"
    } else if pattern.contains("\\A") || pattern.contains("\\Z") || pattern.contains("\\z") {
        "write ^ and $ instead of \\A and \\Z"
    } else {
        "escape signs that stand for themselves with a backslash, and letters not at all"
    }
}

fn schema(keyword: &str, value: &Value, place: Pointer) -> Option<Fault> {
    if value.is_object() || value.is_boolean() {
        return None;
    }
    let message = format!(
        "`{keyword}` must be a schema: an object or a boolean, not {}",
        found(value)
    );
    let fix = match value.as_str() {
        Some(text @ ("true" | "false")) => format!("write {text} without quotes"),
        Some(word) if type_for(word).is_some() => {
            format!(
                "write {{\"type\": \"{}\"}}",
                type_for(word).unwrap_or_default()
            )
        }
        _ => format!("write a schema, or remove `{keyword}`"),
    };
    Some(fault(FaultRule::NotASchema, place, message, fix))
}

fn list_of_schemas(keyword: &str, value: &Value, place: Pointer) -> Option<Fault> {
    match value.as_array() {
        Some(items) if !items.is_empty() => None,
        Some(_) => {
            let message = format!("`{keyword}` is an empty list");
            let fix = format!("list at least one schema, or remove `{keyword}`");
            Some(fault(FaultRule::Keyword, place, message, fix))
        }
        None => {
            let message = format!(
                "`{keyword}` must be a list of schemas, not {}",
                found(value)
            );
            let fix = format!("put the schemas into a list, or remove `{keyword}`");
            Some(fault(FaultRule::Keyword, place, message, fix))
        }
    }
}

fn map_of_schemas(keyword: &str, value: &Value, place: Pointer) -> Option<Fault> {
    if value.is_object() {
        return None;
    }
    let message = format!(
        "`{keyword}` must be an object from names to schemas, not {}",
        found(value)
    );
    let fix = format!("write {{\"name\": {{\"type\": \"string\"}}}}, or remove `{keyword}`");
    Some(fault(FaultRule::Keyword, place, message, fix))
}

fn items(value: &Value, draft: Draft, place: Pointer) -> Option<Fault> {
    match value {
        Value::Array(_) if draft == Draft::Draft2020 => {
            let message = "`items` is a list, which draft 2020-12 does not have";
            let fix = "write `prefixItems` (and `items` instead of `additionalItems`), or name draft-07 in `$schema`";
            Some(fault(FaultRule::Keyword, place, message, fix))
        }
        Value::Array(_) => None,
        other => schema("items", other, place),
    }
}

fn unknown(keyword: &str, draft: Draft, place: Pointer) -> Option<Fault> {
    let newer = !matches!(kind(keyword, Draft::Draft2020), Kind::Annotation);
    if newer && draft < Draft::Draft2020 {
        return None;
    }
    let meant = FURTHER.contains(&keyword)
        || OTHER_WORDS.contains(&keyword)
        || MEANT.contains(&keyword)
        || keyword.starts_with("x-")
        || keyword.chars().count() < 4;
    if meant {
        return None;
    }
    let hint = closest(keyword, MEANT.iter().copied());
    let hint = hint.strip_prefix(", ")?;
    let message = format!("`{keyword}` is not a keyword of JSON Schema and constrains nothing");
    Some(fault(FaultRule::UnknownKeyword, place, message, hint))
}
