use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;

use super::content::{self, Message, Part};
use super::tools::{Choice, Tools};
use super::{Ask, put};

/// The body of a request for content. The model stands in the path.
pub(super) fn body(ask: &Ask<'_>, tools: &Tools, notes: &mut Vec<String>) -> (String, Object) {
    let mut system = Vec::new();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role: &'static str, mut parts: Vec<Value>| match contents.last_mut() {
        Some((last, own)) if *last == role => own.append(&mut parts),
        _ if parts.is_empty() => {}
        _ => contents.push((role, parts)),
    };
    for message in content::read(ask.messages, tools, notes) {
        match message {
            Message::System(text) => system.push(json!({ "text": text })),
            Message::User(parts) => say("user", parts.into_iter().map(part).collect()),
            Message::Assistant { text, calls } => {
                let text = (!text.is_empty()).then(|| json!({ "text": text }));
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|it| json!({"functionCall": {"name": it.name, "args": it.object(notes)}}))
                    .collect();
                say("model", text.into_iter().chain(calls).collect());
            }
            Message::Tool { id, name, text } => {
                let name = name.unwrap_or_else(|| {
                    notes.push(format!("the result of call `{id}` names no tool"));
                    id.clone()
                });
                let response = content::result_object(&text);
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
    put(&mut body, "systemInstruction", system);
    put(&mut body, "contents", Some(Value::Array(contents)));
    let list = tools.list();
    let choice = Choice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    let list = list.map(|it| json!([{ "functionDeclarations": it }]));
    put(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::Nothing => json!({"mode": "NONE"}),
        Choice::Something => json!({"mode": "ANY"}),
        Choice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [tools.name(&name)]}),
    });
    let config = choice.map(|it| json!({ "functionCallingConfig": it }));
    put(&mut body, "toolConfig", config);
    let mut generation = Object::new();
    put(
        &mut generation,
        "temperature",
        ask.temperature.map(Value::from),
    );
    put(
        &mut generation,
        "maxOutputTokens",
        ask.max_tokens.map(Value::from),
    );
    let generation = (!generation.is_empty()).then_some(Value::Object(generation));
    put(&mut body, "generationConfig", generation);
    (path(ask), body)
}

fn path(ask: &Ask<'_>) -> String {
    let model = ask.model.strip_prefix("models/").unwrap_or(ask.model);
    let method = match ask.mode {
        Mode::Nonstream => "generateContent",
        Mode::Stream => "streamGenerateContent?alt=sse",
    };
    format!("/models/{model}:{method}")
}

fn part(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image(url) => match content::inline_data(&url) {
            Some((kind, data)) => json!({"inlineData": {"mimeType": kind, "data": data}}),
            None => json!({"fileData": {"fileUri": url}}),
        },
    }
}
