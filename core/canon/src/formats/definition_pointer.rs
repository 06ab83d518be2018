use toolwarden_model::json::Pointer;
use toolwarden_model::{Format, Tool};

use super::table::{FieldTable, ToolField};

/// Maps a pointer into the canonical form to a pointer into the definition the tool was read from.
///
/// Where the definition writes a part differently, the result points to the whole part or guesses a
/// place below it. A caller that displays it looks for the nearest place that exists.
#[must_use]
pub fn definition_pointer(tool: &Tool, pointer: &Pointer) -> Pointer {
    let mut segments = pointer.segments();
    let first = segments.next().unwrap_or_default();
    let rest: Vec<String> = segments.collect();
    let base = match (tool.format, first.as_str()) {
        (_, "extensions") => return Pointer::of(rest.iter().skip(1).map(String::as_str)),
        (Format::JsonSchema | Format::LangchainFlat, "inputs") => Pointer::root(),
        (Format::JsonSchema, "name") => Pointer::of(["title"]),
        (Format::Raw, "inputs") => raw_schema(tool),
        (Format::JsonSchema | Format::LangchainFlat | Format::Raw | Format::Openapi, key) => {
            Pointer::of([key])
        }
        (format, key) => slot_path(super::table(format), key, &Pointer::root()).unwrap_or_default(),
    };
    base.join(&Pointer::of(rest.iter().map(String::as_str)))
}

fn raw_schema(tool: &Tool) -> Pointer {
    let definition = tool
        .definition
        .as_ref()
        .map(toolwarden_model::Definition::value)
        .unwrap_or_default();
    let key = definition.as_object().and_then(super::raw::schema_key);
    key.map_or_else(Pointer::root, |key| Pointer::of([key]))
}

fn slot_path(table: FieldTable, key: &str, at: &Pointer) -> Option<Pointer> {
    table.iter().find_map(|field| {
        let here = at.child(field.key);
        match (field.field, key) {
            (ToolField::Nested(inner), _) => slot_path(inner, key, &here),
            (ToolField::Name, "name")
            | (ToolField::Title, "title")
            | (ToolField::Description, "description")
            | (ToolField::Inputs, "inputs")
            | (ToolField::Outputs, "outputs")
            | (ToolField::Annotations, "annotations")
            | (ToolField::Strict, "strict")
            | (ToolField::Examples, "examples") => Some(here),
            _ => None,
        }
    })
}
