//! Headers that repeat single arguments of a call.
//!
//! In the stateless era a tool's input schema may mark properties with `x-mcp-header`, so that
//! proxies can route by them. A server refuses a call over HTTP without these headers.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::{PARAM_HEADER_PREFIX, header_value};

/// A property that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    path: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marked {
    name: String,
    input_schema: Value,
}

/// The name of a tool and the properties it wants repeated; `None` if it wants none.
pub(crate) fn wanted(definition: &RawValue) -> Option<(String, Vec<ParamHeader>)> {
    // Most definitions lack the mark, and searching text is cheaper than reading a schema.
    if !definition.get().contains("x-mcp-header") {
        return None;
    }
    let tool: Marked = serde_json::from_str(definition.get()).ok()?;
    let mut headers = Vec::new();
    collect(&tool.input_schema, &mut Vec::new(), &mut headers);
    (!headers.is_empty()).then_some((tool.name, headers))
}

/// The headers for a call with these arguments; absent arguments have none.
pub(crate) fn headers(wanted: &[ParamHeader], arguments: &Value) -> Vec<(String, String)> {
    wanted
        .iter()
        .filter_map(|param| header(param, arguments))
        .collect()
}

fn header(param: &ParamHeader, arguments: &Value) -> Option<(String, String)> {
    let mut value = arguments;
    for key in &param.path {
        value = value.get(key)?;
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let name = format!("{PARAM_HEADER_PREFIX}{}", param.name);
    Some((name, header_value(&text)))
}

/// Only chains of `properties` count: elsewhere a value may occur any number of times. The JSON
/// reader's own limit on nesting bounds the recursion.
fn collect(schema: &Value, path: &mut Vec<String>, headers: &mut Vec<ParamHeader>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        path.push(key.clone());
        if let Some(name) = property.get("x-mcp-header").and_then(Value::as_str) {
            headers.push(ParamHeader {
                path: path.clone(),
                name: name.to_owned(),
            });
        }
        collect(property, path, headers);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marked_arguments_become_headers() {
        let definition = RawValue::from_string(
            json!({"name": "t", "inputSchema": {"properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
                "list": {"items": {"x-mcp-header": "Ignored"}},
                "gone": {"x-mcp-header": "Gone"},
            }}})
            .to_string(),
        )
        .unwrap();
        let (name, params) = wanted(&definition).unwrap();
        assert_eq!(name, "t");
        assert_eq!(
            headers(
                &params,
                &json!({"region": "eu", "deep": {"n": 3}, "list": ["x"]})
            ),
            [
                ("mcp-param-Region".to_owned(), "eu".to_owned()),
                ("mcp-param-N".to_owned(), "3".to_owned()),
            ]
        );
    }
}
