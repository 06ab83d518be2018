use serde_json::{Value, json};

use super::{CHAT, Misbehaviour, streamed};
use crate::provider::weather::{chunk, delta, event_stream, finish, good, usage, usage_chunk};

const ONE: &str = "call_0a1b2c3d4e";
const OTHER: &str = "call_1a1b2c3d4e";
const PARIS: &str = "{\"location\":\"Paris\"}";
const ROME: &str = "{\"location\":\"Rome\",\"days\":2}";

/// Deviations that only streams can have.
pub(super) fn all() -> Vec<Misbehaviour> {
    let mut all = indexes();
    all.extend(pieces());
    all.extend(chunks());
    all
}

fn function(name: &str, arguments: &str) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn only(arguments: &str) -> Value {
    json!({"arguments": arguments})
}

/// The first piece of a call.
fn begun(index: usize, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": function(name, arguments)})
}

/// A stream of a role and these pieces of calls.
fn stream(id: &'static str, what: &'static str, pieces: &[Value]) -> Misbehaviour {
    let mut chunks = vec![delta(&json!({"role": "assistant", "content": null}))];
    chunks.extend(pieces.iter().map(|it| delta(&json!({"tool_calls": [it]}))));
    chunks.push(finish("tool_calls"));
    chunks.push(usage_chunk());
    streamed(CHAT, id, what, event_stream(&chunks))
}

/// A piece without the member.
fn without(mut piece: Value, key: &str) -> Value {
    let _removed = piece.as_object_mut().and_then(|it| it.remove(key));
    piece
}

fn indexes() -> Vec<Misbehaviour> {
    vec![
        stream(
            "chat-index-absent",
            "pieces without an index",
            &[
                without(begun(0, ONE, "get_weather", ""), "index"),
                json!({"function": only("{\"location\":")}),
                json!({"function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-index-absent-two",
            "two whole calls without an index",
            &[
                without(begun(0, ONE, "get_weather", PARIS), "index"),
                without(begun(0, OTHER, "get_forecast", ROME), "index"),
            ],
        ),
        stream(
            "chat-index-null",
            "an index that is null",
            &[
                json!({"index": null, "id": ONE, "type": "function", "function": function("get_weather", PARIS)}),
            ],
        ),
        stream(
            "chat-index-text",
            "an index that is a text",
            &[
                json!({"index": "0", "id": ONE, "type": "function", "function": function("get_weather", "")}),
                json!({"index": "0", "function": only(PARIS)}),
            ],
        ),
        stream(
            "chat-index-zero",
            "two calls that are both at index 0",
            &[
                begun(0, ONE, "get_weather", PARIS),
                begun(0, OTHER, "get_forecast", ROME),
            ],
        ),
        stream(
            "chat-index-one",
            "indexes that begin with 1",
            &[
                begun(1, ONE, "get_weather", ""),
                json!({"index": 1, "function": only(PARIS)}),
            ],
        ),
        stream(
            "chat-index-gap",
            "indexes with a gap",
            &[
                begun(0, ONE, "get_weather", PARIS),
                begun(2, OTHER, "get_forecast", ""),
                json!({"index": 2, "function": only(ROME)}),
            ],
        ),
        stream(
            "chat-index-reversed",
            "the second call first",
            &[
                begun(1, OTHER, "get_forecast", ROME),
                begun(0, ONE, "get_weather", PARIS),
            ],
        ),
        stream(
            "chat-index-interleaved",
            "pieces of two calls that alternate",
            &[
                begun(0, ONE, "get_weather", ""),
                begun(1, OTHER, "get_forecast", ""),
                json!({"index": 0, "function": only(PARIS)}),
                json!({"index": 1, "function": only(ROME)}),
            ],
        ),
    ]
}

fn pieces() -> Vec<Misbehaviour> {
    vec![
        stream(
            "chat-piece-name",
            "the name in every piece",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "function": function("get_weather", "\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-empty-name",
            "an empty name in later pieces",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "function": function("", "\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-id",
            "the id in every piece",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "id": ONE, "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-empty-id",
            "an empty id in later pieces",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "id": "", "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-other-id",
            "another id in every piece",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "id": OTHER, "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-type",
            "the type in every piece",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "type": "function", "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-null-type",
            "a type that is null in later pieces",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "type": null, "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-untyped",
            "pieces without a type",
            &[
                without(begun(0, ONE, "get_weather", ""), "type"),
                json!({"index": 0, "function": only(PARIS)}),
            ],
        ),
        stream(
            "chat-piece-late-name",
            "arguments before the name",
            &[
                json!({"index": 0, "id": ONE, "type": "function", "function": only("{\"location\":")}),
                json!({"index": 0, "function": function("get_weather", "\"Paris\"}")}),
            ],
        ),
        stream(
            "chat-piece-nameless",
            "a call that never gets a name",
            &[json!({"index": 0, "id": ONE, "type": "function", "function": only(PARIS)})],
        ),
        stream(
            "chat-piece-cumulative",
            "arguments that repeat what came before",
            &[
                begun(0, ONE, "get_weather", "{\"location\":"),
                json!({"index": 0, "function": only(PARIS)}),
            ],
        ),
        stream(
            "chat-piece-object",
            "arguments that are an object",
            &[
                json!({"index": 0, "id": ONE, "type": "function", "function": {"name": "get_weather", "arguments": {"location": "Paris"}}}),
            ],
        ),
        stream(
            "chat-piece-null-arguments",
            "arguments that are null before the first piece",
            &[
                json!({"index": 0, "id": ONE, "type": "function", "function": {"name": "get_weather", "arguments": null}}),
                json!({"index": 0, "function": only(PARIS)}),
            ],
        ),
        stream(
            "chat-piece-no-function",
            "a last piece without `function`",
            &[begun(0, ONE, "get_weather", PARIS), json!({"index": 0})],
        ),
        stream(
            "chat-piece-whole",
            "arguments in one piece",
            &[begun(0, ONE, "get_weather", PARIS)],
        ),
        streamed(
            CHAT,
            "chat-piece-together",
            "both calls in one chunk",
            event_stream(&[
                delta(&json!({"role": "assistant", "tool_calls": [
                    begun(0, ONE, "get_weather", PARIS), begun(1, OTHER, "get_forecast", ROME)
                ]})),
                finish("tool_calls"),
                usage_chunk(),
            ]),
        ),
        streamed(
            CHAT,
            "chat-function-call-pieces",
            "`function_call` in pieces",
            event_stream(&[
                delta(&json!({"role": "assistant", "function_call": function("get_weather", "")})),
                delta(&json!({"function_call": only("{\"location\":")})),
                delta(&json!({"function_call": only("\"Paris\"}")})),
                finish("function_call"),
                usage_chunk(),
            ]),
        ),
    ]
}

fn chunks() -> Vec<Misbehaviour> {
    let start = || delta(&json!({"role": "assistant", "content": null}));
    let call = || delta(&json!({"tool_calls": [begun(0, ONE, "get_weather", PARIS)]}));
    let message = chunk(&json!({"index": 0, "message": good(), "finish_reason": "tool_calls"}));
    let mut last =
        chunk(&json!({"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}));
    if let Some(members) = last.as_object_mut() {
        members.insert("usage".to_owned(), usage());
    }
    let mut null_choices = usage_chunk();
    if let Some(choices) = null_choices.get_mut("choices") {
        *choices = json!(null);
    }
    let unindexed =
        |delta: Value, word: Value| chunk(&json!({"delta": delta, "finish_reason": word}));
    let row = |id, what, chunks: &[Value]| streamed(CHAT, id, what, event_stream(chunks));
    vec![
        row(
            "chat-chunk-message",
            "a whole message in one chunk",
            &[message],
        ),
        row(
            "chat-chunk-usage",
            "usage on the last chunk with content",
            &[start(), call(), last],
        ),
        row(
            "chat-chunk-null-choices",
            "choices that are null",
            &[start(), call(), finish("tool_calls"), null_choices],
        ),
        row(
            "chat-chunk-null-delta",
            "a delta that is null",
            &[
                start(),
                call(),
                chunk(&json!({"index": 0, "delta": null, "finish_reason": "tool_calls"})),
                usage_chunk(),
            ],
        ),
        row(
            "chat-chunk-no-delta",
            "a last chunk without a delta",
            &[
                start(),
                call(),
                chunk(&json!({"index": 0, "finish_reason": "tool_calls"})),
                usage_chunk(),
            ],
        ),
        row(
            "chat-chunk-no-role",
            "a stream without a role",
            &[call(), finish("tool_calls"), usage_chunk()],
        ),
        row(
            "chat-chunk-role-repeated",
            "a role in every chunk",
            &[
                start(),
                delta(
                    &json!({"role": "assistant", "tool_calls": [begun(0, ONE, "get_weather", PARIS)]}),
                ),
                finish("tool_calls"),
                usage_chunk(),
            ],
        ),
        row(
            "chat-chunk-no-choice-index",
            "choices without an index",
            &[
                unindexed(json!({"role": "assistant"}), json!(null)),
                unindexed(
                    json!({"tool_calls": [begun(0, ONE, "get_weather", PARIS)]}),
                    json!(null),
                ),
                unindexed(json!({}), json!("tool_calls")),
            ],
        ),
        row(
            "chat-chunk-no-finish",
            "a stream without a finish reason",
            &[start(), call(), usage_chunk()],
        ),
        row(
            "chat-chunk-early-finish",
            "a finish reason before the call",
            &[start(), finish("tool_calls"), call(), usage_chunk()],
        ),
        row(
            "chat-chunk-no-object",
            "chunks without `object`",
            &[start(), call(), finish("tool_calls")].map(|it| without(it, "object")),
        ),
        row(
            "chat-chunk-details",
            "a list of details without an index in every chunk",
            &[
                start(),
                delta(&json!({"reasoning_details": [{"type": "reasoning.text", "text": "I "}]})),
                delta(&json!({"reasoning_details": [{"type": "reasoning.text", "text": "ask."}]})),
                call(),
                finish("tool_calls"),
                usage_chunk(),
            ],
        ),
        row(
            "chat-chunk-error",
            "an error in the middle of the stream",
            &[
                start(),
                json!({"error": {"message": "overloaded", "type": "server_error"}}),
            ],
        ),
    ]
}
