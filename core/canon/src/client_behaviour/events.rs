//! Server-sent events as the clients decode them. They deviate from the standard: an event without
//! data is an event, and one that lacks its empty line is lost.

use serde_json::Value;
use toolwarden_model::json;

use super::{ClientResult, HttpReply, raise};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientEvent {
    /// Its name, empty if it has none.
    pub(super) name: String,
    /// Its data.
    pub(super) data: String,
}

/// Whether a decoder remembers ids, as those for Python do: once an id was sent, every empty line
/// makes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdMemory {
    Kept,
    Ignored,
}

/// The events of a body.
pub(super) fn decode_events(body: &[u8], ids: IdMemory) -> Vec<ClientEvent> {
    let text = String::from_utf8_lossy(body);
    let text = match ids {
        // Text decoders of JavaScript drop a byte order mark; those of Python keep it.
        IdMemory::Ignored => text.strip_prefix('\u{feff}').unwrap_or(&text),
        IdMemory::Kept => &text,
    };
    let mut events = Vec::new();
    let mut name = String::new();
    let mut data: Vec<&str> = Vec::new();
    let (mut has_id, mut has_retry) = (false, false);
    for line in lines(text) {
        if line.is_empty() {
            let remembered = ids == IdMemory::Kept && (has_id || has_retry);
            if !name.is_empty() || !data.is_empty() || remembered {
                events.push(ClientEvent {
                    name: std::mem::take(&mut name),
                    data: data.join("\n"),
                });
                data.clear();
                has_retry = false;
            }
            continue;
        }
        if line.starts_with(':') {
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => data.push(value),
            "id" => has_id = !value.is_empty(),
            "retry" => has_retry = has_retry || value.parse::<u64>().is_ok(),
            _ => {}
        }
    }
    events
}

/// The terminated lines of a text, and its rest if it is not empty.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.find(['\r', '\n']) {
            Some(at) => {
                let (line, after) = text.split_at(at);
                let skipped = if after.starts_with("\r\n") { 2 } else { 1 };
                rest = after.get(skipped..);
                Some(line)
            }
            None => {
                rest = None;
                (!text.is_empty()).then_some(text)
            }
        }
    })
}

/// The JSON of the events of a stream, up to the one that ends it, as OpenAI's libraries yield them.
pub(super) fn openai_chunks(
    reply: HttpReply<'_>,
    ids: IdMemory,
    invalid: &'static str,
) -> ClientResult<Vec<Value>> {
    let mut chunks = Vec::new();
    for event in decode_events(reply.body, ids) {
        if event.data.starts_with("[DONE]") {
            break;
        }
        let Ok(parsed) = json::parse(&event.data) else {
            return raise(invalid, "an event is not JSON");
        };
        let error = parsed.value.get("error");
        if error.is_some_and(super::python_object::is_truthy) {
            return raise("APIError", "the stream reports an error");
        }
        chunks.push(parsed.value);
    }
    Ok(chunks)
}
