use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::{NotMeasured, TrialFailure};

use crate::reply::body::{ReplyEvents, not_measured};
use crate::reply::builder::{ReplyBuilder, check_calls};
use crate::reply::{error_body, note_rules};

/// Assembles the events of a stream into one response.
pub(crate) fn assemble(
    mut events: ReplyEvents<'_>,
    draft: &mut ReplyBuilder<'_>,
) -> Result<Value, NotMeasured> {
    let mut stream = Stream::default();
    while let Some((name, event)) = events.next_named()? {
        if stream.response.is_some() {
            let message = "events follow the one that ends the response";
            draft.note(note_rules::EVENTS_AFTER_DONE, Pointer::root(), message);
            break;
        }
        stream.add(&name, event, draft)?;
    }
    events.note_end(draft);
    stream.finish(draft)
}

#[derive(Debug, Default)]
struct Stream {
    /// The items of the output, by their index.
    items: BTreeMap<u64, Item>,
    by_id: BTreeMap<String, u64>,
    /// The response in the last event.
    response: Option<Object>,
    events: usize,
}

#[derive(Debug, Default)]
struct Item {
    members: Object,
    /// The pieces of the arguments, of the text and of the reasoning.
    arguments: String,
    text: String,
    reasoning: String,
    /// The complete arguments, from the event after their last piece.
    final_arguments: Option<Value>,
    done: bool,
}

impl Stream {
    fn add(
        &mut self,
        name: &str,
        mut event: Object,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<(), NotMeasured> {
        self.events += 1;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(name);
        let kind = kind.to_owned();
        match kind.as_str() {
            "response.output_item.added" | "response.output_item.done" => {
                let index = self.index(&event, true, draft);
                let item = self.items.entry(index).or_default();
                if let Some(Value::Object(members)) = event.swap_remove("item") {
                    let id = members.get("id").and_then(Value::as_str);
                    self.by_id.extend(id.map(|id| (id.to_owned(), index)));
                    item.members = members;
                }
                item.done = kind.ends_with("done");
                check_calls(self.items.len(), draft.limits)?;
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.piece(&event, draft, |item| &mut item.arguments);
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.piece(&event, draft, |item| &mut item.text);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.piece(&event, draft, |item| &mut item.reasoning);
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                let told = event.swap_remove("arguments");
                let told = told.or_else(|| event.swap_remove("input"));
                let index = self.index(&event, false, draft);
                if let Some(item) = self.items.get_mut(&index) {
                    item.final_arguments = told;
                }
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                let Some(Value::Object(response)) = event.swap_remove("response") else {
                    let detail = format!("`{kind}` has no response");
                    return Err(not_measured(TrialFailure::WrongEnvelope, detail));
                };
                self.response = Some(response);
            }
            "response.failed" => {
                let error = event.get("response").and_then(|it| it.get("error"));
                let event = Value::Object(event.clone());
                return Err(error_body::error_body(error.unwrap_or(&event)));
            }
            // The rest repeats what these say.
            _ => {}
        }
        Ok(())
    }

    /// The index of the item an event is about: its own, or that of the last item.
    fn index(&self, event: &Object, begins: bool, draft: &mut ReplyBuilder<'_>) -> u64 {
        if let Some(index) = event.get("output_index").and_then(Value::as_u64) {
            return index;
        }
        let id = event
            .get("item_id")
            .or_else(|| event.get("item")?.get("id"));
        if let Some(index) = id.and_then(|id| self.by_id.get(id.as_str()?)) {
            return *index;
        }
        let message = "an event has no index of the item it is about";
        draft.note(note_rules::MISSING_INDEX, Pointer::from("/output"), message);
        let last = self.items.last_key_value().map(|(index, _)| *index);
        match (last, begins) {
            (Some(last), true) => last.saturating_add(1),
            (last, _) => last.unwrap_or(0),
        }
    }

    fn piece(
        &mut self,
        event: &Object,
        draft: &mut ReplyBuilder<'_>,
        place: fn(&mut Item) -> &mut String,
    ) {
        let index = self.index(event, false, draft);
        let delta = event.get("delta").and_then(Value::as_str);
        match (self.items.get_mut(&index), delta) {
            (Some(item), Some(delta)) => place(item).push_str(delta),
            _ => {
                let message = "a delta belongs to no item that was started";
                draft.note(note_rules::ORPHAN_DELTA, Pointer::from("/output"), message);
            }
        }
    }

    fn finish(self, draft: &mut ReplyBuilder<'_>) -> Result<Value, NotMeasured> {
        let Some(mut response) = self.response else {
            let detail = format!(
                "the stream ends after {} events without one that ends the response",
                self.events
            );
            return Err(not_measured(TrialFailure::Truncated, detail));
        };
        if !self.items.is_empty() {
            let items = self.items.into_values().enumerate();
            let items: Vec<Value> = items
                .map(|(at, item)| item.finish(&Pointer::from("/output").index(at), draft))
                .collect();
            let told = response.get("output").and_then(Value::as_array);
            if told.is_some_and(|told| !told.is_empty() && calls(told) != calls(&items)) {
                let message = "the calls of the last event are not those of the stream";
                draft.note(
                    note_rules::STREAM_DISAGREES,
                    Pointer::from("/output"),
                    message,
                );
            }
            response.insert("output".to_owned(), Value::Array(items));
        }
        Ok(Value::Object(response))
    }
}

impl Item {
    fn finish(mut self, at: &Pointer, draft: &mut ReplyBuilder<'_>) -> Value {
        if !self.done {
            draft.note(
                note_rules::UNCLOSED_BLOCK,
                at.clone(),
                "the item was never done",
            );
        }
        let kind = self.members.get("type").and_then(Value::as_str);
        let part = |kind: &str, text: String| -> Value {
            serde_json::json!([{"type": kind, "text": text}])
        };
        let (key, pieces) = match kind {
            Some("function_call") => ("arguments", Value::String(self.arguments)),
            Some("custom_tool_call") => ("input", Value::String(self.arguments)),
            Some("message") => ("content", part("output_text", self.text)),
            Some("reasoning") => ("summary", part("summary_text", self.reasoning)),
            _ => return Value::Object(self.members),
        };
        let has_pieces = pieces.as_str().is_none_or(|it| !it.is_empty());
        let own = self.members.get(key).filter(|own| match own {
            Value::String(text) => self.done || !text.is_empty(),
            Value::Array(parts) => self.done || !parts.is_empty(),
            _ => true,
        });
        let told = own.cloned().filter(|_| self.done).or(self.final_arguments);
        let is_call = matches!(key, "arguments" | "input");
        if let Some(told) = told.as_ref().filter(|it| **it != pieces)
            && is_call
            && has_pieces
        {
            let shown = crate::reply::body::excerpt(told.to_string().as_bytes());
            let message = format!("the pieces of the arguments are not {shown}");
            draft.note(note_rules::STREAM_DISAGREES, at.child(key), message);
        }
        if let Some(value) = told.or_else(|| has_pieces.then_some(pieces)) {
            self.members.insert(key.to_owned(), value);
        }
        Value::Object(self.members)
    }
}

/// What identifies a call: name, id and arguments.
fn calls(items: &[Value]) -> Vec<[Option<&Value>; 4]> {
    let keys = ["name", "call_id", "arguments", "input"];
    let is_call = |item: &&Value| {
        let kind = item.get("type").and_then(Value::as_str);
        matches!(kind, Some("function_call" | "custom_tool_call"))
    };
    let calls = items.iter().filter(is_call);
    calls.map(|item| keys.map(|key| item.get(key))).collect()
}
