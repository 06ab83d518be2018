//! Gemini's `generateContent`.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{Failure, NotMeasured, Usage};

use super::body::{Chunk, Events, failed};
use super::draft::{Draft, check_calls};
use super::fault::{self, wrong_envelope};
use super::rules;

/// Reads a whole answer.
pub(super) fn read(mut document: Value, draft: &mut Draft<'_>) -> Result<(), NotMeasured> {
    let blocked = document.pointer("/promptFeedback/blockReason").cloned();
    let mut candidates = match document.get_mut("candidates").map(Value::take) {
        Some(Value::Array(candidates)) => candidates,
        None | Some(Value::Null) if blocked.is_some() => Vec::new(),
        Some(Value::Null) => return Err(failed(Failure::Empty, "`candidates` is null")),
        Some(other) => {
            let detail = format!("`candidates` is {}, expected an array", type_name(&other));
            return Err(failed(Failure::WrongEnvelope, detail));
        }
        None => return Err(wrong_envelope(&document, "candidates")),
    };
    if candidates.len() > 1 {
        let message = format!("there are {} candidates", candidates.len());
        let at = Pointer::from("/candidates/1");
        draft.note(rules::SEVERAL_CHOICES, at, message);
    }
    let mut candidate = match (candidates.first_mut().map(Value::take), blocked) {
        (Some(Value::Object(candidate)), _) => candidate,
        (Some(other), _) => {
            let found = type_name(&other);
            let detail = format!("the candidate is {found}, expected an object");
            return Err(failed(Failure::WrongEnvelope, detail));
        }
        (None, Some(reason)) => {
            let detail = format!("the prompt was blocked: {reason}");
            return Err(failed(Failure::Empty, detail));
        }
        (None, None) => return Err(failed(Failure::Empty, "there are no candidates")),
    };
    let finish = candidate.swap_remove("finishReason");
    let content = candidate.swap_remove("content").filter(|it| !it.is_null());
    if content.is_none() && finish.is_none() {
        let detail = "the candidate has neither content nor a finish";
        return Err(failed(Failure::Empty, detail));
    }
    draft.model(document.get("modelVersion"));
    draft.usage(usage(document.get("usageMetadata")));
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
            draft.note(rules::MALFORMED_CONTENT, at, message);
        }
    }
    draft.stopped(finish);
    Ok(())
}

fn read_part(mut part: Value, at: Pointer, draft: &mut Draft<'_>) -> Result<(), NotMeasured> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        match is_thought(&part) {
            true => draft.reasoning(text),
            false => draft.text(text),
        }
        return Ok(());
    }
    let at_call = at.child("functionCall");
    match part.get_mut("functionCall").map(Value::take) {
        Some(Value::Object(mut call)) => {
            if call.contains_key("partialArgs") || call.contains_key("willContinue") {
                let message = "the arguments came in pieces by path";
                draft.note(rules::PARTIAL_ARGUMENTS, at_call.clone(), message);
            }
            let arguments = call.swap_remove("args");
            if let Some(other) = arguments.as_ref().filter(|it| !it.is_object()) {
                let message = format!("`args` is {}, expected an object", type_name(other));
                draft.note(rules::INPUT_NOT_OBJECT, at_call.child("args"), message);
            }
            let id = call.swap_remove("id");
            draft.call(at_call, call.get("name"), id, arguments)
        }
        Some(other) => {
            let message = format!(
                "`functionCall` is {}, expected an object",
                type_name(&other)
            );
            draft.malformed(at_call, message);
            Ok(())
        }
        None => {
            // A signature of the reasoning may stand alone.
            if part.get("thoughtSignature").is_none() {
                let message = "a part has neither text nor a call";
                draft.note(rules::UNKNOWN_PART, at, message);
            }
            Ok(())
        }
    }
}

/// Puts the events of a stream together to the answer they make.
pub(super) fn assemble_events(
    mut events: Events<'_>,
    draft: &mut Draft<'_>,
) -> Result<Value, NotMeasured> {
    let next = || match events.next() {
        Ok(Some(Chunk::Json { value, .. })) => Some(Ok(value)),
        Ok(Some(Chunk::Done) | None) => None,
        Err(error) => Some(Err(error)),
    };
    let whole = assemble(std::iter::from_fn(next))?;
    events.note_end(draft);
    Ok(whole)
}

/// Puts the chunks of a stream together.
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
        fault::check(&chunk)?;
        let Value::Object(mut chunk) = chunk else {
            let detail = format!("a chunk is {}, expected an object", type_name(&chunk));
            return Err(failed(Failure::WrongEnvelope, detail));
        };
        count += 1;
        let candidates = match chunk.swap_remove("candidates") {
            Some(Value::Array(candidates)) => candidates,
            _ => Vec::new(),
        };
        for own in candidates {
            let Value::Object(mut own) = own else {
                let detail = format!("a candidate is {}, expected an object", type_name(&own));
                return Err(failed(Failure::WrongEnvelope, detail));
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
            return Err(failed(Failure::Empty, detail));
        }
    } else if !candidate.contains_key("finishReason") {
        let detail = format!("the stream ends after {count} chunks without a finish");
        return Err(failed(Failure::Truncated, detail));
    } else {
        candidate.insert("content".to_owned(), json!({ "parts": parts }));
        others.truncate(1);
        others.insert(0, Value::Object(candidate));
        whole.insert("candidates".to_owned(), Value::Array(others));
    }
    Ok(Value::Object(whole))
}

/// Adds a part; a text goes on with the text before it, so that the parts are those of a whole
/// answer.
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

fn usage(usage: Option<&Value>) -> Usage {
    let Some(usage) = usage else {
        return Usage::default();
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
    Usage {
        input: count("promptTokenCount"),
        output,
        reasoning,
        cached: count("cachedContentTokenCount"),
    }
}
