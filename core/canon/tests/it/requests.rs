//! The request of a case on each wire API.

use serde_json::{Value, json};
use toolwarden_canon::request::{ModelRequest, RequestBody, request};
use toolwarden_canon::{FormatChoice, RenamedTool, canonicalize};
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, parse};
use toolwarden_model::reply::{StreamMode, WireApi};

use crate::samples::data;

fn tools(document: Value) -> Vec<Tool> {
    let read = canonicalize(document, FormatChoice::Detect).unwrap();
    read.tools.into_iter().map(|it| it.tool).collect()
}

fn weather() -> Value {
    json!({"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters":
        {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}})
}

fn conversation() -> Vec<Value> {
    vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": [{"type": "text", "text": "Use tools."}]}),
        json!({"role": "user", "content": "Weather in Paris?"}),
        json!({"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "functions.get_weather:0", "type": "function", "function": {"name": "get_weather", "arguments": "{\"location\": \"Paris\"}"}},
            {"id": "call_2", "type": "function", "function": {"name": "get_weather", "arguments": "{oops"}},
        ]}),
        json!({"role": "tool", "tool_call_id": "functions.get_weather:0", "content": "{\"celsius\": 21}"}),
        json!({"role": "tool", "tool_call_id": "call_2", "content": "bad arguments"}),
        json!({"role": "user", "content": [{"type": "text", "text": "And here?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}),
    ]
}

fn ask<'a>(
    messages: &'a [Value],
    tools: &'a [Tool],
    choice: &'a Value,
    extra: &'a Object,
) -> ModelRequest<'a> {
    ModelRequest {
        model: "m-1",
        messages,
        tools,
        tool_choice: Some(choice),
        mode: StreamMode::Nonstream,
        temperature: None,
        max_tokens: None,
        extra,
    }
}

const SCHEMA: &str =
    r#"{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}"#;

fn check(wire: WireApi, expect: &RequestBody) {
    let (messages, tools, extra) = (conversation(), tools(weather()), Object::new());
    let choice = json!({"type": "function", "function": {"name": "get_weather"}});
    let found = request(wire, &ask(&messages, &tools, &choice, &extra));
    assert_eq!(&found, expect);
}

#[test]
fn chat_takes_a_case_as_it_is() {
    check(
        WireApi::OpenaiChat,
        &RequestBody {
            path: "/chat/completions".to_owned(),
            body: json!({
                "model": "m-1",
                "messages": conversation(),
                "tools": [weather()],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
                "stream": false,
            }),
            renamed: Vec::new(),
            notes: Vec::new(),
        },
    );
}

#[test]
fn anthropic_has_blocks_and_a_system_text_of_its_own() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    check(
        WireApi::Anthropic,
        &RequestBody {
            path: "/messages".to_owned(),
            body: json!({
                "model": "m-1",
                "max_tokens": 4096,
                "system": "Be brief.\n\nUse tools.",
                "messages": [
                    {"role": "user", "content": "Weather in Paris?"},
                    {"role": "assistant", "content": [
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "functions_get_weather_0", "name": "get_weather", "input": {"location": "Paris"}},
                        {"type": "tool_use", "id": "call_2", "name": "get_weather", "input": {}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "functions_get_weather_0", "content": "{\"celsius\": 21}"},
                        {"type": "tool_result", "tool_use_id": "call_2", "content": "bad arguments"},
                        {"type": "text", "text": "And here?"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    ]},
                ],
                "tools": [{"name": "get_weather", "description": "Weather", "input_schema": schema}],
                "tool_choice": {"type": "tool", "name": "get_weather"},
                "stream": false,
            }),
            renamed: Vec::new(),
            notes: vec![
                "the id `functions.get_weather:0` of a call is sent as `functions_get_weather_0`"
                    .to_owned(),
                "the arguments of the earlier call of `get_weather` are not an object; left out"
                    .to_owned(),
                "the id `functions.get_weather:0` of a call is sent as `functions_get_weather_0`"
                    .to_owned(),
            ],
        },
    );
}

#[test]
fn gemini_has_contents_and_the_model_in_the_path() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    check(
        WireApi::Gemini,
        &RequestBody {
            path: "/models/m-1:generateContent".to_owned(),
            body: json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Use tools."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "Weather in Paris?"}]},
                    {"role": "model", "parts": [
                        {"text": "I look."},
                        {"functionCall": {"name": "get_weather", "args": {"location": "Paris"}}},
                        {"functionCall": {"name": "get_weather", "args": {}}},
                    ]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"name": "get_weather", "response": {"celsius": 21}}},
                        {"functionResponse": {"name": "get_weather", "response": {"result": "bad arguments"}}},
                        {"text": "And here?"},
                        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                    ]},
                ],
                "tools": [{"functionDeclarations": [{"name": "get_weather", "description": "Weather", "parametersJsonSchema": schema}]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}},
            }),
            renamed: Vec::new(),
            notes: vec![
                "the arguments of the earlier call of `get_weather` are not an object; left out"
                    .to_owned(),
            ],
        },
    );
}

#[test]
fn responses_have_items_and_are_strict_unless_told() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    check(
        WireApi::OpenaiResponses,
        &RequestBody {
            path: "/responses".to_owned(),
            body: json!({
                "model": "m-1",
                "input": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "system", "content": "Use tools."},
                    {"role": "user", "content": "Weather in Paris?"},
                    {"role": "assistant", "content": "I look."},
                    {"type": "function_call", "call_id": "functions.get_weather:0", "name": "get_weather", "arguments": "{\"location\": \"Paris\"}"},
                    {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": "{oops"},
                    {"type": "function_call_output", "call_id": "functions.get_weather:0", "output": "{\"celsius\": 21}"},
                    {"type": "function_call_output", "call_id": "call_2", "output": "bad arguments"},
                    {"role": "user", "content": [{"type": "input_text", "text": "And here?"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
                ],
                "tools": [{"type": "function", "name": "get_weather", "description": "Weather", "parameters": schema, "strict": false}],
                "tool_choice": {"type": "function", "name": "get_weather"},
                "stream": false,
            }),
            renamed: Vec::new(),
            notes: Vec::new(),
        },
    );
}

#[test]
fn a_chat_body_has_its_keys_in_order_and_its_tools_as_written() {
    let text = std::fs::read_to_string(data("formats").join("openai-chat.json")).unwrap();
    let definition = parse(&text).unwrap().value;
    let tools = tools(definition.clone());
    let (choice, extra) = (json!("auto"), Object::new());
    let mut ask = ask(&[], &tools, &choice, &extra);
    let found = request(WireApi::OpenaiChat, &ask).body.to_string();
    assert_eq!(
        found,
        format!(
            r#"{{"model":"m-1","messages":[],"tools":[{definition}],"tool_choice":"auto","stream":false}}"#
        )
    );
    ask.mode = StreamMode::Stream;
    ask.temperature = Some(0.0);
    ask.max_tokens = Some(100);
    let found = request(WireApi::OpenaiChat, &ask).body.to_string();
    assert_eq!(
        found,
        format!(
            r#"{{"model":"m-1","messages":[],"tools":[{definition}],"tool_choice":"auto","stream":true,"stream_options":{{"include_usage":true}},"temperature":0.0,"max_tokens":100}}"#
        )
    );
}

#[test]
fn words_for_the_choice_are_those_of_the_wire() {
    let tools = tools(weather());
    let extra = Object::new();
    let choices = [json!("auto"), json!("none"), json!("required")];
    for (wire, pointer, words) in [
        (
            WireApi::OpenaiChat,
            "/tool_choice",
            ["auto", "none", "required"],
        ),
        (
            WireApi::OpenaiResponses,
            "/tool_choice",
            ["auto", "none", "required"],
        ),
        (
            WireApi::Anthropic,
            "/tool_choice/type",
            ["auto", "none", "any"],
        ),
        (
            WireApi::Gemini,
            "/toolConfig/functionCallingConfig/mode",
            ["AUTO", "NONE", "ANY"],
        ),
    ] {
        for (choice, word) in choices.iter().zip(words) {
            let found = request(wire, &ask(&[], &tools, choice, &extra));
            assert_eq!(
                found.body.pointer(pointer),
                Some(&json!(word)),
                "{wire} {choice}"
            );
            let without = request(wire, &ask(&[], &[], choice, &extra));
            assert_eq!(without.body.pointer(pointer), None, "{wire} without tools");
        }
        let odd = json!({"type": "allowed_tools"});
        let found = request(wire, &ask(&[], &tools, &odd, &extra));
        let notes: &[&str] = match wire {
            WireApi::OpenaiChat => &[],
            _ => &["tool_choice {\"type\":\"allowed_tools\"} has no other form; left out"],
        };
        assert_eq!(found.notes, notes, "{wire}");
    }
}

#[test]
fn streams_limits_and_extras_are_said_on_every_wire() {
    let tools = tools(weather());
    let choice = json!("auto");
    let extra = json!({"generationConfig": {"topK": 1}, "stream": "mine", "thinking": {"type": "disabled"}});
    let extra = extra.as_object().unwrap();
    let ask = ModelRequest {
        mode: StreamMode::Stream,
        temperature: Some(0.5),
        max_tokens: Some(9),
        ..ask(&[], &tools, &choice, extra)
    };
    for (wire, path, expect) in [
        (
            WireApi::OpenaiChat,
            "/chat/completions",
            json!({"temperature": 0.5, "max_tokens": 9}),
        ),
        (
            WireApi::OpenaiResponses,
            "/responses",
            json!({"temperature": 0.5, "max_output_tokens": 9}),
        ),
        (
            WireApi::Anthropic,
            "/messages",
            json!({"temperature": 0.5, "max_tokens": 9}),
        ),
        (
            WireApi::Gemini,
            "/models/m-1:streamGenerateContent?alt=sse",
            json!({"generationConfig": {"temperature": 0.5, "maxOutputTokens": 9, "topK": 1}}),
        ),
    ] {
        let found = request(wire, &ask);
        assert_eq!(found.path, path);
        for (key, value) in expect.as_object().unwrap() {
            assert_eq!(found.body.get(key), Some(value), "{wire} {key}");
        }
        assert_eq!(found.body["stream"], json!("mine"), "{wire}");
        assert_eq!(
            found.body["thinking"],
            json!({"type": "disabled"}),
            "{wire}"
        );
    }
}

#[test]
fn names_a_wire_does_not_take_are_changed_everywhere() {
    let tools = tools(json!([
        {"name": "files.read", "inputSchema": {"type": "object"}},
        {"type": "web_search_preview"},
    ]));
    let messages = [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "files.read", "arguments": "{}"}}]}),
        json!({"role": "moderator"}),
    ];
    let choice = json!({"type": "function", "function": {"name": "files.read"}});
    let extra = Object::new();
    for wire in [WireApi::OpenaiChat, WireApi::Anthropic] {
        let found = request(wire, &ask(&messages, &tools, &choice, &extra));
        let [RenamedTool { emitted, original }] = found.renamed.as_slice() else {
            panic!("{wire}: {:?}", found.renamed);
        };
        assert_eq!(original, "files.read");
        let text = found.body.to_string();
        assert!(!text.contains("files.read"), "{text}");
        assert_eq!(text.matches(emitted.as_str()).count(), 3, "{text}");
        assert!(
            found
                .notes
                .contains(&format!("tool `files.read` goes by `{emitted}`"))
        );
        let left_out = found
            .notes
            .iter()
            .filter(|it| it.starts_with("a tool was left out: "));
        assert_eq!(left_out.count(), 1, "{:?}", found.notes);
    }
}
