use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::{AbsentParts, Format, InvalidTool, Tool};

use super::table::{FieldMapping, FieldTable, ToolField};

/// Why a definition is not of the format it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// A part has a type the format does not allow.
    #[error("`{pointer}` is {found}, expected an object")]
    NotAnObject {
        /// The part.
        pointer: Pointer,
        /// The type it has.
        found: &'static str,
    },
    /// A part that the format requires is missing.
    #[error("`{pointer}` is missing")]
    Missing {
        /// The part.
        pointer: Pointer,
    },
    /// Canonical metadata inside the definition is invalid.
    #[error("{source}")]
    Invalid {
        /// What is invalid.
        source: InvalidTool,
    },
}

impl ParseError {
    pub(crate) fn not_an_object(pointer: Pointer, found: &Value) -> Self {
        Self::NotAnObject {
            pointer,
            found: type_name(found),
        }
    }
}

/// Reads a definition by its format's table.
pub(super) fn read(
    format: Format,
    table: FieldTable,
    definition: Object,
) -> Result<Tool, ParseError> {
    let mut tool = Tool::new(format);
    tool.absent = AbsentParts {
        name: true,
        description: true,
        inputs: true,
    };
    let mut extension = Object::new();
    read_level(
        &mut tool,
        table,
        definition,
        &Pointer::root(),
        &mut extension,
    )?;
    if !extension.is_empty() {
        tool.extensions.insert(format, extension);
    }
    Ok(tool)
}

fn read_level(
    tool: &mut Tool,
    table: FieldTable,
    members: Object,
    at: &Pointer,
    extension: &mut Object,
) -> Result<(), ParseError> {
    if let Some(missing) = table.iter().find(|field| {
        field.required
            && !members.contains_key(field.key)
            && !field.aliases.iter().any(|key| members.contains_key(*key))
    }) {
        return Err(ParseError::Missing {
            pointer: at.child(missing.key),
        });
    }
    let mut order =
        (!has_default_order(table, &members)).then(|| Vec::with_capacity(members.len()));
    for (key, value) in members {
        let Some(field) = table.iter().find(|field| field.matches_key(&key)) else {
            order.iter_mut().for_each(|order| order.push(key.clone()));
            extension.insert(key, value);
            continue;
        };
        let kept = store(tool, field, value, at, &key)?;
        if let Some(value) = kept {
            extension.insert(key.clone(), value);
        }
        if let Some(order) = &mut order {
            order.push(key);
        }
    }
    tool.layout
        .extend(order.map(|order| (at.as_str().to_owned(), order)));
    Ok(())
}

/// Whether writing the table's keys in order, then all others, gives this order and these keys.
fn has_default_order(table: FieldTable, members: &Object) -> bool {
    let mut next = 0;
    for key in members.keys() {
        let found = table.iter().skip(next).position(|field| field.key == key);
        match found {
            Some(distance) => next += distance + 1,
            None if table.iter().any(|field| field.matches_key(key)) => return false,
            None => next = table.len(),
        }
    }
    table.iter().all(|field| {
        !matches!(field.field, ToolField::Constant(_)) || members.contains_key(field.key)
    })
}

/// Moves a value into its slot; returns what has to be kept beside it.
fn store(
    tool: &mut Tool,
    field: &FieldMapping,
    value: Value,
    at: &Pointer,
    key: &str,
) -> Result<Option<Value>, ParseError> {
    if let ToolField::Nested(table) = field.field {
        return store_nested(tool, table, value, &at.child(key));
    }
    if value.is_null() && field.nullable {
        return Ok(Some(value));
    }
    let Some(conversion) = field.conversion else {
        return fill(tool, field.field, value, at, key);
    };
    match (conversion.decode)(&value) {
        Some(decoded) => {
            let undone = || {
                let encoded = (conversion.encode)(&decoded);
                encoded.is_some_and(|encoded| has_same_key_order(&encoded, &value))
            };
            let same = (conversion.is_reversible)(&value) || undone();
            let kept = (!same).then_some(value);
            if let Some(refused) = fill(tool, field.field, decoded, at, key)? {
                return Ok(Some(kept.unwrap_or(refused)));
            }
            Ok(kept)
        }
        None if matches!(field.field, ToolField::Inputs) => {
            Err(ParseError::not_an_object(at.child(key), &value))
        }
        None => Ok(Some(value)),
    }
}

fn store_nested(
    tool: &mut Tool,
    table: FieldTable,
    value: Value,
    at: &Pointer,
) -> Result<Option<Value>, ParseError> {
    let Value::Object(members) = value else {
        return Err(ParseError::not_an_object(at.clone(), &value));
    };
    let empty = members.is_empty();
    let mut extension = Object::new();
    read_level(tool, table, members, at, &mut extension)?;
    Ok((empty || !extension.is_empty()).then_some(Value::Object(extension)))
}

/// Stores a value of the right type in the tool; returns any other.
fn fill(
    tool: &mut Tool,
    slot: ToolField,
    value: Value,
    at: &Pointer,
    key: &str,
) -> Result<Option<Value>, ParseError> {
    match (slot, value) {
        (ToolField::Name, Value::String(text)) => (tool.name, tool.absent.name) = (text, false),
        (ToolField::Description, Value::String(text)) => {
            (tool.description, tool.absent.description) = (text, false);
        }
        (ToolField::Title, Value::String(text)) => tool.title = Some(text),
        (ToolField::Inputs, Value::Object(schema)) => {
            (tool.inputs, tool.absent.inputs) = (schema, false)
        }
        (ToolField::Inputs, other) => return Err(ParseError::not_an_object(at.child(key), &other)),
        // In the canonical form, an empty schema means that there is none.
        (ToolField::Outputs, Value::Object(schema))
            if !schema.is_empty() && tool.outputs.is_empty() =>
        {
            tool.outputs = schema;
        }
        (ToolField::Annotations, Value::Object(annotations)) => {
            tool.annotations = Some(annotations)
        }
        (ToolField::Strict, Value::Bool(strict)) => tool.strict = Some(strict),
        (ToolField::Examples, Value::Array(examples)) if !examples.is_empty() => {
            tool.examples = examples
        }
        (ToolField::Constant(text), Value::String(found)) if found == text => {}
        (_, other) => return Ok(Some(other)),
    }
    Ok(None)
}

/// Whether two values are equal down to the order of their keys.
fn has_same_key_order(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let pairs = || a.iter().zip(b.iter());
            a.len() == b.len() && pairs().all(|((a, x), (b, y))| a == b && has_same_key_order(x, y))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has_same_key_order(a, b))
        }
        (a, b) => a == b,
    }
}
