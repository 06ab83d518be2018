use serde_json::Value;
use toolwarden_model::reply::Failure;

/// How much of a refusal is looked at.
const LOOKED_AT: usize = 64 << 10;

/// What only a refusal about a tool says, in lower case.
const TELLING: &[&str] = &[
    "schema",
    "function_declarations",
    "functiondeclarations",
    "function.parameters",
    "function parameters",
    "invalid_function_parameters",
    "'tools', ",
    "\"tools\", ",
    "\"tools\",",
];

/// Whether a refusal (a status that is no success, and its body) is about the schema of a tool.
///
/// Only 400 and 422 can be: the others are about the key, the rate or the server.
#[must_use]
pub fn refusal(status: u16, body: &[u8]) -> Failure {
    if !matches!(status, 400 | 422) {
        return Failure::Status;
    }
    let head = body.get(..LOOKED_AT).unwrap_or(body);
    let param = serde_json::from_slice::<Value>(body).ok().and_then(|it| {
        let param = it.pointer("/error/param").or_else(|| it.get("param"))?;
        param.as_str().map(str::to_owned)
    });
    if param.is_some_and(|it| it.starts_with("tools") || it.starts_with("functions")) {
        return Failure::SchemaRejected;
    }
    // A body may hold its message as JSON inside a string.
    let text = String::from_utf8_lossy(head)
        .to_lowercase()
        .replace('\\', "");
    // Nothing but tools sends a schema, except an answer format that somebody added.
    let elsewhere = text.contains("response_format");
    if !elsewhere && (TELLING.iter().any(|it| text.contains(it)) || names_a_tool(&text)) {
        Failure::SchemaRejected
    } else {
        Failure::Status
    }
}

/// Whether a text has a path into the tools, such as `tools[0]` or `tools.3.custom`.
fn names_a_tool(text: &str) -> bool {
    text.match_indices("tools").any(|(at, word)| {
        let after = text.get(at + word.len()..).unwrap_or_default();
        let mut after = after.chars();
        match after.next() {
            Some('[') => true,
            Some('.' | '/') => after.next().is_some_and(char::is_alphanumeric),
            _ => false,
        }
    })
}
