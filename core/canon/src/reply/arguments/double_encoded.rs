//! Finds JSON strings where the schema requires an object or an array.

use serde_json::Value;
use toolwarden_model::json::{self, MAX_DEPTH, Object, Pointer};

use crate::schema::resolve;

/// The most schemas examined for one set of arguments; beyond it nothing more is found.
const MAX_SCHEMAS: usize = 1_000_000;
/// How far references and combinations of schemas are followed for one value.
const MAX_HOPS: usize = 32;

/// The places of JSON strings where the schema requires an object or an array.
pub(super) fn double_encoded(value: &Object, schema: &Value) -> Vec<Pointer> {
    let Value::Object(root) = schema else {
        return Vec::new();
    };
    let mut search = Search {
        root,
        schemas_left: MAX_SCHEMAS,
        found: Vec::new(),
        path: Pointer::root(),
    };
    search.object(value, &[schema], 0);
    search.found
}

struct Search<'s> {
    root: &'s Object,
    schemas_left: usize,
    found: Vec<Pointer>,
    path: Pointer,
}

/// Whether a schema accepts strings, and objects or arrays.
#[derive(Clone, Copy)]
struct AcceptedTypes {
    string: bool,
    structure: bool,
}

impl AcceptedTypes {
    const ANYTHING: Self = Self {
        string: true,
        structure: true,
    };
}

impl<'s> Search<'s> {
    fn value(&mut self, value: &Value, schemas: &[&'s Value], depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(members) => self.object(members, schemas, depth),
            Value::Array(items) => {
                let spread = self.expand_schemas(schemas);
                for (at, item) in items.iter().enumerate() {
                    let below: Vec<&Value> =
                        spread.iter().filter_map(|it| item_of(it, at)).collect();
                    self.visit_member(&at.to_string(), item, &below, depth);
                }
            }
            Value::String(text) => {
                let wanted = schemas.iter().any(|schema| {
                    let takes = self.accepted_types(schema, 0);
                    takes.structure && !takes.string
                });
                if wanted && is_structure(text) {
                    self.found.push(self.path.clone());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, members: &Object, schemas: &[&'s Value], depth: usize) {
        let spread = self.expand_schemas(schemas);
        for (key, value) in members {
            let below: Vec<&Value> = spread.iter().filter_map(|it| member_of(it, key)).collect();
            self.visit_member(key, value, &below, depth);
        }
    }

    fn visit_member(&mut self, key: &str, value: &Value, schemas: &[&'s Value], depth: usize) {
        if schemas.is_empty() || self.schemas_left == 0 {
            return;
        }
        self.path.push(key);
        self.value(value, schemas, depth + 1);
        self.path.pop();
    }

    /// The schemas with all that they refer to and combine.
    fn expand_schemas(&mut self, schemas: &[&'s Value]) -> Vec<&'s Object> {
        let mut found: Vec<&Object> = Vec::new();
        let mut pending: Vec<&Value> = schemas.to_vec();
        while let Some(schema) = pending.pop() {
            let Value::Object(members) = schema else {
                continue;
            };
            // References may be cyclic.
            if self.schemas_left == 0 || found.iter().any(|it| std::ptr::eq(*it, members)) {
                continue;
            }
            self.schemas_left -= 1;
            if found.len() > MAX_HOPS * MAX_HOPS {
                break;
            }
            found.push(members);
            pending.extend(self.resolve_reference(members));
            pending.extend(combined(members));
        }
        found
    }

    fn accepted_types(&mut self, schema: &'s Value, hops: usize) -> AcceptedTypes {
        let Value::Object(members) = schema else {
            return AcceptedTypes::ANYTHING;
        };
        if hops > MAX_HOPS || self.schemas_left == 0 {
            return AcceptedTypes::ANYTHING;
        }
        self.schemas_left -= 1;
        let mut takes = own_types(members);
        let also = |takes: &mut AcceptedTypes, more: AcceptedTypes| {
            takes.string &= more.string;
            takes.structure &= more.structure;
        };
        if let Some(target) = self.resolve_reference(members) {
            let more = self.accepted_types(target, hops + 1);
            also(&mut takes, more);
        }
        for part in list(members, "allOf") {
            let more = self.accepted_types(part, hops + 1);
            also(&mut takes, more);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(members, keyword);
            if branches.is_empty() {
                continue;
            }
            let mut any = AcceptedTypes {
                string: false,
                structure: false,
            };
            for branch in branches {
                let more = self.accepted_types(branch, hops + 1);
                any.string |= more.string;
                any.structure |= more.structure;
            }
            also(&mut takes, any);
        }
        takes
    }

    fn resolve_reference(&self, members: &Object) -> Option<&'s Value> {
        let reference = members.get("$ref")?.as_str()?;
        resolve(self.root, reference)
    }
}

/// The types a schema accepts by its own keywords, references not followed.
fn own_types(members: &Object) -> AcceptedTypes {
    let of_word = |word: &str| AcceptedTypes {
        string: word.eq_ignore_ascii_case("string"),
        structure: word.eq_ignore_ascii_case("object") || word.eq_ignore_ascii_case("array"),
    };
    match members.get("type") {
        Some(Value::String(word)) => of_word(word),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str).map(of_word);
            words.fold(
                AcceptedTypes {
                    string: false,
                    structure: false,
                },
                |all, one| AcceptedTypes {
                    string: all.string || one.string,
                    structure: all.structure || one.structure,
                },
            )
        }
        // A schema that names properties or items describes an object or an array.
        _ => {
            let structured = ["properties", "items", "prefixItems", "required"];
            let structured = structured.iter().any(|key| members.contains_key(*key));
            let listed = members.contains_key("enum") || members.contains_key("const");
            AcceptedTypes {
                string: !structured || listed,
                structure: true,
            }
        }
    }
}

fn combined(members: &Object) -> impl Iterator<Item = &Value> {
    ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|keyword| list(members, keyword))
}

fn list<'s>(members: &'s Object, keyword: &str) -> &'s [Value] {
    match members.get(keyword) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn member_of<'s>(schema: &'s Object, key: &str) -> Option<&'s Value> {
    let declared = schema.get("properties").and_then(|it| it.get(key));
    declared.or_else(|| schema.get("additionalProperties"))
}

fn item_of(schema: &Object, at: usize) -> Option<&Value> {
    let tuple = ["prefixItems", "items"]
        .into_iter()
        .find_map(|keyword| schema.get(keyword)?.as_array()?.get(at));
    tuple.or_else(|| schema.get("items").filter(|it| it.is_object()))
}

fn is_structure(text: &str) -> bool {
    let trimmed = text.trim();
    trimmed.starts_with(['{', '['])
        && json::parse(trimmed).is_ok_and(|it| it.value.is_object() || it.value.is_array())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, schema: &Value, expect: &[&str]) {
        let Value::Object(members) = value else {
            panic!("arguments are an object")
        };
        let found = double_encoded(&members, schema);
        let found: Vec<&str> = found.iter().map(Pointer::as_str).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn strings_are_double_encoded_only_where_the_schema_wants_the_thing() {
        let schema = json!({
            "type": "object",
            "properties": {
                "place": {"$ref": "#/$defs/place"},
                "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                "tags": {"type": ["array", "null"], "items": {"type": "object", "properties": {"of": {"type": "array"}}}},
                "text": {"type": "string"},
                "untyped": {"properties": {"a": {}}},
                "all": {"allOf": [{"$ref": "#/$defs/place"}]},
                "properties": {"type": "object"},
            },
            "additionalProperties": {"type": "object"},
            "$defs": {"place": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/place"}}}},
        });
        let object = json!("{\"a\": 1}");
        check(
            json!({"place": object, "either": object, "maybe": object, "tags": "[1]", "text": object,
                "untyped": object, "all": object, "properties": object, "other": object}),
            &schema,
            &[
                "/place",
                "/maybe",
                "/tags",
                "/untyped",
                "/all",
                "/properties",
                "/other",
            ],
        );
        check(
            json!({"place": {"inner": {"inner": "{}"}}, "tags": [{"of": "[]"}, "{\"of\": []}"], "maybe": "no JSON"}),
            &schema,
            &["/place/inner/inner", "/tags/0/of", "/tags/1"],
        );
    }

    #[test]
    fn schemas_that_lead_back_to_themselves_end() {
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}});
        check(json!({"x": "{}"}), &circle, &[]);
        let within = json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": circle["$defs"]});
        check(json!({"x": "{}"}), &within, &[]);
    }
}
