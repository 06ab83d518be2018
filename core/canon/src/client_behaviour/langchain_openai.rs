//! LangChain's integration of OpenAI, chat completions.

use serde_json::{Value, json};
use toolwarden_model::json::type_name;

use super::events::{IdMemory, openai_chunks};
use super::langchain::{CallChunk, ChunkSum, checked_call, content_text};
use super::partial_json::loads;
use super::python_object::{document, is_truthy, items};
use super::{ClientResult, HandedCall, HandedReply, HttpReply, raise};

/// `ChatOpenAI(…).invoke(…)`.
pub(super) fn chat(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let response = document(reply)?;
    if !response.is_object() {
        return raise("ValueError", "the response is not an object");
    }
    if response.get("error").is_some_and(is_truthy) {
        return raise("ValueError", "the response is an error");
    }
    let choices = response.get("choices").unwrap_or(&Value::Null);
    if choices.is_null() {
        return raise("TypeError", "`choices` is null");
    }
    let mut messages = Vec::new();
    for choice in items(choices, "choices")? {
        let Value::Object(choice) = choice else {
            return raise("TypeError", "a choice is not an object");
        };
        messages.push(message(choice.get("message").unwrap_or(&Value::Null))?);
    }
    match messages.into_iter().next() {
        Some(message) => Ok(message),
        None => raise("IndexError", "`choices` is empty"),
    }
}

fn message(message: &Value) -> ClientResult<HandedReply> {
    if !message.is_object() {
        let what = format!("`message` is {}", type_name(message));
        return raise("AttributeError", what);
    }
    let content = message.get("content").filter(|it| is_truthy(it));
    if message.get("role").is_none_or(|it| it != "assistant") {
        let role = message.get("role").unwrap_or(&Value::Null);
        if content.is_none() && message.get("content").is_none_or(Value::is_null)
            || !role.is_string()
        {
            return raise("ValidationError", "the role is not `assistant`");
        }
        return raise("AttributeError", "the role is not `assistant`");
    }
    let mut calls = Vec::new();
    let mut delayed = None;
    let raw = message.get("tool_calls").filter(|it| is_truthy(it));
    for call in raw
        .map(|it| items(it, "tool_calls"))
        .transpose()?
        .unwrap_or_default()
    {
        match parsed_call(&call)? {
            ParsedCall::Call(call) => calls.push(*call),
            ParsedCall::Invalid => {}
            // The message is validated after all calls were read.
            ParsedCall::Rejected(class) => {
                delayed.get_or_insert(class);
            }
        }
    }
    let text = content.map(content_text).transpose()?.unwrap_or_default();
    if let Some(class) = delayed {
        return raise(class, "a call is not of the form that the message requires");
    }
    Ok(HandedReply {
        calls,
        text: Value::String(text),
    })
}

/// What becomes of one call.
enum ParsedCall {
    Call(Box<HandedCall>),
    /// It is kept apart, with an error message.
    Invalid,
    /// The message that has it raises.
    Rejected(&'static str),
}

fn parsed_call(call: &Value) -> ClientResult<ParsedCall> {
    let function = match call {
        Value::Object(members) => {
            let is_custom = members.get("type").is_some_and(|it| it == "custom");
            if is_custom && !members.contains_key("function") {
                return Ok(ParsedCall::Rejected("AttributeError"));
            }
            members.get("function").unwrap_or(&Value::Null)
        }
        Value::String(text) if !text.contains("function") => {
            return Ok(ParsedCall::Rejected("AttributeError"));
        }
        _ => return raise("TypeError", "a call is not an object"),
    };
    let Value::Object(function) = function else {
        return raise("TypeError", "a call has no `function`");
    };
    let member = |key: &str| function.get(key).cloned().unwrap_or_default();
    let (name, sent) = (member("name"), member("arguments"));
    let id = call.get("id").cloned().unwrap_or_default();
    let arguments = match &sent {
        sent if !is_truthy(sent) => json!({}),
        Value::String(text) => match loads(text) {
            Some(value) if is_truthy(&value) => value,
            Some(_) => json!({}),
            None => return Ok(ParsedCall::Invalid),
        },
        // An invalid call must have a text.
        _ => return Ok(ParsedCall::Rejected("ValidationError")),
    };
    let name = if is_truthy(&name) { name } else { json!("") };
    Ok(match checked_call(id, name, arguments) {
        Ok(call) => ParsedCall::Call(Box::new(call)),
        Err(error) => ParsedCall::Rejected(error.class),
    })
}

/// The sum of `ChatOpenAI(…).stream(…)`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut sum = ChunkSum::default();
    for chunk in openai_chunks(reply, IdMemory::Kept, "JSONDecodeError")? {
        if !chunk.is_object() {
            return raise("AttributeError", "a chunk is not an object");
        }
        let choices = chunk.get("choices").filter(|it| is_truthy(it));
        let choice = match choices {
            None => {
                sum.add(Vec::new(), "")?;
                continue;
            }
            Some(Value::Array(choices)) => choices.first().unwrap_or(&Value::Null),
            Some(_) => return raise("KeyError", "`choices` is not a list"),
        };
        let Value::Object(choice) = choice else {
            return raise("TypeError", "a choice is not an object");
        };
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        match delta {
            Value::Null => {}
            Value::Object(_) => add_delta(&mut sum, delta)?,
            _ => return raise("AttributeError", "a delta is not an object"),
        }
    }
    sum.hand()
}

fn add_delta(sum: &mut ChunkSum, delta: &Value) -> ClientResult<()> {
    let mut chunks = Vec::new();
    let pieces = delta.get("tool_calls").filter(|it| is_truthy(it));
    for piece in pieces
        .map(|it| items(it, "tool_calls"))
        .transpose()?
        .unwrap_or_default()
    {
        let Value::Object(piece) = piece else {
            return raise("TypeError", "a piece of a call is not an object");
        };
        let Some(Value::Object(function)) = piece.get("function") else {
            return raise("AttributeError", "a piece of a call has no `function`");
        };
        let index = piece.get("index").cloned().unwrap_or_default();
        chunks.push(CallChunk {
            name: function.get("name").cloned().unwrap_or_default(),
            args: function.get("arguments").cloned().unwrap_or_default(),
            id: piece.get("id").cloned().unwrap_or_default(),
            // The client's types accept an index that is a text.
            index: match index.as_str().and_then(|it| it.parse::<i64>().ok()) {
                Some(number) => json!(number),
                None => index,
            },
        });
    }
    let content = delta.get("content").filter(|it| is_truthy(it));
    let text = content.map(content_text).transpose()?.unwrap_or_default();
    sum.add(chunks, &text)
}
