use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use crate::schema::{map_schemas, resolve, subschemas};

/// How many references in a row are followed to a parameter, body or response.
const MAX_HOPS: usize = 16;

/// Where documents keep shared schemas: OpenAPI 3, then 2.
const SHARED: &[&str] = &["#/components/schemas/", "#/definitions/"];

/// The shared parts of an OpenAPI document.
#[derive(Clone, Copy)]
pub(super) struct SharedSchemas<'d> {
    document: &'d Object,
}

impl<'d> SharedSchemas<'d> {
    pub(super) const fn of(document: &'d Object) -> Self {
        Self { document }
    }

    /// The object itself, or the one it refers to.
    pub(super) fn follow(&self, value: &'d Value) -> Option<&'d Object> {
        let mut current = value;
        for _ in 0..MAX_HOPS {
            let members = current.as_object()?;
            match members.get("$ref").and_then(Value::as_str) {
                Some(reference) => current = resolve(self.document, reference)?,
                None => return Some(members),
            }
        }
        None
    }

    /// A schema as JSON Schema: OpenAPI 3.0's own keywords translated, references into `$defs`.
    pub(super) fn convert(&self, schema: &Value) -> Value {
        map_schemas(schema, &|schema| {
            translate(schema);
            let name = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(shared_name);
            if let Some(name) = name {
                schema.insert("$ref".to_owned(), Value::String(format!("#/$defs/{name}")));
            }
        })
    }

    /// A schema of OpenAPI 2 as JSON Schema: a file is a string of bytes.
    pub(super) fn convert_v2(&self, schema: &Value) -> Value {
        let mut converted = self.convert(schema);
        if let Value::Object(members) = &mut converted
            && members.get("type").and_then(Value::as_str) == Some("file")
        {
            members.insert("type".to_owned(), json!("string"));
            members.insert("format".to_owned(), json!("binary"));
        }
        converted
    }

    /// What a converted schema refers to, if it is nothing but a reference.
    pub(super) fn target_of(&self, schema: &Value) -> Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let name = reference.and_then(|reference| reference.strip_prefix("#/$defs/"));
        name.and_then(|name| self.shared(name))
            .unwrap_or_else(|| schema.clone())
    }

    /// The schema of a parameter that has its keywords beside its name, as in OpenAPI 2.
    pub(super) fn inline_parameter(&self, parameter: &Object) -> Value {
        const OTHER: &[&str] = &[
            "name",
            "in",
            "required",
            "allowEmptyValue",
            "collectionFormat",
            "style",
            "explode",
        ];
        let keywords = parameter
            .iter()
            .filter(|(key, _)| !OTHER.contains(&key.as_str()));
        self.convert_v2(&Value::Object(
            keywords
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ))
    }

    /// A schema with the shared schemas it needs, directly or through others, in its `$defs`.
    pub(super) fn complete(&self, mut schema: Object) -> Object {
        let mut pending = BTreeSet::new();
        references(&schema, &mut pending);
        let mut definitions = Object::new();
        while let Some(name) = pending.pop_first() {
            if definitions.contains_key(&unescape(&name)) {
                continue;
            }
            let Some(shared) = self.shared(&name) else {
                continue;
            };
            if let Value::Object(members) = &shared {
                references(members, &mut pending);
            }
            definitions.insert(unescape(&name), shared);
        }
        if let Some(Value::Object(own)) = schema.shift_remove("$defs") {
            definitions.extend(own);
        }
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        schema
    }

    fn shared(&self, name: &str) -> Option<Value> {
        let found = SHARED
            .iter()
            .find_map(|prefix| resolve(self.document, &format!("{prefix}{name}")))?;
        Some(self.convert(found))
    }
}

fn shared_name(reference: &str) -> Option<&str> {
    SHARED
        .iter()
        .find_map(|prefix| reference.strip_prefix(prefix))
        .filter(|name| !name.contains('/'))
}

fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The names in `$defs` a converted schema refers to.
fn references(schema: &Object, names: &mut BTreeSet<String>) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(name) = reference.and_then(|reference| reference.strip_prefix("#/$defs/")) {
        names.insert(name.to_owned());
    }
    for (_, child) in subschemas(schema, &Pointer::root()) {
        if let Value::Object(child) = child {
            references(child, names);
        }
    }
}

/// Turns the keywords OpenAPI 3.0 has of its own into those of JSON Schema.
fn translate(schema: &mut Object) {
    if schema.shift_remove("nullable") == Some(Value::Bool(true)) {
        crate::schema::allow_null(schema);
    }
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => {
                if let Some(value) = schema.shift_remove(bound) {
                    schema.insert(exclusive.to_owned(), value);
                } else {
                    schema.shift_remove(exclusive);
                }
            }
            Some(Value::Bool(false)) => {
                schema.shift_remove(exclusive);
            }
            _ => {}
        }
    }
    if let Some(example) = schema.shift_remove("example") {
        schema.entry("examples").or_insert_with(|| json!([example]));
    }
}
