//! What a result says of itself, and what each era adds to it.

use memchr::memmem;
use serde_json::value::RawValue;
use toolwarden_mcp::Members;

/// What kind of result it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// The answer.
    Complete,
    /// The answer: the tool failed.
    ToolError,
    /// More is asked for first.
    InputRequired,
    /// The answer comes later, from a task.
    Task,
    /// It says that it is no answer, and has one in it.
    Contradictory,
    /// It is not a JSON object, as every result has to be.
    NoObject,
}

/// Looks at a result without taking it apart further than one level.
pub(super) fn look(result: &RawValue) -> Looked {
    look_at(result.get())
}

/// As [`look`], at its text.
pub(super) fn look_at(result: &str) -> Looked {
    if !is_object(result) {
        return Looked::NoObject;
    }
    if !may_say_more(result.as_bytes()) {
        return Looked::Complete;
    }
    let members: Members<'_> = serde_json::from_str(result).unwrap_or_default();
    let answers = members.get("content").is_some() || members.get("structuredContent").is_some();
    match (members.text("resultType").as_deref(), answers) {
        (Some("input_required" | "task"), true) => return Looked::Contradictory,
        (Some("input_required"), false) => return Looked::InputRequired,
        (Some("task"), false) => return Looked::Task,
        _ => {}
    }
    if members.get("isError") == Some("true") {
        Looked::ToolError
    } else if !answers && members.get("task").is_some() {
        Looked::Task
    } else {
        Looked::Complete
    }
}

/// Whether a result is a JSON object, as every result has to be.
pub(super) fn is_object(result: &str) -> bool {
    result.trim_start().starts_with('{')
}

/// Whether a result may have a member that says more of it. Searching text is cheaper than taking it apart,
/// and most results are plain answers. A name may be written with escapes.
fn may_say_more(result: &[u8]) -> bool {
    [&b"resultType"[..], b"isError", b"\"task\"", b"\\u"]
        .iter()
        .any(|word| memmem::find(result, word).is_some())
}

/// How a result begins whose type comes first, as the gateway writes it.
const TYPE_FIRST: &str = r#"{"resultType":"#;

/// A result as the stateless era wants it: it says of which type it is.
pub(super) fn typed(result: String) -> String {
    if result.starts_with(TYPE_FIRST) {
        return result;
    }
    let members: Members<'_> = serde_json::from_str(&result).unwrap_or_default();
    if members.get("resultType").is_some() {
        return result;
    }
    with_first(&result, r#""resultType":"complete""#)
}

/// A list of ours as the stateless era wants it: nobody else's, and to be asked for again.
pub(super) fn private(result: &str) -> String {
    with_first(
        result,
        r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#,
    )
}

/// A result with the cache directives of the stateless era, where it lacks them.
pub(super) fn cacheable(result: String) -> String {
    let mut missing = String::new();
    if let Ok(members) = serde_json::from_str::<Members<'_>>(&result) {
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
    with_first(&result, &missing)
}

/// Puts members before all others of an object.
fn with_first(object: &str, members: &str) -> String {
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
        let looked = |text: &str| look(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(looked(r#"{"content":[]}"#), Looked::Complete);
        assert_eq!(
            looked(r#"{"content":[],"isError":true}"#),
            Looked::ToolError
        );
        assert_eq!(
            looked(r#"{"resultType":"input_required","inputRequests":{}}"#),
            Looked::InputRequired
        );
        assert_eq!(looked(r#"{"task":{"taskId":"1"}}"#), Looked::Task);
        assert_eq!(
            looked(r#"{"content":[],"is\u0045rror":true}"#),
            Looked::ToolError
        );
        for text in ["[]", "null", "7", "\"isError\"", "true"] {
            assert_eq!(looked(text), Looked::NoObject, "{text}");
        }
        for label in ["task", "input_required"] {
            let result = format!(r#"{{"resultType":"{label}","structuredContent":{{}}}}"#);
            assert_eq!(looked(&result), Looked::Contradictory, "{label}");
        }
        let result = r#"{"task":{"taskId":"1"},"structuredContent":{}}"#;
        assert_eq!(looked(result), Looked::Complete);
    }

    #[test]
    fn the_stateless_era_wants_types() {
        assert_eq!(
            typed(r#"{ "content":[1.00] }"#.to_owned()),
            r#"{"resultType":"complete", "content":[1.00] }"#
        );
        assert_eq!(typed("{}".to_owned()), r#"{"resultType":"complete"}"#);
        let task = r#"{"resultType":"task"}"#;
        assert_eq!(typed(task.to_owned()), task);
        assert_eq!(
            cacheable(r#"{"ttlMs":5,"contents":[]}"#.to_owned()),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5,"contents":[]}"#
        );
    }
}
