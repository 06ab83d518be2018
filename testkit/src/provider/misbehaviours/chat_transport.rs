use serde_json::{Value, json};

use super::{CHAT, Misbehaviour, streamed, whole};
use crate::provider::provider_response::ProviderResponse;
use crate::provider::weather::{chat_completion, good, streamed_completion};

/// Deviations of the body around a message, of its type and of its end.
pub(super) fn all() -> Vec<Misbehaviour> {
    let mut all = envelopes();
    all.extend(types());
    all.extend(ends());
    all
}

fn completion() -> Value {
    chat_completion(&good(), &json!("tool_calls"))
}

fn events() -> Vec<u8> {
    streamed_completion(&good(), &json!("tool_calls"))
        .body()
        .to_vec()
}

fn envelopes() -> Vec<Misbehaviour> {
    let with = |key: &str, value: Value| {
        let mut body = completion();
        if let Some(members) = body.as_object_mut() {
            members.insert(key.to_owned(), value);
        }
        ProviderResponse::json(&body)
    };
    let choice = |choice: Value| with("choices", json!([choice]));
    vec![
        whole(
            CHAT,
            "chat-choices-null",
            "choices that are null",
            with("choices", json!(null)),
        ),
        whole(
            CHAT,
            "chat-choices-empty",
            "no choice",
            with("choices", json!([])),
        ),
        whole(
            CHAT,
            "chat-choices-object",
            "choices that are an object",
            with("choices", json!({"0": {}})),
        ),
        whole(
            CHAT,
            "chat-choice-no-message",
            "a choice without a message",
            choice(json!({"index": 0, "finish_reason": "stop"})),
        ),
        whole(
            CHAT,
            "chat-choice-delta",
            "a choice with a delta instead of a message",
            choice(json!({"index": 0, "delta": good(), "finish_reason": "tool_calls"})),
        ),
        whole(
            CHAT,
            "chat-choice-no-index",
            "a choice without an index",
            choice(json!({"message": good(), "finish_reason": "tool_calls"})),
        ),
        whole(
            CHAT,
            "chat-usage-null",
            "usage that is null",
            with("usage", json!(null)),
        ),
        whole(
            CHAT,
            "chat-usage-text",
            "usage as texts",
            with(
                "usage",
                json!({"prompt_tokens": "210", "completion_tokens": "40", "total_tokens": "250"}),
            ),
        ),
        whole(
            CHAT,
            "chat-created-text",
            "a time that is a text",
            with("created", json!("2025-11-16T00:00:00Z")),
        ),
        whole(
            CHAT,
            "chat-other-model",
            "another model than the requested one",
            with("model", json!("another-model")),
        ),
        whole(
            CHAT,
            "chat-envelope",
            "an envelope around the reply",
            ProviderResponse::json(&json!({"data": completion(), "success": true})),
        ),
        whole(
            CHAT,
            "chat-error-body",
            "an error with status 200",
            ProviderResponse::json(&json!({"error": {"message": "overloaded"}})),
        ),
    ]
}

fn types() -> Vec<Misbehaviour> {
    let text = completion().to_string();
    let plain = |kind: &str| ProviderResponse::new(200, kind, text.clone());
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend(text.as_bytes());
    vec![
        whole(
            CHAT,
            "chat-type-plain",
            "JSON that is declared as text",
            plain("text/plain; charset=utf-8"),
        ),
        whole(
            CHAT,
            "chat-type-events",
            "JSON that is declared as events",
            plain("text/event-stream"),
        ),
        whole(
            CHAT,
            "chat-byte-order-mark",
            "a byte order mark before the JSON",
            ProviderResponse::new(200, "application/json", marked),
        ),
        whole(
            CHAT,
            "chat-stream-unasked",
            "a stream where JSON was requested",
            ProviderResponse::events(events()),
        ),
        whole(
            CHAT,
            "chat-stream-unasked-json",
            "a stream, declared as JSON, where JSON was requested",
            ProviderResponse::new(200, "application/json", events()),
        ),
        whole(
            CHAT,
            "chat-html",
            "an HTML page",
            ProviderResponse::new(200, "text/html", "<html><body>Bad gateway</body></html>"),
        ),
        whole(
            CHAT,
            "chat-empty-body",
            "an empty body",
            ProviderResponse::new(200, "application/json", ""),
        ),
        whole(
            CHAT,
            "chat-cut-body",
            "a body that ends too early",
            ProviderResponse::new(200, "application/json", text.split_at(text.len() / 2).0),
        ),
        streamed(
            CHAT,
            "chat-json-for-stream",
            "JSON where a stream was requested",
            ProviderResponse::json(&completion()),
        ),
        streamed(
            CHAT,
            "chat-json-as-events",
            "JSON, declared as events, where a stream was requested",
            plain("text/event-stream"),
        ),
        streamed(
            CHAT,
            "chat-json-one-event",
            "a whole reply as the only event",
            ProviderResponse::events(format!("data: {text}\n\ndata: [DONE]\n\n")),
        ),
        streamed(
            CHAT,
            "chat-events-as-json",
            "a stream that is declared as JSON",
            ProviderResponse::new(200, "application/json", events()),
        ),
    ]
}

fn ends() -> Vec<Misbehaviour> {
    let text = String::from_utf8_lossy(&events()).into_owned();
    let without_done = text.replace("data: [DONE]\n\n", "");
    let row = |id, what, body: String| streamed(CHAT, id, what, ProviderResponse::events(body));
    let half = without_done
        .split("\n\n")
        .take(4)
        .collect::<Vec<_>>()
        .join("\n\n");
    vec![
        row(
            "chat-no-done",
            "a stream without `[DONE]`",
            without_done.clone(),
        ),
        row(
            "chat-no-last-line",
            "a last event without its empty line",
            without_done.trim_end().to_owned(),
        ),
        row(
            "chat-crlf",
            "lines that end with CRLF",
            text.replace('\n', "\r\n"),
        ),
        row(
            "chat-no-space",
            "no space after `data:`",
            text.replace("data: ", "data:"),
        ),
        row(
            "chat-comments",
            "comments between events",
            format!(
                ": keep-alive\n\n{}",
                text.replace("\n\n", "\n\n: keep-alive\n\n")
            ),
        ),
        row(
            "chat-event-names",
            "events with a name",
            text.replace("data: ", "event: message\ndata: "),
        ),
        row(
            "chat-one-line",
            "events without empty lines between them",
            text.replace("\n\n", "\n"),
        ),
        row(
            "chat-event-without-data",
            "an event without data",
            format!("event: ping\n\n{text}"),
        ),
        row(
            "chat-event-ids",
            "events with an id, and comments between them",
            text.replace("data: {", "id: 1\ndata: {")
                .replace("\n\n", "\n\n: keep-alive\n\n"),
        ),
        row(
            "chat-after-done",
            "events after `[DONE]`",
            format!("{text}data: {{\"choices\":[]}}\n\n"),
        ),
        row(
            "chat-bad-event",
            "an event that is not JSON",
            format!("data: {{\"choices\":[\n\n{text}"),
        ),
        row(
            "chat-cut-stream",
            "a stream that ends inside a call",
            format!("{half}\n\n"),
        ),
    ]
}
