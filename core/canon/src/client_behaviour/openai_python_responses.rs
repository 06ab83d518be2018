//! OpenAI's library for Python, `client.responses.stream(…)`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::events::{IdMemory, openai_chunks};
use super::openai_python::hand_response;
use super::python_object::{attribute, items, object};
use super::{ClientResult, HandedReply, HttpReply, raise, set_member};

/// `stream.get_final_response()`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut state: Option<StreamState> = None;
    for event in openai_chunks(reply, IdMemory::Kept, "JSONDecodeError")? {
        let kind = attribute(&event, "type")?
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match &mut state {
            None => state = Some(StreamState::begin(&kind, &event)?),
            Some(state) => state.accumulate(&kind, &event)?,
        }
    }
    match state.and_then(|it| it.response) {
        Some(response) => hand_response(&response),
        None => raise("RuntimeError", "the stream has no `response.completed`"),
    }
}

/// What identifies an output item: its type, its id unless it is a call, and the id of the call.
type Identity = (String, Value, Value);

struct StreamState {
    id: Value,
    /// The items by index, as added.
    added: BTreeMap<String, Value>,
    /// The items by index, as done.
    done: BTreeMap<String, Value>,
    positions: Vec<(Identity, String)>,
    response: Option<Value>,
}

impl StreamState {
    fn begin(kind: &str, event: &Value) -> ClientResult<Self> {
        if kind != "response.created" {
            return raise("RuntimeError", "the first event is not `response.created`");
        }
        let response = object(attribute(event, "response")?, "response")?;
        let output = response.get("output").and_then(Value::as_array);
        let added = output.into_iter().flatten().enumerate();
        Ok(Self {
            id: response.get("id").cloned().unwrap_or_default(),
            added: added
                .map(|(at, item)| (at.to_string(), item.clone()))
                .collect(),
            done: BTreeMap::new(),
            positions: Vec::new(),
            response: None,
        })
    }

    fn accumulate(&mut self, kind: &str, event: &Value) -> ClientResult<()> {
        let lifecycle = matches!(
            kind,
            "response.created"
                | "response.queued"
                | "response.in_progress"
                | "response.completed"
                | "response.failed"
                | "response.incomplete"
        );
        if lifecycle && *attribute(attribute(event, "response")?, "id")? != self.id {
            return raise("RuntimeError", "the id of the response changes");
        }
        let at = event
            .get("output_index")
            .unwrap_or(&Value::Null)
            .to_string();
        match kind {
            "response.output_item.added" => {
                let item = attribute(event, "item")?;
                if item.is_null() {
                    return Ok(());
                }
                if self.added.contains_key(&at) {
                    return raise("RuntimeError", "two items have one index");
                }
                object(item, "item")?;
                self.added.insert(at, item.clone());
            }
            "response.content_part.added" => {
                let part = attribute(event, "part")?.clone();
                let item = self.item(&at)?;
                if is_type(item, "message") {
                    object(&part, "part")?;
                    match item.get_mut("content") {
                        Some(Value::Array(parts)) => parts.push(part),
                        _ => return raise("AttributeError", "a message has no list of parts"),
                    }
                }
            }
            "response.output_text.delta" => {
                let item = self.item(&at)?;
                if !is_type(item, "message") {
                    return raise(
                        "AssertionError",
                        "text belongs to an item that is not a message",
                    );
                }
                let Some(part) = event.get("content_index").and_then(Value::as_u64) else {
                    return raise("TypeError", "text has no index of its part");
                };
                let part = usize::try_from(part).unwrap_or(usize::MAX);
                let parts = item.get("content").and_then(Value::as_array);
                match parts.and_then(|it| it.get(part)) {
                    Some(part) if is_type(part, "output_text") => {}
                    Some(_) => return raise("AssertionError", "a part with text is not a text"),
                    None => return raise("IndexError", "text belongs to no part"),
                }
            }
            "response.function_call_arguments.delta" => {
                let piece = attribute(event, "delta")?.clone();
                let item = self.item(&at)?;
                if !is_type(item, "function_call") {
                    return raise(
                        "AssertionError",
                        "arguments belong to an item that is not a call",
                    );
                }
                match (item.get_mut("arguments"), piece.as_str()) {
                    (Some(Value::String(all)), Some(piece)) => all.push_str(piece),
                    _ => return raise("TypeError", "arguments are not texts"),
                }
            }
            "response.output_item.done" => self.finish_item(at, attribute(event, "item")?)?,
            "response.completed" => self.complete(attribute(event, "response")?)?,
            _ => {}
        }
        Ok(())
    }

    fn item(&mut self, at: &str) -> ClientResult<&mut Value> {
        match self.added.get_mut(at) {
            Some(item) => Ok(item),
            None => raise(
                "RuntimeError",
                "an event belongs to an item that was not added",
            ),
        }
    }

    fn finish_item(&mut self, at: String, item: &Value) -> ClientResult<()> {
        let now = identity(item)?;
        if let Some(added) = self.added.get(&at)
            && (identity(added)? != now || !is_compatible(added, item))
        {
            return raise("RuntimeError", "an item is not the one that was added");
        }
        let position = self.positions.iter().find(|(it, _)| *it == now);
        if position.is_some_and(|(_, other)| *other != at) {
            return raise("RuntimeError", "two items have one identity");
        }
        self.positions.retain(|(_, other)| *other != at);
        self.positions.push((now, at.clone()));
        self.done.insert(at, item.clone());
        Ok(())
    }

    fn complete(&mut self, response: &Value) -> ClientResult<()> {
        let output = attribute(response, "output")?;
        let list = match output {
            Value::Null => Vec::new(),
            other => items(other, "output")?,
        };
        let mut last = Vec::new();
        for item in &list {
            last.push((identity(item)?, item));
        }
        let find = |wanted: &Identity| {
            let found = last.iter().rev().find(|(it, _)| it == wanted);
            found.map(|(_, item)| *item)
        };
        for item in self.done.values() {
            if find(&identity(item)?).is_some_and(|it| !is_compatible(item, it)) {
                return raise("RuntimeError", "the last event has other ids of items");
            }
        }
        for (at, item) in &self.added {
            let known = find(&identity(item)?).is_some_and(|it| is_compatible(item, it));
            if !self.done.contains_key(at) && !known {
                return raise("RuntimeError", "an item was never done");
            }
        }
        let mut response = response.clone();
        if output.is_null() {
            let done = self.done.values().cloned().collect();
            set_member(&mut response, "output", Value::Array(done));
        }
        self.response = Some(response);
        Ok(())
    }
}

fn is_type(item: &Value, kind: &str) -> bool {
    item.get("type").and_then(Value::as_str) == Some(kind)
}

fn identity(item: &Value) -> ClientResult<Identity> {
    let kind = attribute(item, "type")?;
    let call_id = attribute(item, "call_id")?.clone();
    let is_call = matches!(
        kind.as_str(),
        Some("function_call" | "custom_tool_call" | "shell_call" | "shell_call_output")
    );
    let id = if is_call {
        Value::Null
    } else {
        attribute(item, "id")?.clone()
    };
    Ok((kind.to_string(), id, call_id))
}

fn is_compatible(before: &Value, now: &Value) -> bool {
    let id = |it: &Value| it.get("id").cloned().unwrap_or_default();
    let is_call = is_type(before, "function_call") || is_type(before, "custom_tool_call");
    id(before) == id(now) || id(before).is_null() && is_call
}
