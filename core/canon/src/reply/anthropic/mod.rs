//! Anthropic's messages.

mod stream;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{Failure, NotMeasured, Usage};

pub(super) use stream::assemble;

use super::body::failed;
use super::draft::{Draft, check_calls};
use super::fault::wrong_envelope;
use super::rules;

/// Reads a whole message.
pub(super) fn read(mut document: Value, draft: &mut Draft<'_>) -> Result<(), NotMeasured> {
    let blocks = match document.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => {
            let message = "the content is a string, expected an array";
            draft.note(rules::MALFORMED_CONTENT, Pointer::from("/content"), message);
            draft.text(&text);
            Vec::new()
        }
        Some(Value::Null) => return Err(failed(Failure::Empty, "`content` is null")),
        Some(other) => {
            let detail = format!("`content` is {}, expected an array", type_name(&other));
            return Err(failed(Failure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "content")),
    };
    check_calls(blocks.len(), draft.limits)?;
    draft.model(document.get("model"));
    draft.usage(usage(document.get("usage")));
    let at = Pointer::from("/content");
    for (index, block) in blocks.into_iter().enumerate() {
        match block {
            Value::Object(block) => read_block(block, at.index(index), draft)?,
            other => {
                let message = format!("the block is {}, expected an object", type_name(&other));
                draft.malformed(at.index(index), message);
            }
        }
    }
    draft.stopped(document.get_mut("stop_reason").map(Value::take));
    Ok(())
}

fn read_block(mut block: Object, at: Pointer, draft: &mut Draft<'_>) -> Result<(), NotMeasured> {
    let text = |block: &Object, key: &str| {
        let text = block.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => draft.text(&text(&block, "text")),
        Some("thinking") => draft.reasoning(&text(&block, "thinking")),
        // What the provider keeps to itself, or runs itself, is no call to us.
        Some("redacted_thinking" | "server_tool_use") => {}
        Some("tool_use") => {
            let input = block.swap_remove("input");
            if let Some(input) = input.as_ref().filter(|it| !it.is_object()) {
                let message = format!("`input` is {}, expected an object", type_name(input));
                draft.note(rules::INPUT_NOT_OBJECT, at.child("input"), message);
            }
            let id = block.swap_remove("id");
            draft.call(at, block.get("name"), id, input)?;
        }
        Some(kind) => {
            let message = format!("a block is of type `{kind}`");
            draft.note(rules::UNKNOWN_PART, at, message);
        }
        None => draft.note(rules::UNKNOWN_PART, at, "a block has no type"),
    }
    Ok(())
}

fn usage(usage: Option<&Value>) -> Usage {
    let Some(usage) = usage else {
        return Usage::default();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let cached = count("/cache_read_input_tokens");
    // What came from a cache or went into it is not part of the other number.
    let beside = [cached, count("/cache_creation_input_tokens")];
    let beside: u64 = beside.into_iter().flatten().fold(0, u64::saturating_add);
    Usage {
        input: count("/input_tokens").map(|it| it.saturating_add(beside)),
        output: count("/output_tokens"),
        reasoning: None,
        cached,
    }
}
