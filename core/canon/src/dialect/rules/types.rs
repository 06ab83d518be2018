use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::{KeywordSupport, TypeListFacts};
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// Lists of types where the dialect takes fewer.
pub(super) fn type_list(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(Value::Array(words)) = node.schema.get("type") else {
        return Vec::new();
    };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    let values = node.schema.get("enum").and_then(Value::as_array);
    let never_null = values.is_some_and(|values| !values.contains(&Value::Null));
    let is_container = |word: &&str| matches!(*word, "object" | "array");
    let taken = match node.facts.type_lists {
        TypeListFacts::Nullable if matches!(words.as_slice(), [_, "null"]) && !never_null => {
            KeywordSupport::Supported
        }
        TypeListFacts::Nullable => KeywordSupport::Refused,
        TypeListFacts::Of { containers, .. }
            if words.len() > 1 && words.iter().any(is_container) =>
        {
            containers
        }
        TypeListFacts::Of { scalars, .. } => scalars,
    };
    let Some(level) = taken.finding_level() else {
        return Vec::new();
    };
    let what = format!("a list of types ({})", words.join(", "));
    let violation = Violation::with_level(level, "type-list", Pointer::of(["type"]), &what);
    let steps = match words.as_slice() {
        [word] => vec![SchemaEdit::set("type", json!(word))],
        // Null is in no enumeration without it, whatever the type says.
        [word, "null"] | ["null", word] if never_null => vec![SchemaEdit::set("type", json!(word))],
        ["null", word] if matches!(node.facts.type_lists, TypeListFacts::Nullable) => {
            vec![SchemaEdit::set("type", json!([word, "null"]))]
        }
        words if !node.schema.contains_key("anyOf") && node.facts.accepts("anyOf") => {
            vec![SchemaEdit::replace(split_by_type(node.schema, words))]
        }
        _ => return vec![violation],
    };
    vec![violation.with_equivalent_remedy(steps)]
}

/// The same schema as a union of one branch per type; what only concerns one type moves into its
/// branch.
fn split_by_type(schema: &Object, words: &[&str]) -> Value {
    let mut around = schema.clone();
    around.shift_remove("type");
    let branches: Vec<Value> = words
        .iter()
        .map(|word| {
            let mut branch = Object::new();
            branch.insert("type".to_owned(), json!(word));
            for keyword in keywords_of(word) {
                if let Some(value) = around.shift_remove(*keyword) {
                    branch.insert((*keyword).to_owned(), value);
                }
            }
            Value::Object(branch)
        })
        .collect();
    around.insert("anyOf".to_owned(), Value::Array(branches));
    Value::Object(around)
}

/// Keywords that say nothing about values of any other type.
fn keywords_of(word: &str) -> &'static [&'static str] {
    match word {
        "object" => &[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
        ],
        "array" => &[
            "items",
            "prefixItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
        ],
        "string" => &["minLength", "maxLength", "pattern"],
        _ => &[],
    }
}
