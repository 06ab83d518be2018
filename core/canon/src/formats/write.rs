use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Format, Layout, Tool};

use super::table::{Field, Slot, Table};

/// Writes a tool by a format's table.
pub(super) fn write(format: Format, table: Table, mut tool: Tool) -> Value {
    let extension = tool.extensions.remove(&format).unwrap_or_default();
    let layout = if tool.format == format {
        std::mem::take(&mut tool.layout)
    } else {
        Layout::new()
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
pub(super) fn in_order(mut members: Object, keys: &[String]) -> Object {
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
    table: Table,
    mut extension: Object,
    layout: &Layout,
    at: &mut Pointer,
) -> Object {
    let keys = layout.get(at.as_str());
    let mut members = Object::new();
    for field in table {
        let spelling = keys.and_then(|keys| keys.iter().find(|key| field.is_spelled(key)));
        let key = spelling.map_or(field.key, String::as_str);
        let kept = extension.shift_remove(key);
        at.push(key);
        let value = match field.slot {
            Slot::Nested(table) => {
                let present = kept.is_some();
                let inner = match kept {
                    Some(Value::Object(inner)) => inner,
                    _ => Object::new(),
                };
                let inner = write_level(tool, table, inner, layout, at);
                (present || !inner.is_empty()).then_some(Value::Object(inner))
            }
            Slot::Constant(word) => {
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
        Some(keys) => in_order(members, keys),
        None => members,
    }
}

/// The value of a key: what was kept of the definition, as long as the tool still says the same.
fn value_of(tool: &mut Tool, field: &Field, kept: Option<Value>) -> Option<Value> {
    let current = take(tool, field.slot);
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

/// Takes what the tool says in a slot; nothing where the definition said nothing.
fn take(tool: &mut Tool, slot: Slot) -> Option<Value> {
    let text = |text: &mut String| Value::String(std::mem::take(text));
    let schema = |schema: &mut Object| Value::Object(std::mem::take(schema));
    match slot {
        Slot::Name => (!tool.absent.name).then(|| text(&mut tool.name)),
        Slot::Description => (!tool.absent.description).then(|| text(&mut tool.description)),
        Slot::Title => tool.title.take().map(Value::String),
        Slot::Inputs => (!tool.absent.inputs).then(|| schema(&mut tool.inputs)),
        Slot::Outputs => (!tool.outputs.is_empty()).then(|| schema(&mut tool.outputs)),
        Slot::Annotations => tool.annotations.take().map(Value::Object),
        Slot::Strict => tool.strict.map(Value::Bool),
        Slot::Examples => {
            (!tool.examples.is_empty()).then(|| Value::Array(std::mem::take(&mut tool.examples)))
        }
        Slot::Constant(_) | Slot::Nested(_) => None,
    }
}
