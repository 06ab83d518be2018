use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;

use super::content::{self, Call, Message, Part};
use super::tools::{Choice, Tools};
use super::{Ask, put};

/// The body of a request for a response.
pub(super) fn body(ask: &Ask<'_>, tools: &Tools, notes: &mut Vec<String>) -> (String, Object) {
    let mut input = Vec::new();
    for message in content::read(ask.messages, tools, notes) {
        match message {
            Message::System(text) => input.push(json!({"role": "system", "content": text})),
            Message::User(parts) => input.push(json!({"role": "user", "content": user(parts)})),
            Message::Assistant { text, calls } => {
                let text =
                    (!text.is_empty()).then(|| json!({"role": "assistant", "content": text}));
                input.extend(text);
                input.extend(calls.into_iter().map(function_call));
            }
            Message::Tool { id, text, .. } => {
                input.push(json!({"type": "function_call_output", "call_id": id, "output": text}))
            }
        }
    }
    let mut body = Object::new();
    put(&mut body, "model", Some(json!(ask.model)));
    put(&mut body, "input", Some(Value::Array(input)));
    let list = tools.list();
    let choice = Choice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    put(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        Choice::Auto => json!("auto"),
        Choice::Nothing => json!("none"),
        Choice::Something => json!("required"),
        Choice::Tool(name) => json!({"type": "function", "name": tools.name(&name)}),
    });
    put(&mut body, "tool_choice", choice);
    put(&mut body, "stream", Some(json!(ask.mode == Mode::Stream)));
    put(&mut body, "temperature", ask.temperature.map(Value::from));
    let max_tokens = ask.max_tokens.map(Value::from);
    put(&mut body, "max_output_tokens", max_tokens);
    ("/responses".to_owned(), body)
}

fn user(parts: Vec<Part>) -> Value {
    if let [Part::Text(text)] = parts.as_slice() {
        return json!(text);
    }
    let parts = parts.into_iter().map(|part| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Image(url) => json!({"type": "input_image", "image_url": url}),
    });
    parts.collect()
}

fn function_call(call: Call) -> Value {
    let arguments = match call.arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
}
