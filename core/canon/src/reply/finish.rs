use serde_json::Value;
use toolwarden_model::reply::{FinishClass, WireApi};

/// A finish reason of a wire API, its meaning, and whether the API's own specification defines it.
type Word = (&'static str, FinishClass, bool);

const CHAT: &[Word] = &[
    ("tool_calls", FinishClass::Calls, true),
    ("function_call", FinishClass::Calls, true),
    ("stop", FinishClass::Done, true),
    ("length", FinishClass::Length, true),
    ("content_filter", FinishClass::Filtered, true),
    ("model_length", FinishClass::Length, false),
    ("max_tokens", FinishClass::Length, false),
    ("sensitive", FinishClass::Filtered, false),
    ("network_error", FinishClass::Failed, false),
    ("error", FinishClass::Failed, false),
    ("abort", FinishClass::Failed, false),
    ("insufficient_system_resource", FinishClass::Failed, false),
];

const RESPONSES: &[Word] = &[
    ("completed", FinishClass::Done, true),
    ("max_output_tokens", FinishClass::Length, true),
    ("content_filter", FinishClass::Filtered, true),
    ("cancelled", FinishClass::Failed, true),
    ("failed", FinishClass::Failed, true),
];

const ANTHROPIC: &[Word] = &[
    ("tool_use", FinishClass::Calls, true),
    ("end_turn", FinishClass::Done, true),
    ("stop_sequence", FinishClass::Done, true),
    ("pause_turn", FinishClass::Done, true),
    ("max_tokens", FinishClass::Length, true),
    ("model_context_window_exceeded", FinishClass::Length, true),
    ("refusal", FinishClass::Filtered, true),
];

const GEMINI: &[Word] = &[
    ("STOP", FinishClass::Done, true),
    ("MAX_TOKENS", FinishClass::Length, true),
    ("SAFETY", FinishClass::Filtered, true),
    ("RECITATION", FinishClass::Filtered, true),
    ("LANGUAGE", FinishClass::Filtered, true),
    ("BLOCKLIST", FinishClass::Filtered, true),
    ("PROHIBITED_CONTENT", FinishClass::Filtered, true),
    ("SPII", FinishClass::Filtered, true),
    ("IMAGE_SAFETY", FinishClass::Filtered, true),
    ("MALFORMED_FUNCTION_CALL", FinishClass::Failed, true),
    ("UNEXPECTED_TOOL_CALL", FinishClass::Failed, true),
    ("TOO_MANY_TOOL_CALLS", FinishClass::Failed, true),
    ("MALFORMED_RESPONSE", FinishClass::Failed, true),
    ("OTHER", FinishClass::Other, true),
];

/// The meaning of a finish reason on a wire API.
#[must_use]
pub fn classify_finish(wire: WireApi, finish: Option<&Value>) -> FinishClass {
    match finish {
        None | Some(Value::Null) => FinishClass::Absent,
        Some(Value::String(word)) if word.is_empty() => FinishClass::Absent,
        Some(word) => find(wire, word).map_or(FinishClass::Other, |(_, class, _)| *class),
    }
}

/// Whether the wire API's own specification defines a finish reason.
pub(super) fn is_standard(wire: WireApi, finish: &Value) -> bool {
    find(wire, finish).is_some_and(|(_, _, usual)| *usual)
}

fn find(wire: WireApi, finish: &Value) -> Option<&'static Word> {
    let words = match wire {
        WireApi::OpenaiChat => CHAT,
        WireApi::OpenaiResponses => RESPONSES,
        WireApi::Anthropic => ANTHROPIC,
        WireApi::Gemini => GEMINI,
    };
    let finish = finish.as_str()?;
    words.iter().find(|(word, _, _)| *word == finish)
}
