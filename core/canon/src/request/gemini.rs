use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;

use super::messages::{self, CaseMessage, ContentPart, MessageCall};
use super::tools::{EmittedTools, ToolChoice};
use super::{ModelRequest, insert_some};

/// The body of a request for content. The model is named in the path.
pub(super) fn body(
    ask: &ModelRequest<'_>,
    tools: &EmittedTools,
    notes: &mut Vec<String>,
) -> (String, Object) {
    let mut system = Vec::new();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role: &'static str, mut parts: Vec<Value>| match contents.last_mut() {
        Some((last, own)) if *last == role => own.append(&mut parts),
        _ if parts.is_empty() => {}
        _ => contents.push((role, parts)),
    };
    for message in messages::parse_messages(ask.messages, tools, notes) {
        match message {
            CaseMessage::System(text) => system.push(json!({ "text": text })),
            CaseMessage::User(parts) => say("user", parts.into_iter().map(part).collect()),
            CaseMessage::Assistant { text, calls } => {
                let text = (!text.is_empty()).then(|| json!({ "text": text }));
                let calls: Vec<Value> = calls.iter().map(|it| function_call(it, notes)).collect();
                say("model", text.into_iter().chain(calls).collect());
            }
            CaseMessage::Tool { id, name, text } => {
                let name = name.unwrap_or_else(|| {
                    notes.push(format!("the result of call `{id}` names no tool"));
                    id.clone()
                });
                let response = messages::result_object(&text);
                let part = json!({"functionResponse": {"name": name, "response": response}});
                say("user", vec![part]);
            }
        }
    }
    let contents: Vec<Value> = contents
        .into_iter()
        .map(|(role, parts)| json!({"role": role, "parts": parts}))
        .collect();
    let mut body = Object::new();
    let system = (!system.is_empty()).then(|| json!({ "parts": system }));
    insert_some(&mut body, "systemInstruction", system);
    insert_some(&mut body, "contents", Some(Value::Array(contents)));
    let list = tools.list();
    let choice = ToolChoice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    let list = list.map(|it| json!([{ "functionDeclarations": it }]));
    insert_some(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::NoTool => json!({"mode": "NONE"}),
        ToolChoice::AnyTool => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => {
            json!({"mode": "ANY", "allowedFunctionNames": [tools.name(&name)]})
        }
    });
    let config = choice.map(|it| json!({ "functionCallingConfig": it }));
    insert_some(&mut body, "toolConfig", config);
    let mut generation = Object::new();
    insert_some(
        &mut generation,
        "temperature",
        ask.temperature.map(Value::from),
    );
    insert_some(
        &mut generation,
        "maxOutputTokens",
        ask.max_tokens.map(Value::from),
    );
    let generation = (!generation.is_empty()).then_some(Value::Object(generation));
    insert_some(&mut body, "generationConfig", generation);
    (path(ask), body)
}

fn path(ask: &ModelRequest<'_>) -> String {
    let model = ask.model.strip_prefix("models/").unwrap_or(ask.model);
    let method = match ask.mode {
        StreamMode::Nonstream => "generateContent",
        StreamMode::Stream => "streamGenerateContent?alt=sse",
    };
    format!("/models/{model}:{method}")
}

fn function_call(call: &MessageCall, notes: &mut Vec<String>) -> Value {
    let mut part = Object::new();
    let function = json!({"name": call.name, "args": call.object(notes)});
    insert_some(&mut part, "functionCall", Some(function));
    let signature = call.signature.as_ref().map(|it| json!(it));
    insert_some(&mut part, "thoughtSignature", signature);
    Value::Object(part)
}

fn part(part: ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({ "text": text }),
        ContentPart::Image(url) => match messages::inline_data(&url) {
            Some((kind, data)) => json!({"inlineData": {"mimeType": kind, "data": data}}),
            None => json!({"fileData": {"fileUri": url}}),
        },
    }
}
