//! Anthropic's messages.

mod stream;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{NotMeasured, TokenUsage, TrialFailure};

pub(super) use stream::assemble;

use super::body::not_measured;
use super::builder::{ReplyBuilder, check_calls};
use super::error_body::wrong_envelope;
use super::note_rules;

/// Reads a whole message.
pub(super) fn read(mut document: Value, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let blocks = match document.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => {
            let message = "the content is a string, expected an array";
            draft.note(
                note_rules::MALFORMED_CONTENT,
                Pointer::from("/content"),
                message,
            );
            draft.add_text(&text);
            Vec::new()
        }
        Some(Value::Null) => return Err(not_measured(TrialFailure::Empty, "`content` is null")),
        Some(other) => {
            let detail = format!("`content` is {}, expected an array", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "content")),
    };
    check_calls(blocks.len(), draft.limits)?;
    draft.set_model(document.get("model"));
    draft.set_usage(usage(document.get("usage")));
    let at = Pointer::from("/content");
    for (index, block) in blocks.into_iter().enumerate() {
        match block {
            Value::Object(block) => read_block(block, at.index(index), draft)?,
            other => {
                let message = format!("the block is {}, expected an object", type_name(&other));
                draft.note_malformed(at.index(index), message);
            }
        }
    }
    draft.set_finish(document.get_mut("stop_reason").map(Value::take));
    Ok(())
}

fn read_block(
    mut block: Object,
    at: Pointer,
    draft: &mut ReplyBuilder<'_>,
) -> Result<(), NotMeasured> {
    let text = |block: &Object, key: &str| {
        let text = block.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => draft.add_text(&text(&block, "text")),
        Some("thinking") => draft.add_reasoning(&text(&block, "thinking")),
        // Redacted thinking is opaque, and the provider runs server tools itself; neither is a call for us.
        Some("redacted_thinking" | "server_tool_use") => {}
        Some("tool_use") => {
            let input = block.swap_remove("input");
            if let Some(input) = input.as_ref().filter(|it| !it.is_object()) {
                let message = format!("`input` is {}, expected an object", type_name(input));
                draft.note(note_rules::INPUT_NOT_OBJECT, at.child("input"), message);
            }
            let id = block.swap_remove("id");
            draft.add_call(at, block.get("name"), id, input)?;
        }
        Some(kind) => {
            let message = format!("a block is of type `{kind}`");
            draft.note(note_rules::UNKNOWN_PART, at, message);
        }
        None => draft.note(note_rules::UNKNOWN_PART, at, "a block has no type"),
    }
    Ok(())
}

fn usage(usage: Option<&Value>) -> TokenUsage {
    let Some(usage) = usage else {
        return TokenUsage::default();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let cached = count("/cache_read_input_tokens");
    // `input_tokens` does not include the tokens read from or written to the cache.
    let beside = [cached, count("/cache_creation_input_tokens")];
    let beside: u64 = beside.into_iter().flatten().fold(0, u64::saturating_add);
    TokenUsage {
        input: count("/input_tokens").map(|it| it.saturating_add(beside)),
        output: count("/output_tokens"),
        reasoning: None,
        cached,
    }
}
