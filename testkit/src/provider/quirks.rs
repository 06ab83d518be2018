#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::provider_response::ProviderResponse;
use super::weather::{
    chat_completion, chunk, delta, event_stream, finish, streamed_completion, tool_call, usage,
    usage_chunk,
};

/// One reported deviation of a provider, as a synthetic response.
#[derive(Clone, Debug)]
pub struct Quirk {
    /// Its number in the catalogue: `Q1` to `Q19`.
    pub number: &'static str,
    /// What is unusual.
    pub what: &'static str,
    /// The whole reply, unless only streams have the quirk.
    pub nonstream: Option<ProviderResponse>,
    /// The stream.
    pub stream: Option<ProviderResponse>,
}

/// Every quirk, at least one row for each number.
#[must_use]
pub fn quirks() -> Vec<Quirk> {
    let mut all = leaks();
    all.extend(arguments());
    all.extend(finishes());
    all.extend(ids());
    all.extend(streams());
    all.extend(messages());
    all.extend(refusals());
    all
}

fn message(number: &'static str, what: &'static str, message: &Value, finish: &Value) -> Quirk {
    Quirk {
        number,
        what,
        nonstream: Some(ProviderResponse::json(&chat_completion(message, finish))),
        stream: Some(streamed_completion(message, finish)),
    }
}

fn refusal(number: &'static str, what: &'static str, status: u16, message: &str) -> Quirk {
    Quirk {
        number,
        what,
        nonstream: Some(ProviderResponse::refusal(status, message)),
        stream: Some(ProviderResponse::refusal(status, message)),
    }
}

fn content_message(content: &str) -> Value {
    json!({"role": "assistant", "content": content})
}

fn tool_calls_message(calls: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// One call of `get_weather` with arbitrary arguments.
fn with_arguments(arguments: &Value) -> Value {
    let mut call = tool_call("call_0a1b2c3d4e", "get_weather", "");
    call["function"]["arguments"].clone_from(arguments);
    tool_calls_message(&json!([call]))
}

fn leaks() -> Vec<Quirk> {
    [
        (
            "DSML markup as text",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n\
             <｜DSML｜parameter name=\"location\">Paris</｜DSML｜parameter>\n\
             </｜DSML｜invoke>\n</｜DSML｜function_calls>",
        ),
        (
            "DSML markup with double bars as text",
            "<‖DSML‖invoke name=\"get_weather\"></‖DSML‖invoke>",
        ),
        (
            "DSML markup with plain bars as text",
            "<|DSML|function_calls></|DSML|function_calls>",
        ),
        (
            "the call tokens of DeepSeek as text",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather",
        ),
        (
            "the call section of Kimi as text",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0\
             <|tool_call_argument_begin|>{\"location\":\"Paris\"}<|tool_call_end|>",
        ),
        (
            "a call of Qwen as text",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n\
             </tool_call>",
        ),
        (
            "a call of GLM as text",
            "<tool_call>get_weather\n<arg_key>location</arg_key>\n<arg_value>Paris</arg_value>\n\
             </tool_call>",
        ),
        (
            "a call of MiniMax as text",
            "<minimax:tool_call>\n<invoke name=\"get_weather\">\n\
             <parameter name=\"location\">Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "a call of MiniMax M3 as text",
            "]<]minimax[>[<tool_call>get_weather]<]minimax[>[</tool_call>",
        ),
    ]
    .into_iter()
    .map(|(what, content)| message("Q1", what, &content_message(content), &json!("stop")))
    .collect()
}

fn arguments() -> Vec<Quirk> {
    let forecast = |arguments: &str| {
        tool_calls_message(&json!([tool_call(
            "call_0a1b2c3d4e",
            "get_forecast",
            arguments
        )]))
    };
    let calls = json!("tool_calls");
    vec![
        message(
            "Q2",
            "markup glued to an argument",
            &with_arguments(&json!(r#"{"location":"Paris</｜DSML｜parameter"}"#)),
            &calls,
        ),
        message(
            "Q3",
            "a nested object as a string of JSON",
            &forecast(r#"{"location":"Paris","days":3,"include":"{\"wind\":true}"}"#),
            &calls,
        ),
        message(
            "Q4",
            "arguments that are an object",
            &with_arguments(&json!({"location": "Paris"})),
            &calls,
        ),
        message(
            "Q4",
            "arguments that are null",
            &with_arguments(&json!(null)),
            &calls,
        ),
        message(
            "Q4",
            "arguments that are empty",
            &with_arguments(&json!("")),
            &calls,
        ),
        message(
            "Q4",
            "arguments as Python writes them",
            &with_arguments(&json!("{'location': 'Paris', 'unit': None}")),
            &calls,
        ),
        message(
            "Q4",
            "arguments that are no object",
            &with_arguments(&json!(r#"["Paris"]"#)),
            &calls,
        ),
        message(
            "Q4",
            "arguments encoded twice",
            &with_arguments(&json!(r#""{\"location\":\"Paris\"}""#)),
            &calls,
        ),
        message(
            "Q13",
            "one level of nesting too much in spite of strict",
            &with_arguments(&json!(r#"{"location":{"location":"Paris"}}"#)),
            &calls,
        ),
    ]
}

fn finishes() -> Vec<Quirk> {
    let weather = with_arguments(&json!(r#"{"location":"Paris"}"#));
    let mut all = vec![message(
        "Q5",
        "stop although tools are called",
        &weather,
        &json!("stop"),
    )];
    for (what, word) in [
        ("a finish of Zhipu: sensitive", json!("sensitive")),
        ("a finish of Zhipu: network_error", json!("network_error")),
        ("a finish of OpenRouter: error", json!("error")),
        ("no finish", json!(null)),
        ("an empty finish", json!("")),
    ] {
        all.push(message("Q6", what, &weather, &word));
    }
    all
}

fn ids() -> Vec<Quirk> {
    let weather = |ids: &[Value]| {
        let calls = ids.iter().map(|id| {
            let mut call = tool_call("", "get_weather", r#"{"location":"Paris"}"#);
            call["id"].clone_from(id);
            call
        });
        tool_calls_message(&Value::Array(calls.collect()))
    };
    [
        ("an id of Kimi", vec![json!("functions.get_weather:0")]),
        (
            "an id of Kimi without its prefix",
            vec![json!("get_weather:0")],
        ),
        ("an id of Mistral", vec![json!("D681PevKs")]),
        ("no id", vec![json!(null)]),
        ("an id that is a number", vec![json!(7)]),
        (
            "two calls with one id",
            vec![
                json!("functions.get_weather:0"),
                json!("functions.get_weather:0"),
            ],
        ),
    ]
    .into_iter()
    .map(|(what, ids)| message("Q7", what, &weather(&ids), &json!("tool_calls")))
    .collect()
}

fn streams() -> Vec<Quirk> {
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let only = |arguments: &str| json!({"arguments": arguments});
    let stream = |number, what, deltas: &[Value]| {
        let mut chunks: Vec<Value> = deltas
            .iter()
            .map(|it| delta(&json!({"tool_calls": [it]})))
            .collect();
        chunks.push(finish("tool_calls"));
        chunks.push(usage_chunk());
        Quirk {
            number,
            what,
            nonstream: None,
            stream: Some(event_stream(&chunks)),
        }
    };
    let mut call = tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":"Paris"}"#);
    call["index"] = json!(0);
    let mut last = chunk(&json!({
        "index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"
    }));
    last["usage"] = usage();
    vec![
        stream(
            "Q8",
            "deltas without an index",
            &[
                json!({"id": "call_0a1b2c3d4e", "function": function("get_weather", "")}),
                json!({"function": only("{\"location\":")}),
                json!({"function": only("\"Paris\"}")}),
                json!({"id": "call_1a1b2c3d4e", "function": function("get_weather", "{\"location\":\"Rome\"}")}),
            ],
        ),
        stream(
            "Q8",
            "an index that is always 0",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": function("get_weather", "{\"location\":\"Paris\"}")}),
                json!({"index": 0, "id": "call_1a1b2c3d4e", "function": function("get_forecast", "{\"location\":\"Rome\",\"days\":2}")}),
            ],
        ),
        stream(
            "Q8",
            "an empty id in later deltas",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": function("get_weather", "")}),
                json!({"index": 0, "id": "", "function": only("{\"location\":")}),
                json!({"index": 0, "id": "", "function": only("\"Paris\"}")}),
            ],
        ),
        stream(
            "Q8",
            "a name in every delta",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": function("get_weather", "{\"location\":")}),
                json!({"index": 0, "function": function("get_weather", "\"Paris\"}")}),
            ],
        ),
        stream(
            "Q8",
            "arguments before the name",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": only("{\"location\":")}),
                json!({"index": 0, "function": function("get_weather", "\"Paris\"}")}),
            ],
        ),
        stream(
            "Q8",
            "a call that never gets a name",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": only("{\"location\":\"Paris\"}")}),
            ],
        ),
        stream(
            "Q11",
            "arguments in one piece",
            &[
                json!({"index": 0, "id": "call_0a1b2c3d4e", "function": function("get_weather", "{\"location\":\"Paris\"}")}),
            ],
        ),
        Quirk {
            number: "Q12",
            what: "usage on the last chunk with content",
            nonstream: None,
            stream: Some(event_stream(&[delta(&json!({"tool_calls": [call]})), last])),
        },
    ]
}

fn messages() -> Vec<Quirk> {
    let cut = (0..16).map(|at| {
        tool_call(
            &format!("call_{at:010}"),
            "get_weather",
            "{\"location\":\"Par",
        )
    });
    let data = json!({
        "data": chat_completion(&content_message("It is sunny."), &json!("stop")),
        "success": true
    });
    vec![
        message(
            "Q10",
            "reasoning as text",
            &content_message("<think>The user wants the weather.</think>It is sunny."),
            &json!("stop"),
        ),
        message(
            "Q15",
            "nothing but reasoning",
            &json!({"role": "assistant", "content": "", "reasoning_content": "I should call a tool."}),
            &json!("stop"),
        ),
        message(
            "Q16",
            "calls cut off by the budget of tokens",
            &tool_calls_message(&Value::Array(cut.collect())),
            &json!("length"),
        ),
        Quirk {
            number: "Q17",
            what: "an envelope of its own",
            nonstream: Some(ProviderResponse::json(&data)),
            stream: Some(ProviderResponse::json(&data)),
        },
    ]
}

fn refusals() -> Vec<Quirk> {
    vec![
        refusal(
            "Q9",
            "tool_choice is refused",
            400,
            "tool_choice 'required' is incompatible with thinking enabled",
        ),
        refusal(
            "Q10",
            "reasoning has to be sent back",
            400,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        ),
        refusal(
            "Q14",
            "a kind of tool is refused",
            400,
            "tools[0].type: unknown variant `namespace`, expected `function`",
        ),
        refusal(
            "Q18",
            "temperature is refused",
            400,
            "invalid temperature: only 1 is allowed for this model",
        ),
        refusal(
            "Q19",
            "the schema of one tool is refused",
            400,
            "Invalid request: tools.function.parameters is not a valid moonshot flavored json \
             schema, details: <At path 'properties.include': when using anyOf, type should be \
             defined in anyOf items instead of the parent schema>",
        ),
    ]
}
