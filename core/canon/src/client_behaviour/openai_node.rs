//! OpenAI's library for Node.js, chat completions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolwarden_model::json as parser;

use super::events::{IdMemory, openai_chunks};
use super::{ClientResult, GENERATED_ID, HandedCall, HandedReply, HttpReply, raise};

/// The document that the library parses from a body: a text unless it is declared as JSON.
pub(super) fn document(reply: HttpReply<'_>) -> ClientResult<Value> {
    let media = reply
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let text = String::from_utf8_lossy(reply.body);
    if !media.contains("application/json") && !media.ends_with("+json") {
        return Ok(Value::String(text.into_owned()));
    }
    if reply.body.is_empty() {
        return raise("TypeError", "the body is empty");
    }
    match parser::parse(&text) {
        Ok(parsed) => Ok(parsed.value),
        Err(_) => raise("SyntaxError", "the body is not JSON"),
    }
}

/// `client.chat.completions.create(…)`.
pub(super) fn chat(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let completion = document(reply)?;
    let choice = match completion.get("choices") {
        Some(Value::Array(choices)) => choices.first(),
        Some(Value::Object(choices)) => choices.get("0"),
        _ => None,
    };
    let message = choice.and_then(|it| it.get("message"));
    let Some(message) = message.filter(|it| !it.is_null()) else {
        return raise("TypeError", "there is no `choices[0].message`");
    };
    hand_message(message)
}

fn hand_message(message: &Value) -> ClientResult<HandedReply> {
    let mut handed = HandedReply {
        calls: Vec::new(),
        text: match message.get("content") {
            None | Some(Value::Null) => json!(""),
            Some(text) => text.clone(),
        },
    };
    match message.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) => {
            for call in calls {
                handed.calls.push(hand_call(call)?);
            }
        }
        Some(_) => return raise("TypeError", "`tool_calls` is not a list"),
    }
    Ok(handed)
}

fn hand_call(call: &Value) -> ClientResult<HandedCall> {
    let function = call.get("function").filter(|it| !it.is_null());
    let Some(function) = function else {
        return raise("TypeError", "a call has no `function`");
    };
    let member = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    Ok(HandedCall {
        id: member(call, "id"),
        name: member(function, "name"),
        arguments: member(function, "arguments"),
    })
}

/// The class of every error while a stream is read, whatever it was.
pub(super) const STREAM_ERROR: &str = "OpenAIError";

/// `client.chat.completions.stream(…).finalChatCompletion()`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let chunks = openai_chunks(reply, IdMemory::Ignored, STREAM_ERROR)?;
    if chunks.is_empty() {
        return raise(STREAM_ERROR, "the stream has no chunk");
    }
    // Members of an array by name; JavaScript accepts any name as an index.
    let mut choices: BTreeMap<String, ChoiceSnapshot> = BTreeMap::new();
    for chunk in &chunks {
        let Some(Value::Array(list)) = chunk.get("choices") else {
            return raise(STREAM_ERROR, "`choices` is not a list");
        };
        for choice in list {
            if choice.is_null() {
                return raise(STREAM_ERROR, "a choice is null");
            }
            let index = index_name(choice.get("index"));
            choices.entry(index).or_default().accumulate(choice)?;
        }
    }
    for (index, choice) in &choices {
        if is_index(index) {
            choice.check_final()?;
        }
    }
    match choices.get("0") {
        Some(choice) => choice.hand(),
        None => raise(STREAM_ERROR, "there is no message of the assistant"),
    }
}

/// The name of a property that a value becomes as an index.
pub(super) fn index_name(index: Option<&Value>) -> String {
    match index {
        None => "undefined".to_owned(),
        Some(index) => js_text(index),
    }
}

/// A value as JavaScript joins it to a text.
pub(super) fn js_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Array(items) => items.iter().map(js_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// `text += value`.
pub(super) fn join_text(text: &mut Value, value: &Value) {
    if let Value::String(text) = text {
        text.push_str(&js_text(value));
    } else {
        *text = Value::String(js_text(text) + &js_text(value));
    }
}

fn is_index(name: &str) -> bool {
    name.parse::<u32>().is_ok_and(|it| it.to_string() == name)
}

/// Whether a value counts as true in a condition of JavaScript.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(it) => !it.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn truthy<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|it| is_truthy(it))
}

#[derive(Default)]
struct ChoiceSnapshot {
    /// The members of the message besides calls.
    message: Map<String, Value>,
    /// The calls by the name of their index, with a whole list if one came at once.
    calls: Option<BTreeMap<String, CallSnapshot>>,
    has_function_call: bool,
    finish: Option<Value>,
    current: Option<String>,
}

#[derive(Clone, Default)]
struct CallSnapshot {
    id: Option<Value>,
    kind: Option<Value>,
    function: Option<(Value, Value)>,
}

impl ChoiceSnapshot {
    fn accumulate(&mut self, choice: &Value) -> ClientResult<()> {
        if let Some(word) = truthy(choice, "finish_reason") {
            self.finish = Some(word.clone());
        }
        // Members besides the delta replace those of the choice.
        if let Some(message) = choice.get("message") {
            self.replace_message(message)?;
        }
        if let Some(delta) = truthy(choice, "delta") {
            self.add_delta(delta)?;
        }
        self.emit(choice.get("delta"))
    }

    fn replace_message(&mut self, message: &Value) -> ClientResult<()> {
        let Value::Object(members) = message else {
            return raise(STREAM_ERROR, "`message` is not an object");
        };
        self.message.clone_from(members);
        self.message.remove("tool_calls");
        self.has_function_call = truthy(message, "function_call").is_some();
        self.calls = match message.get("tool_calls") {
            Some(Value::Array(calls)) => {
                let calls = calls.iter().enumerate();
                Some(
                    calls
                        .map(|(at, it)| (at.to_string(), CallSnapshot::whole(it)))
                        .collect(),
                )
            }
            _ => None,
        };
        Ok(())
    }

    fn add_delta(&mut self, delta: &Value) -> ClientResult<()> {
        if let Some(role) = truthy(delta, "role") {
            self.message.insert("role".to_owned(), role.clone());
        }
        self.has_function_call |= truthy(delta, "function_call").is_some();
        if let Some(content) = truthy(delta, "content") {
            let before = self.message.entry("content").or_insert_with(|| json!(""));
            if !is_truthy(before) {
                *before = json!("");
            }
            join_text(before, content);
        }
        let Some(pieces) = truthy(delta, "tool_calls") else {
            return Ok(());
        };
        let pieces = match pieces {
            Value::Array(pieces) => pieces.clone(),
            Value::String(text) => text.chars().map(|it| json!(it.to_string())).collect(),
            _ => return raise(STREAM_ERROR, "`tool_calls` is not a list"),
        };
        let calls = self.calls.get_or_insert_default();
        for piece in &pieces {
            if piece.is_null() {
                return raise(STREAM_ERROR, "a piece of a call is null");
            }
            let call = calls.entry(index_name(piece.get("index"))).or_default();
            call.accumulate(piece);
        }
        Ok(())
    }

    /// The events that the client emits for a chunk need the type of each call.
    fn emit(&mut self, delta: Option<&Value>) -> ClientResult<()> {
        if self.finish.is_some()
            && let Some(current) = self.current.clone()
        {
            self.emit_done(&current)?;
        }
        let pieces = delta
            .and_then(|it| it.get("tool_calls"))
            .and_then(Value::as_array);
        let pieces: Vec<&Value> = pieces.into_iter().flatten().collect();
        for piece in &pieces {
            // An index that is null or missing does not count as one.
            let index = piece.get("index").filter(|it| !it.is_null()).map(js_text);
            if let Some(current) = self.current.clone()
                && index.as_ref() != Some(&current)
            {
                self.emit_done(&current)?;
            }
            self.current = index;
        }
        for piece in &pieces {
            let name = index_name(piece.get("index"));
            let call = self.calls.as_ref().and_then(|it| it.get(&name));
            let kind = call.and_then(|it| it.kind.as_ref());
            if kind.is_some_and(|it| it != "function") {
                return raise(STREAM_ERROR, "the type of a call is not `function`");
            }
        }
        Ok(())
    }

    fn emit_done(&self, index: &str) -> ClientResult<()> {
        let call = self.calls.as_ref().and_then(|it| it.get(index));
        match call.map(|it| it.kind.as_ref()) {
            Some(Some(kind)) if kind == "function" => Ok(()),
            Some(Some(_)) => raise(STREAM_ERROR, "the type of a call is not `function`"),
            Some(None) => raise(STREAM_ERROR, "a call has no type"),
            None => raise(STREAM_ERROR, "a call is missing"),
        }
    }

    /// The checks when the stream ended.
    fn check_final(&self) -> ClientResult<()> {
        if self.finish.is_none() {
            return raise(STREAM_ERROR, "the stream has no finish reason");
        }
        if !self.message.get("role").is_some_and(is_truthy) {
            return raise(STREAM_ERROR, "the stream has no role");
        }
        if self.has_function_call {
            return Ok(());
        }
        let Some(calls) = &self.calls else {
            return Ok(());
        };
        let indexed = calls.iter().filter(|(name, _)| is_index(name));
        let mut count = 0_usize;
        let mut length = 0_usize;
        for (name, call) in indexed {
            count += 1;
            length = length.max(name.parse::<usize>().unwrap_or_default() + 1);
            if call.kind.as_ref().is_none_or(|it| it != "function") {
                return raise(STREAM_ERROR, "a call has no type");
            }
            match &call.function {
                Some((name, arguments)) if !name.is_null() && !arguments.is_null() => {}
                _ => return raise(STREAM_ERROR, "a call has no name or no arguments"),
            }
        }
        if count < length {
            return raise(STREAM_ERROR, "the index of a call skips a number");
        }
        Ok(())
    }

    fn hand(&self) -> ClientResult<HandedReply> {
        if self.message.get("role").is_none_or(|it| it != "assistant") {
            return raise(STREAM_ERROR, "there is no message of the assistant");
        }
        let text = self.message.get("content").filter(|it| !it.is_null());
        let mut calls: Vec<(usize, HandedCall)> = Vec::new();
        if !self.has_function_call {
            for (index, call) in self.calls.iter().flatten() {
                let Ok(at) = index.parse::<usize>() else {
                    continue;
                };
                let (name, arguments) = call.function.clone().unwrap_or_default();
                let id = call.id.clone().unwrap_or_else(|| json!(GENERATED_ID));
                calls.push((
                    at,
                    HandedCall {
                        id,
                        name,
                        arguments,
                    },
                ));
            }
        }
        calls.sort_by_key(|(at, _)| *at);
        Ok(HandedReply {
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            text: text.cloned().unwrap_or_else(|| json!("")),
        })
    }
}

impl CallSnapshot {
    fn whole(call: &Value) -> Self {
        let function = call.get("function").filter(|it| it.is_object());
        let member = |it: &Value, key: &str| it.get(key).cloned().unwrap_or_default();
        Self {
            id: truthy(call, "id").cloned(),
            kind: truthy(call, "type").cloned(),
            function: function.map(|it| (member(it, "name"), member(it, "arguments"))),
        }
    }

    fn accumulate(&mut self, piece: &Value) {
        if let Some(id) = truthy(piece, "id") {
            self.id = Some(id.clone());
        }
        if let Some(kind) = truthy(piece, "type") {
            self.kind = Some(kind.clone());
        }
        let Some(function) = truthy(piece, "function") else {
            return;
        };
        let (name, arguments) = self.function.get_or_insert_with(|| (json!(""), json!("")));
        if let Some(new) = truthy(function, "name") {
            name.clone_from(new);
        }
        if let Some(new) = truthy(function, "arguments") {
            join_text(arguments, new);
        }
    }
}
