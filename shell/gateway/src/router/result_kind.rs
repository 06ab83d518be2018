//! The kind of a result, and the members that each era adds to it.

use memchr::memmem;
use serde_json::value::RawValue;
use toolwarden_mcp::RawObject;

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultKind {
    /// The final answer.
    Complete,
    /// The final answer: the tool failed.
    ToolError,
    /// The server needs more input first.
    InputRequired,
    /// The answer comes later, from a task.
    Task,
    /// It claims not to be a final answer, but contains one.
    Contradictory,
    /// It is not a JSON object, as every result must be.
    NotObject,
}

/// Determines the kind of a result; parses only its top level.
pub(super) fn result_kind(result: &RawValue) -> ResultKind {
    text_result_kind(result.get())
}

/// Like [`result_kind`], for its text.
pub(super) fn text_result_kind(result: &str) -> ResultKind {
    if !is_object(result) {
        return ResultKind::NotObject;
    }
    if !may_have_markers(result.as_bytes()) {
        return ResultKind::Complete;
    }
    let members: RawObject<'_> = serde_json::from_str(result).unwrap_or_default();
    let answers = members.get("content").is_some() || members.get("structuredContent").is_some();
    match (members.text("resultType").as_deref(), answers) {
        (Some("input_required" | "task"), true) => return ResultKind::Contradictory,
        (Some("input_required"), false) => return ResultKind::InputRequired,
        (Some("task"), false) => return ResultKind::Task,
        _ => {}
    }
    if members.get("isError") == Some("true") {
        ResultKind::ToolError
    } else if !answers && members.get("task").is_some() {
        ResultKind::Task
    } else {
        ResultKind::Complete
    }
}

/// Whether a result is a JSON object, as every result must be.
pub(super) fn is_object(result: &str) -> bool {
    result.trim_start().starts_with('{')
}

/// Whether a result may have a member that determines its kind. Searching text is cheaper than parsing it, and
/// most results are plain answers. A name may be written with escapes.
fn may_have_markers(result: &[u8]) -> bool {
    [&b"resultType"[..], b"isError", b"\"task\"", b"\\u"]
        .iter()
        .any(|word| memmem::find(result, word).is_some())
}

/// The beginning of a result whose type comes first, as the gateway writes it.
const TYPE_FIRST: &str = r#"{"resultType":"#;

/// A result with the type that the stateless era requires.
pub(super) fn with_result_type(result: String) -> String {
    if result.starts_with(TYPE_FIRST) {
        return result;
    }
    let members: RawObject<'_> = serde_json::from_str(&result).unwrap_or_default();
    if members.get("resultType").is_some() {
        return result;
    }
    prepend_members(&result, r#""resultType":"complete""#)
}

/// A list of the gateway with the cache directives of the stateless era: private, and stale at once.
pub(super) fn with_private_cache(result: &str) -> String {
    prepend_members(
        result,
        r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#,
    )
}

/// A result with the cache directives of the stateless era, if it lacks them.
pub(super) fn with_cache_directives(result: String) -> String {
    let mut missing = String::new();
    if let Ok(members) = serde_json::from_str::<RawObject<'_>>(&result) {
        for (key, member) in [
            ("resultType", r#""resultType":"complete""#),
            ("ttlMs", r#""ttlMs":0"#),
            ("cacheScope", r#""cacheScope":"private""#),
        ] {
            if members.get(key).is_none() {
                let comma = if missing.is_empty() { "" } else { "," };
                missing.push_str(comma);
                missing.push_str(member);
            }
        }
    }
    if missing.is_empty() {
        return result;
    }
    prepend_members(&result, &missing)
}

/// Inserts members before all others of an object.
fn prepend_members(object: &str, members: &str) -> String {
    let rest = object.trim_start().strip_prefix('{').unwrap_or("}");
    let comma = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    format!("{{{members}{comma}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_what_they_are() {
        let looked = |text: &str| result_kind(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(looked(r#"{"content":[]}"#), ResultKind::Complete);
        assert_eq!(
            looked(r#"{"content":[],"isError":true}"#),
            ResultKind::ToolError
        );
        assert_eq!(
            looked(r#"{"resultType":"input_required","inputRequests":{}}"#),
            ResultKind::InputRequired
        );
        assert_eq!(looked(r#"{"task":{"taskId":"1"}}"#), ResultKind::Task);
        assert_eq!(
            looked(r#"{"content":[],"is\u0045rror":true}"#),
            ResultKind::ToolError
        );
        for text in ["[]", "null", "7", "\"isError\"", "true"] {
            assert_eq!(looked(text), ResultKind::NotObject, "{text}");
        }
        for label in ["task", "input_required"] {
            let result = format!(r#"{{"resultType":"{label}","structuredContent":{{}}}}"#);
            assert_eq!(looked(&result), ResultKind::Contradictory, "{label}");
        }
        let result = r#"{"task":{"taskId":"1"},"structuredContent":{}}"#;
        assert_eq!(looked(result), ResultKind::Complete);
    }

    #[test]
    fn the_stateless_era_wants_types() {
        assert_eq!(
            with_result_type(r#"{ "content":[1.00] }"#.to_owned()),
            r#"{"resultType":"complete", "content":[1.00] }"#
        );
        assert_eq!(
            with_result_type("{}".to_owned()),
            r#"{"resultType":"complete"}"#
        );
        let task = r#"{"resultType":"task"}"#;
        assert_eq!(with_result_type(task.to_owned()), task);
        assert_eq!(
            with_cache_directives(r#"{"ttlMs":5,"contents":[]}"#.to_owned()),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5,"contents":[]}"#
        );
    }
}
