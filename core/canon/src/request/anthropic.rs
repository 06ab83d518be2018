use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;

use super::content::{self, Call, Message, Part};
use super::tools::{Choice, Tools};
use super::{Ask, put};

/// The wire refuses a request that does not say how much it may answer.
const MAX_TOKENS: u64 = 4096;

/// The body of a request for a message.
pub(super) fn body(ask: &Ask<'_>, tools: &Tools, notes: &mut Vec<String>) -> (String, Object) {
    let mut system = Vec::new();
    let mut turns = Turns::default();
    for message in content::read(ask.messages, tools, notes) {
        match message {
            Message::System(text) => system.push(text),
            Message::User(parts) => turns.say("user", parts.into_iter().map(part)),
            Message::Assistant { text, calls } => {
                let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
                let calls: Vec<Value> = calls.iter().map(|it| tool_use(it, notes)).collect();
                turns.say("assistant", text.into_iter().chain(calls));
            }
            Message::Tool { id, text, .. } => {
                let id = tool_use_id(&id, notes);
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
                turns.say("user", [result]);
            }
        }
    }
    let mut body = Object::new();
    put(&mut body, "model", Some(json!(ask.model)));
    let max_tokens = ask.max_tokens.unwrap_or(MAX_TOKENS);
    put(&mut body, "max_tokens", Some(json!(max_tokens)));
    let system = (!system.is_empty()).then(|| json!(system.join("\n\n")));
    put(&mut body, "system", system);
    put(&mut body, "messages", Some(turns.finish()));
    let list = tools.list();
    let choice = Choice::read(ask.tool_choice, notes).filter(|_| list.is_some());
    put(&mut body, "tools", list);
    let choice = choice.map(|it| match it {
        Choice::Auto => json!({"type": "auto"}),
        Choice::Nothing => json!({"type": "none"}),
        Choice::Something => json!({"type": "any"}),
        Choice::Tool(name) => json!({"type": "tool", "name": tools.name(&name)}),
    });
    put(&mut body, "tool_choice", choice);
    put(&mut body, "stream", Some(json!(ask.mode == Mode::Stream)));
    put(&mut body, "temperature", ask.temperature.map(Value::from));
    ("/messages".to_owned(), body)
}

/// Messages in turns: what one side says at once is one message.
#[derive(Debug, Default)]
struct Turns(Vec<(&'static str, Vec<Value>)>);

impl Turns {
    fn say(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
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

fn part(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(url) => {
            let source = match content::inline_data(&url) {
                Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
                None => json!({"type": "url", "url": url}),
            };
            json!({"type": "image", "source": source})
        }
    }
}

fn tool_use(call: &Call, notes: &mut Vec<String>) -> Value {
    let id = tool_use_id(&call.id, notes);
    let input = call.object(notes);
    json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
}

/// The wire takes only letters, digits, `_` and `-` in an id.
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
