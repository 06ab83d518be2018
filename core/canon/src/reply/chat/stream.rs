use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::{NotMeasured, TrialFailure};

use super::MESSAGE;
use super::call_assembler::{CallAssembler, CallDelta};
use crate::reply::body::{EventData, ReplyEvents, not_measured};
use crate::reply::builder::ReplyBuilder;
use crate::reply::{error_body, note_rules};

/// Assembles the chunks of a stream into one completion.
pub(crate) fn assemble(
    mut events: ReplyEvents<'_>,
    draft: &mut ReplyBuilder<'_>,
) -> Result<Value, NotMeasured> {
    let mut stream = Stream::default();
    let mut done = false;
    while let Some(chunk) = events.next()? {
        if done {
            let message = "events follow `[DONE]`";
            draft.note(note_rules::EVENTS_AFTER_DONE, Pointer::root(), message);
            break;
        }
        match chunk {
            EventData::Done => done = true,
            EventData::Json { name, value } if name == "error" => {
                return Err(error_body::error_body(&value));
            }
            EventData::Json { value, .. } => stream.add(value, draft)?,
        }
    }
    events.note_end(draft);
    stream.finish(done, draft)
}

#[derive(Debug, Default)]
struct Stream {
    model: Option<Value>,
    text: Texts,
    calls: CallAssembler,
    legacy: Option<Object>,
    finish: Option<Value>,
    /// Some providers send an empty finish reason with each chunk.
    blank_finish: Option<Value>,
    usage: Option<Value>,
    usages: usize,
    usage_on_content: bool,
    chunks: usize,
    has_choice: bool,
    has_delta: bool,
}

/// The members of a message that are texts.
#[derive(Debug, Default)]
struct Texts {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Vec<Value>,
    /// Parts of the content that are not text, kept for the reader of the complete message.
    parts: Vec<Value>,
}

impl Stream {
    fn add(&mut self, chunk: Value, draft: &mut ReplyBuilder<'_>) -> Result<(), NotMeasured> {
        error_body::reject_error_body(&chunk)?;
        self.chunks += 1;
        let Value::Object(mut chunk) = chunk else {
            let found = type_name(&chunk);
            let detail = format!("a chunk is {found}, expected an object");
            return Err(not_measured(TrialFailure::WrongEnvelope, detail));
        };
        if self.model.is_none() {
            self.model = chunk.swap_remove("model").filter(|it| !it.is_null());
        }
        // DashScope's own errors have no member `error`.
        let has = |key| chunk.contains_key(key);
        if !has("choices") && has("code") && has("message") {
            return Err(error_body::error_body(&Value::Object(chunk)));
        }
        let choices = match chunk.swap_remove("choices") {
            Some(Value::Array(choices)) => choices,
            _ => Vec::new(),
        };
        if let Some(usage) = chunk.swap_remove("usage").filter(|it| !it.is_null()) {
            self.usages += 1;
            self.usage_on_content = !choices.is_empty();
            self.usage = Some(usage);
        }
        for choice in choices {
            let Value::Object(choice) = choice else {
                let found = type_name(&choice);
                let detail = format!("a choice is {found}, expected an object");
                return Err(not_measured(TrialFailure::WrongEnvelope, detail));
            };
            self.add_choice(choice, draft)?;
        }
        Ok(())
    }

    fn add_choice(
        &mut self,
        mut choice: Object,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<(), NotMeasured> {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        if index != 0 {
            let message = format!("a chunk is of choice {index}");
            let at = Pointer::from("/choices").child(&index.to_string());
            draft.note(note_rules::SEVERAL_CHOICES, at, message);
            return Ok(());
        }
        if let Some(error) = choice.get("error").filter(|it| !it.is_null()) {
            return Err(error_body::error_body(error));
        }
        self.has_choice = true;
        let finish = choice.swap_remove("finish_reason");
        let finish = finish.filter(|it| !it.is_null());
        if finish.as_ref().is_some_and(|it| it == "") {
            self.blank_finish = finish;
        } else if let Some(finish) = finish {
            if let Some(before) = self.finish.as_ref().filter(|it| **it != finish) {
                let message = format!("the finish is {before}, then {finish}");
                let at = Pointer::from("/choices/0/finish_reason");
                draft.note(note_rules::FINISH_CHANGED, at, message);
            }
            self.finish = Some(finish);
        }
        // Kimi reports the usage inside the choice.
        if let Some(usage) = choice.swap_remove("usage").filter(|it| !it.is_null()) {
            self.usages += 1;
            self.usage_on_content = true;
            self.usage = Some(usage);
        }
        let delta = choice.swap_remove("delta").filter(|it| !it.is_null());
        match (delta, choice.swap_remove("message")) {
            (Some(Value::Object(delta)), _) => {
                self.has_delta |= delta.values().any(|it| !it.is_null());
                self.add_delta(delta, draft)
            }
            (Some(other), _) => {
                let found = type_name(&other);
                let detail = format!("a delta is {found}, expected an object");
                Err(not_measured(TrialFailure::WrongEnvelope, detail))
            }
            (None, Some(Value::Object(message))) => {
                let said = if self.has_delta { "ignored" } else { "read" };
                let said = format!("a chunk has a whole message; it was {said}");
                draft.note(note_rules::MESSAGE_IN_CHUNK, Pointer::from(MESSAGE), said);
                if self.has_delta {
                    return Ok(());
                }
                self.has_delta = true;
                self.add_delta(message, draft)
            }
            (None, _) => Ok(()),
        }
    }

    fn add_delta(
        &mut self,
        mut delta: Object,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<(), NotMeasured> {
        self.text.add(&mut delta, draft);
        match delta.swap_remove("tool_calls") {
            None | Some(Value::Null) => {}
            Some(Value::Array(pieces)) => {
                for piece in pieces {
                    match CallDelta::read(piece) {
                        Ok(piece) => self.calls.add(piece, draft)?,
                        Err(message) => draft.note_malformed(tool_calls(), message),
                    }
                }
            }
            Some(other) => {
                let found = type_name(&other);
                let message = format!("`tool_calls` is {found}, expected an array");
                draft.note_malformed(tool_calls(), message);
            }
        }
        if let Some(Value::Object(piece)) = delta.swap_remove("function_call") {
            let legacy = self.legacy.get_or_insert_default();
            for (key, value) in piece {
                match (legacy.get_mut(&key), value) {
                    (Some(Value::String(own)), Value::String(more)) if key == "arguments" => {
                        own.push_str(&more);
                    }
                    (None, value) => {
                        legacy.insert(key, value);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn finish(self, done: bool, draft: &mut ReplyBuilder<'_>) -> Result<Value, NotMeasured> {
        if self.finish.is_none() && !done {
            let detail = format!(
                "the stream ends after {} chunks without a finish or `[DONE]`",
                self.chunks
            );
            return Err(not_measured(TrialFailure::Truncated, detail));
        }
        if !self.has_choice {
            let detail = "no chunk of the stream has a choice";
            return Err(not_measured(TrialFailure::Empty, detail));
        }
        if !done {
            let message = "the stream ends without `[DONE]`";
            draft.note(note_rules::MISSING_DONE, Pointer::root(), message);
        }
        if self.usages > 1 {
            let message = format!("{} chunks report the usage", self.usages);
            draft.note(note_rules::USAGE_REPEATED, Pointer::from("/usage"), message);
        } else if self.usage_on_content {
            let message = "the usage is in a chunk with a choice";
            draft.note(
                note_rules::USAGE_ON_CONTENT_CHUNK,
                Pointer::from("/usage"),
                message,
            );
        }
        let mut message = self.text.finish();
        let calls = self.calls.finish(draft);
        message.extend(calls.map(|it| ("tool_calls".to_owned(), it)));
        let legacy = self.legacy.map(Value::Object);
        message.extend(legacy.map(|it| ("function_call".to_owned(), it)));
        Ok(json!({
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish.or(self.blank_finish)}],
            "usage": self.usage,
        }))
    }
}

impl Texts {
    fn add(&mut self, delta: &mut Object, draft: &mut ReplyBuilder<'_>) {
        for (key, own) in [
            ("refusal", &mut self.refusal),
            ("reasoning_content", &mut self.reasoning_content),
            ("reasoning", &mut self.reasoning),
        ] {
            if let Some(text) = delta.get(key).and_then(Value::as_str) {
                own.get_or_insert_default().push_str(text);
            }
        }
        if let Some(Value::Array(details)) = delta.swap_remove("reasoning_details") {
            self.reasoning_details.extend(details);
        }
        match delta.swap_remove("content") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                self.content.get_or_insert_default().push_str(&text);
            }
            Some(Value::Array(parts)) => self.parts.extend(parts),
            Some(other) => {
                let found = type_name(&other);
                let message = format!("the content is {found}, expected a string");
                let at = Pointer::from(MESSAGE).child("content");
                draft.note(note_rules::MALFORMED_CONTENT, at, message);
            }
        }
    }

    fn finish(mut self) -> Object {
        let mut message = Object::new();
        let text = self.content.map(Value::String);
        let content = if self.parts.is_empty() {
            text
        } else {
            let text = text.map(|text| json!({"type": "text", "text": text}));
            self.parts.splice(0..0, text);
            Some(Value::Array(self.parts))
        };
        message.insert("role".to_owned(), Value::from("assistant"));
        for (key, value) in [
            ("content", content),
            ("refusal", self.refusal.map(Value::String)),
            (
                "reasoning_content",
                self.reasoning_content.map(Value::String),
            ),
            ("reasoning", self.reasoning.map(Value::String)),
        ] {
            message.extend(value.map(|it| (key.to_owned(), it)));
        }
        if !self.reasoning_details.is_empty() {
            let details = Value::Array(self.reasoning_details);
            message.insert("reasoning_details".to_owned(), details);
        }
        message
    }
}

fn tool_calls() -> Pointer {
    Pointer::from(MESSAGE).child("tool_calls")
}
