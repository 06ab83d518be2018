//! The JSON Schema of the settings, for editors.

use serde_json::{Value, json};
use toolwarden_model::json::Object;

use super::key_table::{KeyTable, SettingsField, ValueKind};
use super::keys::ROOT;

/// The JSON Schema of `toolwarden.yaml`, draft 2020-12. It is built from the table that the reader uses.
#[must_use]
pub fn schema() -> Value {
    let mut definitions = SchemaBuilder::default();
    let root = definitions.mapping(&ROOT);
    let mut schema = Object::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".to_owned(), "toolwarden.yaml".into());
    schema.extend(root);
    let reference = json!({
        "description": "A reference to a variable or file.",
        "type": "string",
        "pattern": r"^\$\{[^}]+\}$",
    });
    definitions.done.insert("reference".to_owned(), reference);
    schema.insert("$defs".to_owned(), Value::Object(definitions.done));
    Value::Object(schema)
}

/// The mappings that have their own name.
#[derive(Default)]
struct SchemaBuilder {
    done: Object,
}

impl SchemaBuilder {
    fn mapping(&mut self, table: &KeyTable) -> Object {
        let mut properties = Object::new();
        for field in table.all_fields() {
            let described = self.field(field);
            for name in std::iter::once(&field.name).chain(field.aliases) {
                properties.insert((*name).to_owned(), described.clone());
            }
        }
        let fields = table.fields.iter();
        let required = fields.filter(|it| it.required).map(|it| it.name);
        let required: Vec<&str> = required.collect();
        let mut schema = Object::new();
        schema.insert("description".to_owned(), table.about.into());
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        if !table.exactly_one.is_empty() {
            let keys = table.exactly_one.iter();
            let one_of = keys.map(|key| json!({"required": [key]})).collect();
            schema.insert("oneOf".to_owned(), one_of);
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    fn field(&mut self, field: &SettingsField) -> Value {
        let mut schema = self.kind(field.kind);
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), field.about.into());
            if let Some(default) = field.default_value() {
                members.insert("default".to_owned(), default);
            }
        }
        schema
    }

    fn kind(&mut self, kind: ValueKind) -> Value {
        match kind {
            ValueKind::Version => json!({"const": 1}),
            ValueKind::Text | ValueKind::Secret | ValueKind::Address | ValueKind::SecretAddress => {
                json!({"type": "string"})
            }
            ValueKind::Scalar | ValueKind::SecretScalar => {
                json!({"type": ["string", "number", "boolean"]})
            }
            ValueKind::Boolean => or_reference(&json!({"type": "boolean"})),
            ValueKind::Count => {
                or_reference(&json!({"type": "integer", "minimum": 1, "maximum": u32::MAX}))
            }
            ValueKind::Fraction => {
                or_reference(&json!({"type": "number", "minimum": 0, "maximum": 1}))
            }
            ValueKind::Duration => json!({
                "type": ["number", "string"],
                "exclusiveMinimum": 0,
                "pattern": r"^[0-9.]+ *(ms|s|m|min|h|d|w)?$|\$\{",
            }),
            ValueKind::Size => json!({
                "type": ["integer", "string"],
                "minimum": 1,
                "pattern": r"^[0-9]+ *([KkMmGg]?[Ii]?[Bb])?$|\$\{",
            }),
            ValueKind::OneOf(words) => or_reference(&json!({"enum": words()})),
            ValueKind::TextList => {
                let text = json!({"type": "string"});
                json!({"anyOf": [text, {"type": "array", "items": text}]})
            }
            ValueKind::List(kind) => json!({"type": "array", "items": self.kind(*kind)}),
            ValueKind::Map(kind, pattern) => {
                let values = self.kind(*kind);
                match pattern {
                    Some(pattern) => json!({
                        "type": "object",
                        "propertyNames": {"pattern": pattern},
                        "additionalProperties": values,
                    }),
                    None => json!({"type": "object", "additionalProperties": values}),
                }
            }
            ValueKind::Section(table) => self.section(table),
            ValueKind::Either(kinds) => {
                let either: Vec<Value> = kinds.iter().map(|kind| self.kind(*kind)).collect();
                json!({"anyOf": either})
            }
            ValueKind::Policy | ValueKind::Object => json!({"type": "object"}),
            ValueKind::Any => json!({}),
        }
    }

    fn section(&mut self, table: &KeyTable) -> Value {
        if !self.done.contains_key(table.name) {
            let mapping = Value::Object(self.mapping(table));
            self.done.insert(table.name.to_owned(), mapping);
        }
        let mapping = json!({"$ref": format!("#/$defs/{}", table.name)});
        match table.shorthand {
            Some(about) => json!({"anyOf": [{"type": "string", "description": about}, mapping]}),
            None => mapping,
        }
    }
}

/// The schema of a value, or of a reference that expands to one.
fn or_reference(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"$ref": "#/$defs/reference"}]})
}
