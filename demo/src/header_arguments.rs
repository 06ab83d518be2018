//! Arguments that a definition requires to be repeated in headers.
//!
//! Written independently of the gateway's implementation of the same rule, so that a mistake there shows.

use serde_json::Value;

/// An argument and the header that must repeat it.
#[derive(Clone, Debug)]
pub(super) struct HeaderArgument {
    pointer: String,
    header: String,
}

/// The marks of one input schema.
pub(super) fn header_arguments(input_schema: &Value) -> Vec<HeaderArgument> {
    let mut found = Vec::new();
    collect(input_schema, "", &mut found);
    found
}

/// The header that contradicts the arguments, if there is one.
pub(super) fn mismatch<'m>(
    marks: &'m [HeaderArgument],
    arguments: &Value,
    header: impl Fn(&str) -> Option<String>,
) -> Option<&'m str> {
    let differs = |mark: &&HeaderArgument| {
        let said = arguments.pointer(&mark.pointer).and_then(text);
        said != header(&mark.header)
    };
    marks.iter().find(differs).map(|mark| mark.header.as_str())
}

fn collect(schema: &Value, pointer: &str, found: &mut Vec<HeaderArgument>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let name = name.replace('~', "~0").replace('/', "~1");
        let pointer = format!("{pointer}/{name}");
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            found.push(HeaderArgument {
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
