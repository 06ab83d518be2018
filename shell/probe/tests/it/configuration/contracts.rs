use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use toolwarden_model::reply::WireApi;
use toolwarden_probe::{ContractFile, Provider};
use toolwarden_trials::{PinnedContract, PinnedToolContract};

use super::error_text;

const SUITE: &str = "
name: s
messages: [{role: user, content: hi}]
tools: [{name: get_weather, inputSchema: {type: object}}]
";

/// A contract in a folder with a suite, and the mistakes in it.
fn contract(text: &str) -> Result<ContractFile, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("suite.yaml"), SUITE).unwrap();
    let path = folder.path().join("c.yaml");
    let read = ContractFile::parse(text, &path);
    read.map_err(|error| error_text(&error, folder.path()))
}

#[test]
fn the_example_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/contract.yaml");
    let contract = ContractFile::load(&path).unwrap();
    assert_eq!(contract.suite, path.with_file_name("suite.weather.yaml"));
    let find = |name| Provider::find(name).unwrap();
    assert_eq!(contract.providers, [find("deepseek"), find("qwen")]);
    let types = [("location", "string"), ("unit", "string")];
    let types = types.map(|(name, word)| (name.to_owned(), word.to_owned()));
    let weather = PinnedToolContract {
        emitted: Some(true),
        arg_keys: Some(vec!["location".to_owned(), "unit".to_owned()]),
        arg_nesting: Some(BTreeMap::from(types)),
        arguments_encoding: Some("json_string".to_owned()),
        parallel_arity: Some(1),
        tool_call_id_format: Some("openai".to_owned()),
        finish_reason: Some("tool_calls".to_owned()),
        ..PinnedToolContract::default()
    };
    let forecast = PinnedToolContract {
        emitted: Some(true),
        arguments_encoding: Some("json_string".to_owned()),
        ..PinnedToolContract::default()
    };
    let tools = [("get_weather", weather), ("get_forecast", forecast)];
    let tools = tools.map(|(name, tool)| (name.to_owned(), tool));
    assert_eq!(contract.expected, Some(PinnedContract::from(tools)));
}

#[test]
fn what_is_said_of_a_provider_goes_before_the_preset() {
    let read = contract(
        "
suite: suite.yaml
providers:
  vendor-b:
    base_url: https://b.example.com/v1
    model_id: m
    api_key_env: []
  kimi:
  anthropic: {model: claude-x, headers: {anthropic-beta: tools}}
  azure:
    base_url: https://a.example.com/openai
    model_id: m
    wire: openai-responses
    extra_body: {max_tokens: 9}
    headers: {api-key: '${AZURE_KEY}', X-Team: platform}
",
    )
    .unwrap();
    let vendor = Provider {
        key_env: Vec::new(),
        ..Provider::custom("vendor-b", "https://b.example.com/v1", "m")
    };
    let text = |text: &str| text.to_owned();
    let mut anthropic = Provider::find("anthropic").unwrap();
    anthropic.model_id = text("claude-x");
    anthropic
        .headers
        .insert(text("anthropic-beta"), text("tools"));
    let azure = Provider {
        wire: WireApi::OpenaiResponses,
        extra_body: json!({"max_tokens": 9}).as_object().unwrap().clone(),
        headers: BTreeMap::from([
            (text("api-key"), text("${AZURE_KEY}")),
            (text("X-Team"), text("platform")),
        ]),
        ..Provider::custom("azure", "https://a.example.com/openai", "m")
    };
    let kimi = Provider::find("kimi").unwrap();
    assert_eq!(read.providers, [vendor, kimi, anthropic, azure]);
    assert_eq!(read.expected, None);
}

#[test]
fn only_what_is_named_is_pinned() {
    let pin = |text: &str| {
        let text = format!("suite: suite.yaml\nproviders: {{kimi: }}\nexpected: {text}\n");
        let read = contract(&text).unwrap();
        read.expected.map(|it| it["get_weather"].clone())
    };
    assert_eq!(pin("{}"), None);
    assert_eq!(
        pin("{get_weather: {}}"),
        Some(PinnedToolContract::default())
    );
    let keys = PinnedToolContract {
        arg_keys: Some(vec!["a".to_owned(), "b".to_owned()]),
        ..PinnedToolContract::default()
    };
    assert_eq!(pin("{get_weather: {arg_keys: [b, a, b]}}"), Some(keys));
    let silent = PinnedToolContract {
        emitted: Some(false),
        parallel_arity: Some(0),
        finish_reason: Some(String::new()),
        ..PinnedToolContract::default()
    };
    let text = "{get_weather: {emitted: false, parallel_arity: 0, finish_reason: ''}}";
    assert_eq!(pin(text), Some(silent));
    let rates = PinnedToolContract {
        id_class: Some("kimi_functions".to_owned()),
        emit_rate: Some(0.9),
        schema_valid_rate: Some(1.0),
        ..PinnedToolContract::default()
    };
    let text = "{get_weather: {id_class: kimi_functions, emit_rate: 0.9, schema_valid_rate: 1}}";
    assert_eq!(pin(text), Some(rates));
}

#[test]
fn mistakes_are_reported_with_positions() {
    let head = "suite: suite.yaml\nproviders:\n  kimi:\n";
    for (text, message) in [
        (
            "{}",
            "c.yaml:1:1: /: `suite` is missing\nc.yaml:1:1: /: `providers` is missing",
        ),
        (
            "version: 2\nsuit: a\nproviders: {}\n",
            "c.yaml:1:1: /version: only version 1 is supported\n\
             c.yaml:1:1: /: `suite` is missing\n\
             c.yaml:2:1: /suit: unknown key `suit`, did you mean `suite`?\n\
             c.yaml:3:1: /providers: expected at least one provider, found none",
        ),
        (
            "suite: gone.yaml\nproviders: {kimi: }\n",
            "c.yaml:1:1: /suite: there is no file gone.yaml",
        ),
        (
            "suite: suite.yaml\nproviders:\n  kimmi: {model_id: m}\n  other: {base_url: x}\n",
            "c.yaml:3:3: /providers/kimmi: provider `kimmi` is not known, did you mean `kimi`?; \
             give its `base_url` and `model_id`\n\
             c.yaml:4:3: /providers/other: provider `other` is not known; give its `base_url` and \
             `model_id`\n\
             c.yaml:4:11: /providers/other/base_url: expected a base_url such as \
             https://api.example.com/v1, this is not an address",
        ),
        (
            "suite: suite.yaml\nproviders:\n  kimi:\n    api_key: sk-123456\n    modell: x\n",
            "c.yaml:4:5: /providers/kimi/api_key: a key does not belong in a file; put it in an \
             environment variable and name that in `api_key_env`",
        ),
        (
            "suite: suite.yaml\nproviders:\n  kimi:\n    api_key_env: sk-123456\n    wire: openai\n    api_key_enw: X\n",
            "c.yaml:4:5: /providers/kimi/api_key_env: expected the name of an environment variable \
             such as DEEPSEEK_API_KEY\n\
             c.yaml:5:5: /providers/kimi/wire: unknown word `openai`; known are openai-chat, \
             openai-responses, anthropic, gemini\n\
             c.yaml:6:5: /providers/kimi/api_key_enw: unknown key `api_key_enw`, did you mean \
             `api_key_env`?",
        ),
        (
            "suite: suite.yaml\nproviders:\n  kimi:\n    extra_body: {tools: []}\n    headers:\n      Authorization: abc\n      X-Id: sk-proj-123456789\n      X-Y: Bearer x\n      'X Z': a\n      X-W: ${no-name}\n      X-V:\n",
            "c.yaml:4:18: /providers/kimi/extra_body/tools: `tools` is set by the probe and cannot \
             be an extra\n\
             c.yaml:6:7: /providers/kimi/headers/Authorization: the header `Authorization` looks \
             like a key; keys do not belong in a file, use `api_key_env`, or `${NAME}` for the value \
             of an environment variable\n\
             c.yaml:7:7: /providers/kimi/headers/X-Id: the header `X-Id` looks like a key; keys do \
             not belong in a file, use `api_key_env`, or `${NAME}` for the value of an environment \
             variable\n\
             c.yaml:8:7: /providers/kimi/headers/X-Y: the header `X-Y` looks like a key; keys do not \
             belong in a file, use `api_key_env`, or `${NAME}` for the value of an environment \
             variable\n\
             c.yaml:9:7: /providers/kimi/headers/X Z: `X Z` is not a header that can be sent; its name \
             has other characters than letters, digits and -\n\
             c.yaml:10:7: /providers/kimi/headers/X-W: `X-W` is not a header that can be sent; a \
             variable is written ${NAME}\n\
             c.yaml:11:7: /providers/kimi/headers/X-V: `X-V` has no value; write one, or leave the \
             key out",
        ),
        (
            "+expected:\n  get_weather:\n    emited: true\n    emitted: yes\n    arg_keys: [1]\n    arg_nesting: {a: int}\n    arguments_encoding: json\n    parallel_arity: -1\n    tool_call_id_format: kimi\n    finish_reason: 3\n    emit_rate: 90\n    id_class: kimi\n",
            "c.yaml:6:5: /expected/get_weather/emited: unknown key `emited`, did you mean `emitted`?\n\
             c.yaml:7:5: /expected/get_weather/emitted: expected true or false, found a string\n\
             c.yaml:8:16: /expected/get_weather/arg_keys/0: expected a text, found a number\n\
             c.yaml:9:19: /expected/get_weather/arg_nesting/a: unknown word `int`; known are null, \
             boolean, integer, number, string, array, object\n\
             c.yaml:10:5: /expected/get_weather/arguments_encoding: unknown word `json`; known are \
             json_string, object, absent\n\
             c.yaml:11:5: /expected/get_weather/parallel_arity: expected a whole number from 0 to \
             18446744073709551615, found -1\n\
             c.yaml:12:5: /expected/get_weather/tool_call_id_format: unknown word `kimi`; known are \
             openai, custom, absent\n\
             c.yaml:13:5: /expected/get_weather/finish_reason: expected a text, found a number\n\
             c.yaml:14:5: /expected/get_weather/emit_rate: expected a share from 0 to 1, found 90\n\
             c.yaml:15:5: /expected/get_weather/id_class: unknown word `kimi`; known are openai_call, \
             kimi_functions, kimi_bare, alnum9, uuid, toolu, empty, absent, other",
        ),
        (
            "+expected: {get_wether: {emitted: true}}\n",
            "c.yaml:4:12: /expected/get_wether: there is no tool `get_wether`, did you mean \
             `get_weather`?",
        ),
        (
            "+expected:\n",
            "c.yaml:4:1: /expected: `expected` has no value; write one, or leave the key out",
        ),
    ] {
        let text = match text.strip_prefix('+') {
            Some(rest) => format!("{head}{rest}"),
            None => text.to_owned(),
        };
        assert_eq!(contract(&text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn the_suite_is_looked_for_beside_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("c.yaml");
    std::fs::write(inner.join("broken.yaml"), "name: [").unwrap();
    std::fs::write(folder.path().join("suite.yaml"), SUITE).unwrap();
    let read = |suite: &str| {
        let text = format!("suite: {suite}\nproviders: {{kimi: }}\n");
        ContractFile::parse(&text, &path).map_err(|error| error_text(&error, &inner))
    };
    let beside = read("../suite.yaml").unwrap();
    assert_eq!(beside.suite, inner.join("../suite.yaml"));
    // Tests run in the package's folder.
    let here = read("data/suite.weather.yaml").unwrap();
    assert_eq!(here.suite, Path::new("data/suite.weather.yaml"));
    assert_eq!(
        read("broken.yaml"),
        Err("broken.yaml:2:1: while parsing a node, did not find expected node content".to_owned())
    );
}

#[test]
fn every_field_that_is_compared_can_be_pinned() {
    for field in PinnedToolContract::FIELDS {
        let text = format!(
            "suite: suite.yaml\nproviders: {{kimi: }}\nexpected: {{get_weather: {{{field}x: 1}}}}\n"
        );
        let told = contract(&text).unwrap_err();
        assert!(
            told.ends_with(&format!(", did you mean `{field}`?")),
            "{told}"
        );
    }
}
