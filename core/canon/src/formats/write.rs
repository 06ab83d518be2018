use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Format, KeyOrder, Tool};

use super::table::{FieldMapping, FieldTable, ToolField};

/// Writes a tool by a format's table.
pub(super) fn write(format: Format, table: FieldTable, mut tool: Tool) -> Value {
    let extension = tool.extensions.remove(&format).unwrap_or_default();
    let layout = if tool.format == format {
        std::mem::take(&mut tool.layout)
    } else {
        KeyOrder::new()
    };
    Value::Object(write_level(
        &mut tool,
        table,
        extension,
        &layout,
        &mut Pointer::root(),
    ))
}

/// The members in the order of the given keys, then all others as they are.
pub(super) fn reorder_members(mut members: Object, keys: &[String]) -> Object {
    let mut ordered = Object::with_capacity(members.len());
    for key in keys {
        if let Some(value) = members.get_mut(key) {
            ordered.insert(key.clone(), value.take());
        }
    }
    for (key, value) in members {
        if !ordered.contains_key(&key) {
            ordered.insert(key, value);
        }
    }
    ordered
}

fn write_level(
    tool: &mut Tool,
    table: FieldTable,
    mut extension: Object,
    layout: &KeyOrder,
    at: &mut Pointer,
) -> Object {
    let keys = layout.get(at.as_str());
    let mut members = Object::new();
    for field in table {
        let spelling = keys.and_then(|keys| keys.iter().find(|key| field.matches_key(key)));
        let key = spelling.map_or(field.key, String::as_str);
        let kept = extension.shift_remove(key);
        at.push(key);
        let value = match field.field {
            ToolField::Nested(table) => {
                let present = kept.is_some();
                let inner = match kept {
                    Some(Value::Object(inner)) => inner,
                    _ => Object::new(),
                };
                let inner = write_level(tool, table, inner, layout, at);
                (present || !inner.is_empty()).then_some(Value::Object(inner))
            }
            ToolField::Constant(word) => {
                let written = keys.is_none() || spelling.is_some();
                kept.or_else(|| written.then(|| Value::from(word)))
            }
            _ => value_of(tool, field, kept),
        };
        at.pop();
        if let Some(value) = value {
            members.insert(key.to_owned(), value);
        }
    }
    members.extend(extension);
    match keys {
        Some(keys) => reorder_members(members, keys),
        None => members,
    }
}

/// The value of a key: the kept original, as long as the tool still means the same.
fn value_of(tool: &mut Tool, field: &FieldMapping, kept: Option<Value>) -> Option<Value> {
    let current = take(tool, field.field);
    let (Some(kept), Some(conversion)) = (&kept, field.conversion) else {
        return match (current, field.conversion) {
            (Some(current), Some(conversion)) => (conversion.encode)(&current),
            (Some(current), None) => Some(current),
            (None, _) => kept,
        };
    };
    match current {
        Some(current) if (conversion.decode)(kept).as_ref() == Some(&current) => Some(kept.clone()),
        Some(current) => (conversion.encode)(&current),
        None => Some(kept.clone()),
    }
}

/// Takes the tool's value for a slot; `None` if the definition had none.
fn take(tool: &mut Tool, slot: ToolField) -> Option<Value> {
    let text = |text: &mut String| Value::String(std::mem::take(text));
    let schema = |schema: &mut Object| Value::Object(std::mem::take(schema));
    match slot {
        ToolField::Name => (!tool.absent.name).then(|| text(&mut tool.name)),
        ToolField::Description => (!tool.absent.description).then(|| text(&mut tool.description)),
        ToolField::Title => tool.title.take().map(Value::String),
        ToolField::Inputs => (!tool.absent.inputs).then(|| schema(&mut tool.inputs)),
        ToolField::Outputs => (!tool.outputs.is_empty()).then(|| schema(&mut tool.outputs)),
        ToolField::Annotations => tool.annotations.take().map(Value::Object),
        ToolField::Strict => tool.strict.map(Value::Bool),
        ToolField::Examples => {
            (!tool.examples.is_empty()).then(|| Value::Array(std::mem::take(&mut tool.examples)))
        }
        ToolField::Constant(_) | ToolField::Nested(_) => None,
    }
}
