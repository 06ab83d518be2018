//! OpenAI's responses.

mod stream;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{NotMeasured, TokenUsage, TrialFailure};

pub(super) use stream::assemble;

use super::body::not_measured;
use super::builder::{ReplyBuilder, check_calls};
use super::error_body::wrong_envelope;
use super::note_rules;

/// Reads a whole response.
pub(super) fn read(mut document: Value, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let items = match document.get_mut("output").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(Value::Null) => return Err(not_measured(TrialFailure::Empty, "`output` is null")),
        Some(other) => {
            let detail = format!("`output` is {}, expected an array", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "output")),
    };
    let status = document.get("status").and_then(Value::as_str);
    match status {
        Some("failed") => {
            return Err(not_measured(
                TrialFailure::ErrorBody,
                "the status is `failed`",
            ));
        }
        Some(status @ ("in_progress" | "queued")) => {
            let detail = format!("the status is `{status}`");
            return Err(not_measured(TrialFailure::Truncated, detail));
        }
        _ => {}
    }
    check_calls(items.len(), draft.limits)?;
    draft.set_model(document.get("model"));
    draft.set_usage(usage(document.get("usage")));
    let at = Pointer::from("/output");
    for (index, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(item) => read_item(item, at.index(index), draft)?,
            other => {
                let message = format!("the item is {}, expected an object", type_name(&other));
                draft.note_malformed(at.index(index), message);
            }
        }
    }
    let reason = document.pointer("/incomplete_details/reason");
    let reason = reason.filter(|it| it.is_string() && status == Some("incomplete"));
    draft.set_finish(reason.or_else(|| document.get("status")).cloned());
    Ok(())
}

fn read_item(
    mut item: Object,
    at: Pointer,
    draft: &mut ReplyBuilder<'_>,
) -> Result<(), NotMeasured> {
    let kind = item.get("type").and_then(Value::as_str);
    let is_text = kind == Some("custom_tool_call");
    match kind {
        Some("message") => read_message(item.get("content"), &at.child("content"), draft),
        Some("reasoning") => {
            for key in ["summary", "content"] {
                let parts = item.get(key).and_then(Value::as_array);
                let texts = parts.into_iter().flatten();
                let texts = texts.filter_map(|it| it.get("text")?.as_str());
                texts.for_each(|text| draft.add_reasoning(text));
            }
        }
        Some("function_call" | "custom_tool_call") => {
            if is_text {
                let message = "the call is of a tool that takes text";
                draft.note(note_rules::CUSTOM_CALL, at.clone(), message);
            }
            let arguments = item.swap_remove(if is_text { "input" } else { "arguments" });
            let id = item.swap_remove("call_id");
            let id = id.or_else(|| item.swap_remove("id"));
            draft.add_call(at, item.get("name"), id, arguments)?;
        }
        Some(kind) => {
            let message = format!("an item is of type `{kind}`");
            draft.note(note_rules::UNKNOWN_PART, at, message);
        }
        None => draft.note(note_rules::UNKNOWN_PART, at, "an item has no type"),
    }
    Ok(())
}

fn read_message(content: Option<&Value>, at: &Pointer, draft: &mut ReplyBuilder<'_>) {
    let parts = match content {
        Some(Value::Array(parts)) => parts,
        None | Some(Value::Null) => return,
        Some(other) => {
            let message = format!("the content is {}, expected an array", type_name(other));
            draft.note(note_rules::MALFORMED_CONTENT, at.clone(), message);
            other.as_str().into_iter().for_each(|it| draft.add_text(it));
            return;
        }
    };
    for (index, part) in parts.iter().enumerate() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            draft.add_text(text);
        } else if let Some(refusal) = part.get("refusal").and_then(Value::as_str) {
            let message = "the model declined in `refusal`";
            draft.note(note_rules::REFUSAL_TEXT, at.index(index), message);
            draft.add_text(refusal);
        } else {
            let message = "a part of the content has no text";
            draft.note(note_rules::UNKNOWN_PART, at.index(index), message);
        }
    }
}

fn usage(usage: Option<&Value>) -> TokenUsage {
    let Some(usage) = usage else {
        return TokenUsage::default();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    TokenUsage {
        input: count("/input_tokens"),
        output: count("/output_tokens"),
        reasoning: count("/output_tokens_details/reasoning_tokens"),
        cached: count("/input_tokens_details/cached_tokens"),
    }
}
