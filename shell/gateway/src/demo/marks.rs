//! Arguments that a definition wants repeated in headers.
//!
//! Written apart from the gateway's own reading of the same rule, so that a mistake there shows.

use serde_json::Value;

/// An argument and the header that must repeat it.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pointer: String,
    header: String,
}

/// The marks of one input schema.
pub(super) fn marks(input_schema: &Value) -> Vec<Mark> {
    let mut found = Vec::new();
    collect(input_schema, "", &mut found);
    found
}

/// The header that does not say what the arguments say, if there is one.
pub(super) fn mismatch<'m>(
    marks: &'m [Mark],
    arguments: &Value,
    header: impl Fn(&str) -> Option<String>,
) -> Option<&'m str> {
    let differs = |mark: &&Mark| {
        let said = arguments.pointer(&mark.pointer).and_then(text);
        said != header(&mark.header)
    };
    marks.iter().find(differs).map(|mark| mark.header.as_str())
}

fn collect(schema: &Value, pointer: &str, found: &mut Vec<Mark>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let name = name.replace('~', "~0").replace('/', "~1");
        let pointer = format!("{pointer}/{name}");
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            found.push(Mark {
                pointer: pointer.clone(),
                header: format!("mcp-param-{}", header.to_ascii_lowercase()),
            });
        }
        collect(property, &pointer, found);
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
