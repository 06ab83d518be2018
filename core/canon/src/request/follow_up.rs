use serde_json::{Value, json};
use toolwarden_model::reply::{Reply, ReplyCall, WireApi};

use crate::RenamedTool;

/// A reply as a message of its conversation, in the format of chat completions, so that the next
/// request can repeat it before the results of its calls.
///
/// `body` is the response that the reply was read from. It provides the signatures that Gemini wants
/// back with each call. Tools get their original names back; [`request`](super::request) renames them.
#[must_use]
pub fn reply_message(wire: WireApi, reply: &Reply, body: &[u8], renamed: &[RenamedTool]) -> Value {
    let mut signatures = match wire {
        WireApi::Gemini => call_signatures(body),
        WireApi::OpenaiChat | WireApi::OpenaiResponses | WireApi::Anthropic => Vec::new(),
    }
    .into_iter();
    let calls = reply.calls.iter().enumerate().map(|(at, call)| {
        let signature = signatures.next().flatten();
        tool_call(at, call, renamed, signature)
    });
    let calls: Vec<Value> = calls.collect();
    let text = match reply.text.as_str() {
        "" if !calls.is_empty() => Value::Null,
        text => json!(text),
    };
    let mut message = json!({"role": "assistant", "content": text});
    if let Value::Object(members) = &mut message {
        // Models that reason between calls want their reasoning back.
        if wire == WireApi::OpenaiChat && !reply.reasoning.is_empty() {
            members.insert("reasoning_content".to_owned(), json!(reply.reasoning));
        }
        if !calls.is_empty() {
            members.insert("tool_calls".to_owned(), Value::Array(calls));
        }
    }
    message
}

/// The results of the calls of a message, one for each call, in the format of chat completions.
/// `result` gives the text that a tool returned, by the name of the tool.
#[must_use]
pub fn result_messages(message: &Value, result: impl Fn(&str) -> String) -> Vec<Value> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let results = calls.into_iter().flatten().map(|call| {
        let name = call.pointer("/function/name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        json!({"role": "tool", "tool_call_id": call.get("id"), "content": result(name)})
    });
    results.collect()
}

fn tool_call(
    at: usize,
    call: &ReplyCall,
    renamed: &[RenamedTool],
    signature: Option<String>,
) -> Value {
    let original = renamed.iter().find(|it| it.emitted == call.name);
    let name = original.map_or(&call.name, |it| &it.original);
    // A result refers to its call by id, so that a call without one gets one here.
    let id = match &call.id {
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => format!("call_{at}"),
    };
    let arguments = match &call.arguments {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => "{}".to_owned(),
        Some(other) => other.to_string(),
    };
    let function = json!({"name": name, "arguments": arguments});
    let mut call = json!({"id": id, "type": "function", "function": function});
    if let (Value::Object(members), Some(signature)) = (&mut call, signature) {
        // The place where Google's own chat completions have it.
        let google = json!({"google": {"thought_signature": signature}});
        members.insert("extra_content".to_owned(), google);
    }
    call
}

/// The signature of each call of a Gemini response, whole or streamed, in order.
fn call_signatures(body: &[u8]) -> Vec<Option<String>> {
    let text = String::from_utf8_lossy(body);
    let whole = serde_json::from_str::<Value>(&text).ok();
    let documents = match whole {
        Some(Value::Array(items)) => items,
        Some(whole) => vec![whole],
        None => {
            let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
            lines
                .filter_map(|line| serde_json::from_str(line.trim()).ok())
                .collect()
        }
    };
    let parts = documents.iter().flat_map(|document| {
        let parts = document.pointer("/candidates/0/content/parts");
        parts.and_then(Value::as_array).into_iter().flatten()
    });
    let calls = parts.filter(|part| part.get("functionCall").is_some());
    calls
        .map(|part| {
            let signature = part.get("thoughtSignature")?.as_str()?;
            Some(signature.to_owned())
        })
        .collect()
}
