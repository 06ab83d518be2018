//! Gemini's `generateContent`.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{NotMeasured, TokenUsage, TrialFailure};

use super::body::{EventData, ReplyEvents, not_measured};
use super::builder::{ReplyBuilder, check_calls};
use super::error_body::{self, wrong_envelope};
use super::note_rules;

/// Reads a whole answer.
pub(super) fn read(mut document: Value, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
    let blocked = document.pointer("/promptFeedback/blockReason").cloned();
    let mut candidates = match document.get_mut("candidates").map(Value::take) {
        Some(Value::Array(candidates)) => candidates,
        None | Some(Value::Null) if blocked.is_some() => Vec::new(),
        Some(Value::Null) => return Err(not_measured(TrialFailure::Empty, "`candidates` is null")),
        Some(other) => {
            let detail = format!("`candidates` is {}, expected an array", type_name(&other));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "candidates")),
    };
    if candidates.len() > 1 {
        let message = format!("there are {} candidates", candidates.len());
        let at = Pointer::from("/candidates/1");
        draft.note(note_rules::SEVERAL_CHOICES, at, message);
    }
    let mut candidate = match (candidates.first_mut().map(Value::take), blocked) {
        (Some(Value::Object(candidate)), _) => candidate,
        (Some(other), _) => {
            let found = type_name(&other);
            let detail = format!("the candidate is {found}, expected an object");
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        }
        (None, Some(reason)) => {
            let detail = format!("the prompt was blocked: {reason}");
            return Err(not_measured(TrialFailure::Empty, detail));
        }
        (None, None) => return Err(not_measured(TrialFailure::Empty, "there are no candidates")),
    };
    let finish = candidate.swap_remove("finishReason");
    let content = candidate.swap_remove("content").filter(|it| !it.is_null());
    if content.is_none() && finish.is_none() {
        let detail = "the candidate has neither content nor a finish";
        return Err(not_measured(TrialFailure::Empty, detail));
    }
    draft.set_model(document.get("modelVersion"));
    draft.set_usage(usage(document.get("usageMetadata")));
    let at = Pointer::from("/candidates/0/content/parts");
    match content.and_then(|mut it| it.get_mut("parts").map(Value::take)) {
        None | Some(Value::Null) => {}
        Some(Value::Array(parts)) => {
            check_calls(parts.len(), draft.limits)?;
            for (index, part) in parts.into_iter().enumerate() {
                read_part(part, at.index(index), draft)?;
            }
        }
        Some(other) => {
            let message = format!("`parts` is {}, expected an array", type_name(&other));
            draft.note(note_rules::MALFORMED_CONTENT, at, message);
        }
    }
    draft.set_finish(finish);
    Ok(())
}

fn read_part(
    mut part: Value,
    at: Pointer,
    draft: &mut ReplyBuilder<'_>,
) -> Result<(), NotMeasured> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        match is_thought(&part) {
            true => draft.add_reasoning(text),
            false => draft.add_text(text),
        }
        return Ok(());
    }
    let at_call = at.child("functionCall");
    match part.get_mut("functionCall").map(Value::take) {
        Some(Value::Object(mut call)) => {
            if call.contains_key("partialArgs") || call.contains_key("willContinue") {
                let message = "the arguments came in pieces by path";
                draft.note(note_rules::PARTIAL_ARGUMENTS, at_call.clone(), message);
            }
            let arguments = call.swap_remove("args");
            if let Some(other) = arguments.as_ref().filter(|it| !it.is_object()) {
                let message = format!("`args` is {}, expected an object", type_name(other));
                draft.note(note_rules::INPUT_NOT_OBJECT, at_call.child("args"), message);
            }
            let id = call.swap_remove("id");
            draft.add_call(at_call, call.get("name"), id, arguments)
        }
        Some(other) => {
            let message = format!(
                "`functionCall` is {}, expected an object",
                type_name(&other)
            );
            draft.note_malformed(at_call, message);
            Ok(())
        }
        None => {
            // A part may hold only a signature of the reasoning.
            if part.get("thoughtSignature").is_none() {
                let message = "a part has neither text nor a call";
                draft.note(note_rules::UNKNOWN_PART, at, message);
            }
            Ok(())
        }
    }
}

/// Assembles the events of a stream into one reply.
pub(super) fn assemble_events(
    mut events: ReplyEvents<'_>,
    draft: &mut ReplyBuilder<'_>,
) -> Result<Value, NotMeasured> {
    let next = || match events.next() {
        Ok(Some(EventData::Json { value, .. })) => Some(Ok(value)),
        Ok(Some(EventData::Done) | None) => None,
        Err(error) => Some(Err(error)),
    };
    let whole = assemble(std::iter::from_fn(next))?;
    events.note_end(draft);
    Ok(whole)
}

/// Assembles the chunks of a stream.
pub(super) fn assemble(
    chunks: impl Iterator<Item = Result<Value, NotMeasured>>,
) -> Result<Value, NotMeasured> {
    let mut whole = Object::new();
    let mut candidate = Object::new();
    let mut others = Vec::new();
    let mut parts = Vec::new();
    let mut count = 0_usize;
    for chunk in chunks {
        let chunk = chunk?;
        error_body::reject_error_body(&chunk)?;
        let Value::Object(mut chunk) = chunk else {
            let detail = format!("a chunk is {}, expected an object", type_name(&chunk));
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        };
        count += 1;
        let candidates = match chunk.swap_remove("candidates") {
            Some(Value::Array(candidates)) => candidates,
            _ => Vec::new(),
        };
        for own in candidates {
            let Value::Object(mut own) = own else {
                let detail = format!("a candidate is {}, expected an object", type_name(&own));
                return Err(not_measured(TrialFailure::WrongEnvelope, detail));
            };
            if own.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
                others.push(Value::Null);
                continue;
            }
            let content = own.swap_remove("content");
            if let Some(Value::Array(more)) =
                content.and_then(|mut it| Some(it.get_mut("parts")?.take()))
            {
                more.into_iter().for_each(|part| append(&mut parts, part));
            }
            candidate.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
        }
        whole.extend(chunk.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let blocked = whole
        .get("promptFeedback")
        .is_some_and(|it| it.get("blockReason").is_some());
    if candidate.is_empty() && parts.is_empty() {
        if !blocked {
            let detail = "no chunk of the stream has a candidate";
            return Err(not_measured(TrialFailure::Empty, detail));
        }
    } else if !candidate.contains_key("finishReason") {
        let detail = format!("the stream ends after {count} chunks without a finish");
        return Err(not_measured(TrialFailure::Truncated, detail));
    } else {
        candidate.insert("content".to_owned(), json!({ "parts": parts }));
        others.truncate(1);
        others.insert(0, Value::Object(candidate));
        whole.insert("candidates".to_owned(), Value::Array(others));
    }
    Ok(Value::Object(whole))
}

/// Adds a part. Text is appended to a preceding text part, so that the parts equal those of a
/// non-streamed reply.
fn append(parts: &mut Vec<Value>, part: Value) {
    let is_text = |it: &Value| it.get("text").is_some_and(Value::is_string);
    if let Some(last) = parts.last_mut()
        && is_text(last)
        && is_text(&part)
        && is_thought(last) == is_thought(&part)
        && let Some(Value::String(own)) = last.get_mut("text")
        && let Some(more) = part.get("text").and_then(Value::as_str)
    {
        own.push_str(more);
        return;
    }
    parts.push(part);
}

fn is_thought(part: &Value) -> bool {
    part.get("thought") == Some(&Value::Bool(true))
}

fn usage(usage: Option<&Value>) -> TokenUsage {
    let Some(usage) = usage else {
        return TokenUsage::default();
    };
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let reasoning = count("thoughtsTokenCount");
    let said = count("candidatesTokenCount");
    let output = match (said, reasoning) {
        (None, None) => None,
        (said, reasoning) => Some(
            said.unwrap_or_default()
                .saturating_add(reasoning.unwrap_or_default()),
        ),
    };
    TokenUsage {
        input: count("promptTokenCount"),
        output,
        reasoning,
        cached: count("cachedContentTokenCount"),
    }
}
