use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Evidence, Format, Hints, HintsEvidence, KeyOrder, Security, Tool};

use super::read::ParseError;

/// The dialect of an emitted document whose schema names none.
const DRAFT_2019_09: &str = "https://json-schema.org/draft/2019-09/schema";

/// Reads a schema whose title is the tool's name.
pub(super) fn read(mut definition: Object) -> Result<Tool, ParseError> {
    let mut tool = Tool::new(Format::JsonSchema);
    tool.layout = KeyOrder::from([(String::new(), definition.keys().cloned().collect())]);
    let invalid = |error: toolwarden_model::InvalidTool| ParseError::Invalid { source: error };
    if let Some(value) = definition.shift_remove("x-capabilities") {
        let at = Pointer::of(["x-capabilities"]);
        tool.hints = Hints::from_value(value, at).map_err(invalid)?;
        tool.evidence = HintsEvidence::all(Evidence::Explicit);
    }
    if let Some(value) = definition.shift_remove("x-security") {
        let at = Pointer::of(["x-security"]);
        tool.security = Some(Security::from_value(value, at).map_err(invalid)?);
    }
    if let Some(value) = definition.shift_remove("x-outputs") {
        let Value::Object(outputs) = value else {
            return Err(ParseError::not_an_object(
                Pointer::of(["x-outputs"]),
                &value,
            ));
        };
        tool.outputs = outputs;
    }
    (tool.name, tool.absent.name) = take_text(&mut definition, "x-name", "title");
    (tool.description, tool.absent.description) =
        take_text(&mut definition, "x-description", "description");
    tool.inputs = definition;
    Ok(tool)
}

/// Takes the tool's own text. If the schema has its own text under the same key, the tool's text is
/// under an `x-` key.
fn take_text(definition: &mut Object, own: &str, shared: &str) -> (String, bool) {
    for key in [own, shared] {
        if definition.get(key).is_some_and(Value::is_string)
            && let Some(Value::String(text)) = definition.shift_remove(key)
        {
            return (text, false);
        }
    }
    (String::new(), true)
}

/// Writes the schema with the tool's name as title. A title, description or `$schema` of the
/// schema's own takes precedence, as in the toolcanon document; the tool's name and description
/// are then under `x-name` and `x-description`.
pub(super) fn write(mut tool: Tool) -> Value {
    let mut members = Object::new();
    members.insert("$schema".to_owned(), json!(DRAFT_2019_09));
    let (name_key, description_key) = text_keys(&tool);
    if !tool.absent.name {
        members.insert(name_key.to_owned(), Value::String(tool.name));
    }
    if !tool.absent.description {
        members.insert(description_key.to_owned(), Value::String(tool.description));
    }
    members.extend(tool.inputs);
    if !tool.outputs.is_empty() {
        members.insert("x-outputs".to_owned(), Value::Object(tool.outputs));
    }
    members.insert("x-capabilities".to_owned(), json!(tool.hints));
    if let Some(security) = &tool.security {
        members.insert("x-security".to_owned(), json!(security));
    }
    match tool.layout.remove("") {
        Some(keys) if tool.format == Format::JsonSchema => {
            if !keys.iter().any(|key| key == "$schema") {
                members.shift_remove("$schema");
            }
            let stated = tool.evidence.states_any();
            if !stated && !keys.iter().any(|key| key == "x-capabilities") {
                members.shift_remove("x-capabilities");
            }
            Value::Object(super::write::reorder_members(members, &keys))
        }
        _ => Value::Object(members),
    }
}

fn text_keys(tool: &Tool) -> (&'static str, &'static str) {
    let name = if tool.inputs.contains_key("title") {
        "x-name"
    } else {
        "title"
    };
    let description = if tool.inputs.contains_key("description") {
        "x-description"
    } else {
        "description"
    };
    (name, description)
}
