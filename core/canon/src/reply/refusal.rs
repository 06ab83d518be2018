use serde_json::Value;
use toolwarden_model::reply::TrialFailure;

/// How many bytes of a refusal are scanned.
const MAX_SCANNED_BYTES: usize = 64 << 10;

/// Phrases that occur only in refusals about a tool, in lower case.
const TOOL_ERROR_PHRASES: &[&str] = &[
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

/// Whether a provider's refusal (an error status and its body) is about the schema of a tool.
///
/// Only statuses 400 and 422 can be: the others concern the API key, the rate limit or the server.
#[must_use]
pub fn classify_refusal(status: u16, body: &[u8]) -> TrialFailure {
    if !matches!(status, 400 | 422) {
        return TrialFailure::Status;
    }
    let head = body.get(..MAX_SCANNED_BYTES).unwrap_or(body);
    let param = serde_json::from_slice::<Value>(body).ok().and_then(|it| {
        let param = it.pointer("/error/param").or_else(|| it.get("param"))?;
        param.as_str().map(str::to_owned)
    });
    if param.is_some_and(|it| it.starts_with("tools") || it.starts_with("functions")) {
        return TrialFailure::SchemaRejected;
    }
    // A body may hold its message as JSON inside a string.
    let text = String::from_utf8_lossy(head)
        .to_lowercase()
        .replace('\\', "");
    // Only tools send a schema, unless the request also sets a response format.
    let elsewhere = text.contains("response_format");
    if !elsewhere && (TOOL_ERROR_PHRASES.iter().any(|it| text.contains(it)) || names_a_tool(&text))
    {
        TrialFailure::SchemaRejected
    } else {
        TrialFailure::Status
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
