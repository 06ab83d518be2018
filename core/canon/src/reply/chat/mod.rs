//! Reads chat completions, the OpenAI format that most other providers imitate.

mod call_assembler;
mod stream;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{NotMeasured, TokenUsage, TrialFailure};

pub(super) use stream::assemble;

use super::body::not_measured;
use super::builder::{ReplyBuilder, check_calls};
use super::error_body::{error_body, wrong_envelope};
use super::note_rules;

const MESSAGE: &str = "/choices/0/message";

/// Reads a whole completion.
pub(super) fn read(mut document: Value, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let mut choices = match document.get_mut("choices").map(Value::take) {
        Some(Value::Array(choices)) => choices,
        Some(Value::Null) => return Err(not_measured(TrialFailure::Empty, "`choices` is null")),
        Some(other) => {
            let detail = format!("`choices` is {}, expected an array", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "choices")),
    };
    if choices.len() > 1 {
        let message = format!("there are {} choices", choices.len());
        draft.note(
            note_rules::SEVERAL_CHOICES,
            Pointer::from("/choices/1"),
            message,
        );
    }
    let mut choice = match choices.first_mut().map(Value::take) {
        Some(Value::Object(choice)) => choice,
        Some(other) => {
            let detail = format!("the choice is {}, expected an object", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(not_measured(TrialFailure::Empty, "`choices` is empty")),
    };
    if let Some(error) = choice.get("error").filter(|it| !it.is_null()) {
        return Err(error_body(error));
    }
    let finish = choice.swap_remove("finish_reason");
    let message = match choice.swap_remove("message") {
        Some(Value::Object(message)) => message,
        Some(other) => {
            let detail = format!("the message is {}, expected an object", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&Value::Object(choice), "message")),
    };
    draft.set_model(document.get("model"));
    draft.set_usage(usage(document.get("usage")));
    read_message(message, draft)?;
    let beside = document.get("finish_reason").filter(|it| !it.is_null());
    match (finish.filter(|it| !it.is_null()), beside) {
        (None, Some(beside)) => {
            let at = Pointer::from("/finish_reason");
            let message = format!("{beside} stands beside the choices");
            draft.note(note_rules::FINISH_OUTSIDE_CHOICE, at, message);
            draft.set_finish(Some(beside.clone()));
        }
        (finish, _) => draft.set_finish(finish),
    }
    Ok(())
}

fn read_message(mut message: Object, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let at = Pointer::from(MESSAGE);
    read_content(message.get("content"), &at.child("content"), draft);
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str)
        && !refusal.is_empty()
    {
        let said = "the model declined in `refusal`";
        draft.note(note_rules::REFUSAL_TEXT, at.child("refusal"), said);
        if !draft.has_text() {
            draft.add_text(refusal);
        }
    }
    draft.add_reasoning(&reasoning(&message));
    match message.swap_remove("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            check_calls(items.len(), draft.limits)?;
            let at = at.child("tool_calls");
            for (index, item) in items.into_iter().enumerate() {
                read_call(item, at.index(index), draft)?;
            }
        }
        Some(other) => {
            let found = format!("`tool_calls` is {}, expected an array", type_name(&other));
            draft.note_malformed(at.child("tool_calls"), found);
        }
    }
    read_legacy(message.swap_remove("function_call"), draft)
}

/// Reads what the model said: a text, or on some providers a list of parts.
fn read_content(content: Option<&Value>, at: &Pointer, draft: &mut ReplyBuilder<'_>) {
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => draft.add_text(text),
        Some(Value::Array(parts)) => {
            let message = format!("the content is {} parts", parts.len());
            draft.note(note_rules::CONTENT_PARTS, at.clone(), message);
            for (index, part) in parts.iter().enumerate() {
                read_part(part, at.index(index), draft);
            }
        }
        Some(other) => {
            let message = format!("the content is {}, expected a string", type_name(other));
            draft.note(note_rules::MALFORMED_CONTENT, at.clone(), message);
        }
    }
}

fn read_part(part: &Value, at: Pointer, draft: &mut ReplyBuilder<'_>) {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        draft.add_text(text);
        return;
    }
    match part.get("thinking") {
        Some(Value::String(text)) => draft.add_reasoning(text),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|it| it.get("text")?.as_str());
            texts.for_each(|text| draft.add_reasoning(text));
        }
        _ => draft.note(
            note_rules::UNKNOWN_PART,
            at,
            "a part of the content has no text",
        ),
    }
}

/// The model's reasoning, from whichever member the provider uses.
fn reasoning(message: &Object) -> String {
    for key in ["reasoning_content", "reasoning"] {
        if let Some(text) = message.get(key).and_then(Value::as_str)
            && !text.is_empty()
        {
            return text.to_owned();
        }
    }
    let details = message.get("reasoning_details").and_then(Value::as_array);
    let texts = details.into_iter().flatten().filter_map(|detail| {
        let text = detail.get("text").or_else(|| detail.get("summary"))?;
        text.as_str()
    });
    texts.collect()
}

fn read_call(item: Value, at: Pointer, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let Value::Object(mut item) = item else {
        let found = type_name(&item);
        draft.note_malformed(at, format!("the call is {found}, expected an object"));
        return Ok(());
    };
    let id = item.swap_remove("id");
    if !item.contains_key("function")
        && let Some(Value::Object(custom)) = item.get_mut("custom")
    {
        let text = custom.swap_remove("input");
        let message = "the call is of a tool that takes text";
        draft.note(note_rules::CUSTOM_CALL, at.clone(), message);
        return draft.add_call(at, custom.get("name"), id, text);
    }
    match item.swap_remove("function") {
        Some(Value::Object(mut function)) => {
            let arguments = function.swap_remove("arguments");
            draft.add_call(at, function.get("name"), id, arguments)
        }
        Some(other) => {
            let found = type_name(&other);
            let message = format!("`function` is {found}, expected an object");
            draft.note_malformed(at.child("function"), message);
            Ok(())
        }
        None => {
            draft.note_malformed(at, "the call has no `function`");
            Ok(())
        }
    }
}

fn read_legacy(call: Option<Value>, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let at = Pointer::from(MESSAGE).child("function_call");
    let mut call = match call {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(call)) => call,
        Some(other) => {
            let found = type_name(&other);
            draft.note_malformed(
                at,
                format!("`function_call` is {found}, expected an object"),
            );
            return Ok(());
        }
    };
    if draft.has_calls() {
        let message = "`function_call` stands beside `tool_calls` and was ignored";
        draft.note(note_rules::LEGACY_FUNCTION_CALL, at, message);
        return Ok(());
    }
    let message = "the call stands in `function_call`";
    draft.note(note_rules::LEGACY_FUNCTION_CALL, at.clone(), message);
    let arguments = call.swap_remove("arguments");
    draft.add_call(at, call.get("name"), None, arguments)
}

fn usage(usage: Option<&Value>) -> TokenUsage {
    let Some(usage) = usage else {
        return TokenUsage::default();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    TokenUsage {
        input: count("/prompt_tokens"),
        output: count("/completion_tokens"),
        reasoning: count("/completion_tokens_details/reasoning_tokens"),
        cached: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
    }
}
