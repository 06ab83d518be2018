use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;

use super::tools::EmittedTools;
use super::{ModelRequest, insert_some};

/// The body of a chat completion. Messages and tool choice are sent unchanged, except for tool names.
pub(super) fn body(ask: &ModelRequest<'_>, tools: &EmittedTools) -> (String, Object) {
    let streams = ask.mode == StreamMode::Stream;
    let mut body = Object::new();
    insert_some(&mut body, "model", Some(json!(ask.model)));
    let messages = ask.messages.iter().map(|it| message(it, tools));
    insert_some(&mut body, "messages", Some(messages.collect()));
    let list = tools.list();
    let choice = ask.tool_choice.filter(|_| list.is_some());
    insert_some(&mut body, "tools", list);
    insert_some(&mut body, "tool_choice", choice.map(|it| choose(it, tools)));
    insert_some(&mut body, "stream", Some(json!(streams)));
    let options = streams.then(|| json!({"include_usage": true}));
    insert_some(&mut body, "stream_options", options);
    insert_some(&mut body, "temperature", ask.temperature.map(Value::from));
    insert_some(&mut body, "max_tokens", ask.max_tokens.map(Value::from));
    ("/chat/completions".to_owned(), body)
}

fn message(message: &Value, tools: &EmittedTools) -> Value {
    let mut message = message.clone();
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            rename(call, tools);
        }
    }
    message
}

fn choose(choice: &Value, tools: &EmittedTools) -> Value {
    let mut choice = choice.clone();
    rename(&mut choice, tools);
    choice
}

fn rename(call: &mut Value, tools: &EmittedTools) {
    if let Some(Value::String(name)) = call.pointer_mut("/function/name") {
        *name = tools.name(name).to_owned();
    }
}
