use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;

use super::messages::{self, CaseMessage, ContentPart, MessageCall};
use super::tools::{EmittedTools, ToolChoice};
use super::{ModelRequest, insert_some};

/// The default token limit: the API refuses a request without one.
const MAX_TOKENS: u64 = 4096;

/// The body of a request for a message.
pub(super) fn body(
    ask: &ModelRequest<'_>,
    tools: &EmittedTools,
    notes: &mut Vec<String>,
) -> (String, Object) {
    let mut system = Vec::new();
    let mut turns = Turns::default();
    for message in messages::parse_messages(ask.messages, tools, notes) {
        match message {
            CaseMessage::System(text) => system.push(text),
            CaseMessage::User(parts) => turns.push("user", parts.into_iter().map(part)),
            CaseMessage::Assistant { text, calls } => {
                let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
                let calls: Vec<Value> = calls.iter().map(|it| tool_use(it, notes)).collect();
                turns.push("assistant", text.into_iter().chain(calls));
            }
            CaseMessage::Tool { id, text, .. } => {
                let id = tool_use_id(&id, notes);
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
                turns.push("user", [result]);
            }
        }
    }
    let mut body = Object::new();
    insert_some(&mut body, "model", Some(json!(ask.model)));
    let max_tokens = ask.max_tokens.unwrap_or(MAX_TOKENS);
    insert_some(&mut body, "max_tokens", Some(json!(max_tokens)));
    let system = (!system.is_empty()).then(|| json!(system.join("\n\n")));
    insert_some(&mut body, "system", system);
    insert_some(&mut body, "messages", Some(turns.finish()));
    let list = tools.list();
    let choice = ToolChoice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    insert_some(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::NoTool => json!({"type": "none"}),
        ToolChoice::AnyTool => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": tools.name(&name)}),
    });
    insert_some(&mut body, "tool_choice", choice);
    insert_some(
        &mut body,
        "stream",
        Some(json!(ask.mode == StreamMode::Stream)),
    );
    insert_some(&mut body, "temperature", ask.temperature.map(Value::from));
    ("/messages".to_owned(), body)
}

/// Messages in turns: consecutive messages of one role become one message.
#[derive(Debug, Default)]
struct Turns(Vec<(&'static str, Vec<Value>)>);

impl Turns {
    fn push(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
        let mut blocks: Vec<Value> = blocks.into_iter().collect();
        match self.0.last_mut() {
            Some((last, own)) if *last == role => own.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => self.0.push((role, blocks)),
        }
    }

    fn finish(self) -> Value {
        let messages = self.0.into_iter().map(|(role, blocks)| {
            let content = match blocks.as_slice() {
                [only] if only.get("type") == Some(&json!("text")) => {
                    only.get("text").cloned().unwrap_or_default()
                }
                _ => Value::Array(blocks),
            };
            json!({"role": role, "content": content})
        });
        messages.collect()
    }
}

fn part(part: ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Image(url) => {
            let source = match messages::inline_data(&url) {
                Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
                None => json!({"type": "url", "url": url}),
            };
            json!({"type": "image", "source": source})
        }
    }
}

fn tool_use(call: &MessageCall, notes: &mut Vec<String>) -> Value {
    let id = tool_use_id(&call.id, notes);
    let input = call.object(notes);
    json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
}

/// The API accepts only letters, digits, `_` and `-` in an id.
fn tool_use_id(id: &str, notes: &mut Vec<String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(plain) {
        return id.to_owned();
    }
    let id_here = match id {
        "" => "missing".to_owned(),
        id => id.replace(|c| !plain(c), "_"),
    };
    notes.push(format!("the id `{id}` of a call is sent as `{id_here}`"));
    id_here
}
