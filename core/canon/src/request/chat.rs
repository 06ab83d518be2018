use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;

use super::tools::Tools;
use super::{Ask, put};

/// The body of a chat completion. Messages and choice are sent as they are, names of tools aside.
pub(super) fn body(ask: &Ask<'_>, tools: &Tools) -> (String, Object) {
    let streams = ask.mode == Mode::Stream;
    let mut body = Object::new();
    put(&mut body, "model", Some(json!(ask.model)));
    let messages = ask.messages.iter().map(|it| message(it, tools));
    put(&mut body, "messages", Some(messages.collect()));
    let list = tools.list();
    let choice = ask.tool_choice.filter(|_| list.is_some());
    put(&mut body, "tools", list);
    put(&mut body, "tool_choice", choice.map(|it| choose(it, tools)));
    put(&mut body, "stream", Some(json!(streams)));
    let options = streams.then(|| json!({"include_usage": true}));
    put(&mut body, "stream_options", options);
    put(&mut body, "temperature", ask.temperature.map(Value::from));
    put(&mut body, "max_tokens", ask.max_tokens.map(Value::from));
    ("/chat/completions".to_owned(), body)
}

fn message(message: &Value, tools: &Tools) -> Value {
    let mut message = message.clone();
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            rename(call, tools);
        }
    }
    message
}

fn choose(choice: &Value, tools: &Tools) -> Value {
    let mut choice = choice.clone();
    rename(&mut choice, tools);
    choice
}

fn rename(call: &mut Value, tools: &Tools) {
    if let Some(Value::String(name)) = call.pointer_mut("/function/name") {
        *name = tools.name(name).to_owned();
    }
}
