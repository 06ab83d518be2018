use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Pointer, type_name};

use super::{SchemaFault, SchemaFaultRule, fault};
use crate::prepare::{Draft, KeywordKind, ValueForm, keyword_kind};

/// The most metaschema errors that are examined.
const MAX_ERRORS: usize = 32;

/// Annotations, and the type their values must have.
const ANNOTATION_FORMS: &[(&str, ValueForm)] = &[
    ("title", ValueForm::Text),
    ("description", ValueForm::Text),
    ("$comment", ValueForm::Text),
    ("$schema", ValueForm::Text),
    ("$id", ValueForm::Text),
    ("$anchor", ValueForm::Text),
    ("$dynamicAnchor", ValueForm::Text),
    ("format", ValueForm::Text),
    ("contentEncoding", ValueForm::Text),
    ("contentMediaType", ValueForm::Text),
    ("examples", ValueForm::List),
    ("deprecated", ValueForm::Boolean),
    ("readOnly", ValueForm::Boolean),
    ("writeOnly", ValueForm::Boolean),
];

/// Keywords that no draft checks further, or that only some drafts define.
const UNCHECKED_KEYWORDS: &[&str] = &[
    "$defs",
    "definitions",
    "default",
    "$vocabulary",
    "$recursiveAnchor",
    "contentSchema",
    "id",
];

/// Keywords suggested for a misspelled one.
const SUGGESTED_KEYWORDS: &[&str] = &[
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

/// Words of other vocabularies that resemble a keyword and are intentional.
const FOREIGN_KEYWORDS: &[&str] = &[
    "example",
    "min",
    "max",
    "item",
    "propertyNames",
    "types",
    "any_of",
];

/// What is wrong with the value of a keyword.
pub(super) fn check_keyword(
    keyword: &str,
    value: &Value,
    draft: Draft,
    at: &Pointer,
) -> Option<SchemaFault> {
    let place = at.child(keyword);
    let form = match keyword_kind(keyword, draft) {
        KeywordKind::Plain(form) => form,
        KeywordKind::Schema => return schema(keyword, value, place),
        KeywordKind::Schemas => return list_of_schemas(keyword, value, place),
        KeywordKind::SchemaMap => return map_of_schemas(keyword, value, place),
        KeywordKind::Special => match keyword {
            "minimum" | "maximum" => ValueForm::Number,
            "exclusiveMinimum" | "exclusiveMaximum" => ValueForm::Boolean,
            "items" => return items(value, draft, place),
            "additionalItems" => return schema(keyword, value, place),
            "dependencies" => return map_of_schemas(keyword, value, place),
            _ => ValueForm::Text,
        },
        KeywordKind::Annotation => match ANNOTATION_FORMS.iter().find(|(word, _)| *word == keyword)
        {
            Some((_, form)) => *form,
            None if matches!(keyword, "$defs" | "definitions") => {
                return map_of_schemas(keyword, value, place);
            }
            None => return unknown(keyword, draft, place),
        },
    };
    match form.check(value) {
        Ok(()) if form == ValueForm::Names => repeated_name(value, &place),
        Ok(()) if keyword == "pattern" => pattern(value.as_str()?, place),
        Ok(()) => None,
        Err(expected) => Some(wrong_form(keyword, form, expected, value, place)),
    }
}

/// The errors of the metaschema at places where nothing was found yet.
pub(super) fn check_metaschema(
    at: &Pointer,
    schema: &Value,
    draft: Draft,
    faults: &mut Vec<SchemaFault>,
) {
    let validator = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft2019 => jsonschema::draft201909::meta::validator(),
        Draft::Draft2020 => jsonschema::draft202012::meta::validator(),
    };
    for error in validator.iter_errors(schema).take(MAX_ERRORS) {
        let place = at.join(&Pointer::from(error.instance_path().as_str()));
        let known = |fault: &SchemaFault| {
            let (a, b) = (fault.pointer.as_str(), place.as_str());
            a.starts_with(b) || b.starts_with(a)
        };
        if !faults.iter().any(known) {
            let message = format!("the metaschema does not allow it: {error}");
            let fix = "correct the value, or remove the keyword";
            faults.push(fault(SchemaFaultRule::Keyword, place, message, fix));
        }
    }
}

/// The JSON type that a type name of a programming language denotes.
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
    form: ValueForm,
    expected: &'static str,
    value: &Value,
    place: Pointer,
) -> SchemaFault {
    if form == ValueForm::Types {
        return wrong_type(value, place);
    }
    let message = format!(
        "`{keyword}` must be {expected}, not {}",
        describe_value(value)
    );
    let fix = match (form, value) {
        (_, Value::Null) => format!("remove `{keyword}`"),
        (ValueForm::Number | ValueForm::PositiveNumber | ValueForm::Count, Value::String(text))
            if form.check(&number(text)).is_ok() =>
        {
            format!("write {text} without quotes")
        }
        (ValueForm::Number, Value::Bool(_)) if keyword.starts_with("exclusive") => {
            format!("put the bound itself into `{keyword}`, or name draft 4 in `$schema`")
        }
        (ValueForm::Boolean, Value::Number(_)) if keyword.starts_with("exclusive") => {
            format!(
                "draft 4 has `{keyword}: true` beside the bound; name a newer draft in `$schema`"
            )
        }
        (ValueForm::Boolean, Value::String(text)) if text == "true" || text == "false" => {
            format!("write {text} without quotes")
        }
        (ValueForm::Names, Value::Bool(_)) if keyword == "required" => {
            "list the property's name in `required` of the object around it".to_owned()
        }
        (ValueForm::Names, Value::String(name)) => {
            format!("write [{}]", Value::from(name.as_str()))
        }
        (ValueForm::List, _) => format!("put the values into a list, or remove `{keyword}`"),
        _ => format!("write {expected}, or remove `{keyword}`"),
    };
    fault(SchemaFaultRule::Keyword, place, message, fix)
}

fn wrong_type(value: &Value, place: Pointer) -> SchemaFault {
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
                None => match did_you_mean(word, TYPES.iter().copied()).strip_prefix(", ") {
                    Some(hint) => format!("{hint} (types: {known})"),
                    None => format!("write one of {known}"),
                },
            };
            fault(SchemaFaultRule::Keyword, place, message, fix)
        }
        other => {
            let message = format!(
                "`type` must be a type or a list of types, not {}",
                describe_value(other)
            );
            fault(
                SchemaFaultRule::Keyword,
                place,
                message,
                format!("write one of {known}"),
            )
        }
    }
}

/// What a value is, with the value where it is short.
fn describe_value(value: &Value) -> String {
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

fn repeated_name(value: &Value, place: &Pointer) -> Option<SchemaFault> {
    let names = value.as_array()?;
    let (index, name) = names
        .iter()
        .enumerate()
        .find(|(index, name)| names.iter().take(*index).any(|earlier| earlier == *name))?;
    let message = format!("{name} is listed twice");
    let place = place.index(index);
    Some(fault(
        SchemaFaultRule::Keyword,
        place,
        message,
        "remove one of them",
    ))
}

/// What is wrong with a pattern.
pub(super) fn pattern(pattern: &str, place: Pointer) -> Option<SchemaFault> {
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
    Some(fault(SchemaFaultRule::Pattern, place, message, fix))
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

fn schema(keyword: &str, value: &Value, place: Pointer) -> Option<SchemaFault> {
    if value.is_object() || value.is_boolean() {
        return None;
    }
    let message = format!(
        "`{keyword}` must be a schema: an object or a boolean, not {}",
        describe_value(value)
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
    Some(fault(SchemaFaultRule::NotASchema, place, message, fix))
}

fn list_of_schemas(keyword: &str, value: &Value, place: Pointer) -> Option<SchemaFault> {
    match value.as_array() {
        Some(items) if !items.is_empty() => None,
        Some(_) => {
            let message = format!("`{keyword}` is an empty list");
            let fix = format!("list at least one schema, or remove `{keyword}`");
            Some(fault(SchemaFaultRule::Keyword, place, message, fix))
        }
        None => {
            let message = format!(
                "`{keyword}` must be a list of schemas, not {}",
                describe_value(value)
            );
            let fix = format!("put the schemas into a list, or remove `{keyword}`");
            Some(fault(SchemaFaultRule::Keyword, place, message, fix))
        }
    }
}

fn map_of_schemas(keyword: &str, value: &Value, place: Pointer) -> Option<SchemaFault> {
    if value.is_object() {
        return None;
    }
    let message = format!(
        "`{keyword}` must be an object from names to schemas, not {}",
        describe_value(value)
    );
    let fix = format!("write {{\"name\": {{\"type\": \"string\"}}}}, or remove `{keyword}`");
    Some(fault(SchemaFaultRule::Keyword, place, message, fix))
}

fn items(value: &Value, draft: Draft, place: Pointer) -> Option<SchemaFault> {
    match value {
        Value::Array(_) if draft == Draft::Draft2020 => {
            let message = "`items` is a list, which draft 2020-12 does not have";
            let fix = "write `prefixItems` (and `items` instead of `additionalItems`), or name draft-07 in `$schema`";
            Some(fault(SchemaFaultRule::Keyword, place, message, fix))
        }
        Value::Array(_) => None,
        other => schema("items", other, place),
    }
}

fn unknown(keyword: &str, draft: Draft, place: Pointer) -> Option<SchemaFault> {
    let newer = !matches!(
        keyword_kind(keyword, Draft::Draft2020),
        KeywordKind::Annotation
    );
    if newer && draft < Draft::Draft2020 {
        return None;
    }
    let meant = UNCHECKED_KEYWORDS.contains(&keyword)
        || FOREIGN_KEYWORDS.contains(&keyword)
        || SUGGESTED_KEYWORDS.contains(&keyword)
        || keyword.starts_with("x-")
        || keyword.chars().count() < 4;
    if meant {
        return None;
    }
    let hint = did_you_mean(keyword, SUGGESTED_KEYWORDS.iter().copied());
    let hint = hint.strip_prefix(", ")?;
    let message = format!("`{keyword}` is not a keyword of JSON Schema and constrains nothing");
    Some(fault(SchemaFaultRule::UnknownKeyword, place, message, hint))
}
