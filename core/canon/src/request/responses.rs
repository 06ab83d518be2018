use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;

use super::messages::{self, CaseMessage, ContentPart, MessageCall};
use super::tools::{EmittedTools, ToolChoice};
use super::{ModelRequest, insert_some};

/// The body of a request for a response.
pub(super) fn body(
    ask: &ModelRequest<'_>,
    tools: &EmittedTools,
    notes: &mut Vec<String>,
) -> (String, Object) {
    let mut input = Vec::new();
    for message in messages::parse_messages(ask.messages, tools, notes) {
        match message {
            CaseMessage::System(text) => input.push(json!({"role": "system", "content": text})),
            CaseMessage::User(parts) => input.push(json!({"role": "user", "content": user(parts)})),
            CaseMessage::Assistant { text, calls } => {
                let text =
                    (!text.is_empty()).then(|| json!({"role": "assistant", "content": text}));
                input.extend(text);
                input.extend(calls.into_iter().map(function_call));
            }
            CaseMessage::Tool { id, text, .. } => {
                input.push(json!({"type": "function_call_output", "call_id": id, "output": text}))
            }
        }
    }
    let mut body = Object::new();
    insert_some(&mut body, "model", Some(json!(ask.model)));
    insert_some(&mut body, "input", Some(Value::Array(input)));
    let list = tools.list();
    let choice = ToolChoice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    insert_some(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::NoTool => json!("none"),
        ToolChoice::AnyTool => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": tools.name(&name)}),
    });
    insert_some(&mut body, "tool_choice", choice);
    insert_some(
        &mut body,
        "stream",
        Some(json!(ask.mode == StreamMode::Stream)),
    );
    insert_some(&mut body, "temperature", ask.temperature.map(Value::from));
    let max_tokens = ask.max_tokens.map(Value::from);
    insert_some(&mut body, "max_output_tokens", max_tokens);
    ("/responses".to_owned(), body)
}

fn user(parts: Vec<ContentPart>) -> Value {
    if let [ContentPart::Text(text)] = parts.as_slice() {
        return json!(text);
    }
    let parts = parts.into_iter().map(|part| match part {
        ContentPart::Text(text) => json!({"type": "input_text", "text": text}),
        ContentPart::Image(url) => json!({"type": "input_image", "image_url": url}),
    });
    parts.collect()
}

fn function_call(call: MessageCall) -> Value {
    let arguments = match call.arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
}
