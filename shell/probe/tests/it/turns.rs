//! Cases with several turns: results are fed back, and the calls that follow are measured.

use std::path::Path;

use serde_json::{Value, json};
use toolwarden_model::reply::{StreamMode, TrialFailure, WireApi};
use toolwarden_probe::{ProbeSuite, SuiteRun, capture, run_suite};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, RecordedRequest, Script, chat_completion, tool_call,
    wire_replies,
};
use toolwarden_trials::{CallExpectation, ExpectedCall, Snapshot, TrialOrigin, build_snapshot};

use crate::support::{repeated, settings, suite, target, target_on};

const TURNS: &str = r#"
cases:
  - name: plan
    messages: [{role: user, content: "Weather and forecast?"}]
    calls: [get_weather, get_forecast]
    turns:
      - results: {get_weather: {celsius: 21}, get_forecast: "rain"}
        messages: [{role: user, content: "And tomorrow?"}]
        calls: [get_forecast]
"#;

/// The bundled tools with other cases.
fn suite_with(cases: &str) -> ProbeSuite {
    let with = ProbeSuite::parse(
        &format!(
            "tools: [{{name: get_weather, input_schema: {{type: object}}}}, {{name: get_forecast, input_schema: {{type: object}}}}]\n{cases}"
        ),
        Path::new("turns.yaml"),
    );
    ProbeSuite {
        tools: suite().tools,
        ..with.unwrap()
    }
}

async fn run(
    suite: &ProbeSuite,
    wire: WireApi,
    mode: StreamMode,
    script: Script,
) -> (SuiteRun, Vec<RecordedRequest>) {
    let provider = FakeProvider::start(script);
    let settings = repeated(1, &[mode]);
    let mut runs = run_suite(vec![target_on(wire, &provider)], suite, &settings, |_| {}).await;
    (runs.remove(0), provider.requests())
}

fn snapshot(suite: &ProbeSuite, run: &SuiteRun) -> Snapshot {
    let origin = TrialOrigin {
        provider: "fake".to_owned(),
        model_id: "synthetic-1".to_owned(),
        wire: run.provider.wire,
        at: None,
    };
    build_snapshot(origin, &suite.facts(), &run.trials)
}

const WEATHER: &str = r#"{"location":"東京","unit":"celsius"}"#;
const FORECAST: &str = r#"{"location":"Zürich","days":3,"include":{"wind":true}}"#;

/// The conversation of the second request, as each wire has it.
fn expected_conversation(wire: WireApi, body: &Value) -> (Value, Value) {
    let (weather, forecast): (Value, Value) = (
        serde_json::from_str(WEATHER).unwrap(),
        serde_json::from_str(FORECAST).unwrap(),
    );
    match wire {
        WireApi::OpenaiChat => (
            body["messages"].clone(),
            json!([
                {"role": "user", "content": "Weather and forecast?"},
                {"role": "assistant", "content": null, "tool_calls": [
                    tool_call("call_0a1b2c3d4e", "get_weather", WEATHER),
                    tool_call("call_1a1b2c3d4e", "get_forecast", FORECAST),
                ]},
                {"role": "tool", "tool_call_id": "call_0a1b2c3d4e", "content": "{\"celsius\":21}"},
                {"role": "tool", "tool_call_id": "call_1a1b2c3d4e", "content": "rain"},
                {"role": "user", "content": "And tomorrow?"},
            ]),
        ),
        WireApi::OpenaiResponses => (
            body["input"].clone(),
            json!([
                {"role": "user", "content": "Weather and forecast?"},
                {"type": "function_call", "call_id": "call_0a1b2c3d4e", "name": "get_weather", "arguments": WEATHER},
                {"type": "function_call", "call_id": "call_1a1b2c3d4e", "name": "get_forecast", "arguments": FORECAST},
                {"type": "function_call_output", "call_id": "call_0a1b2c3d4e", "output": "{\"celsius\":21}"},
                {"type": "function_call_output", "call_id": "call_1a1b2c3d4e", "output": "rain"},
                {"role": "user", "content": "And tomorrow?"},
            ]),
        ),
        WireApi::Anthropic => {
            let ids: Vec<&Value> = ["/messages/1/content/0/id", "/messages/1/content/1/id"]
                .iter()
                .map(|at| body.pointer(at).unwrap())
                .collect();
            assert!(
                ids.iter()
                    .all(|id| id.as_str().unwrap().starts_with("toolu_")),
                "{ids:?}"
            );
            (
                body["messages"].clone(),
                json!([
                    {"role": "user", "content": "Weather and forecast?"},
                    {"role": "assistant", "content": [
                        {"type": "tool_use", "id": ids[0], "name": "get_weather", "input": weather},
                        {"type": "tool_use", "id": ids[1], "name": "get_forecast", "input": forecast},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": ids[0], "content": "{\"celsius\":21}"},
                        {"type": "tool_result", "tool_use_id": ids[1], "content": "rain"},
                        {"type": "text", "text": "And tomorrow?"},
                    ]},
                ]),
            )
        }
        WireApi::Gemini => (
            body["contents"].clone(),
            json!([
                {"role": "user", "parts": [{"text": "Weather and forecast?"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "get_weather", "args": weather}},
                    {"functionCall": {"name": "get_forecast", "args": forecast}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "get_weather", "response": {"celsius": 21}}},
                    {"functionResponse": {"name": "get_forecast", "response": {"result": "rain"}}},
                    {"text": "And tomorrow?"},
                ]},
            ]),
        ),
    }
}

#[tokio::test]
async fn results_are_fed_back_on_every_wire_whole_and_streamed() {
    let suite = suite_with(TURNS);
    for replies in wire_replies() {
        let wire: WireApi = replies.wire.parse().unwrap();
        for mode in StreamMode::ALL {
            let script = Script::by_mode(replies.nonstream.clone(), replies.stream.clone());
            let (run, requests) = run(&suite, wire, mode, script).await;
            let cases: Vec<_> = run.trials.iter().map(|it| it.case.as_str()).collect();
            assert_eq!(cases, ["plan", "plan#2"], "{wire:?} {mode:?}");
            assert_eq!(requests.len(), 2);
            let (found, expected) = expected_conversation(wire, &requests[1].body);
            assert_eq!(found, expected, "{wire:?} {mode:?}");
            for turn in &run.trials {
                let measured = turn.outcome.as_ref().unwrap();
                let called: Vec<_> = measured.calls.iter().map(|it| it.name.as_str()).collect();
                assert_eq!(called, ["get_weather", "get_forecast"]);
            }
            let taken = snapshot(&suite, &run);
            let met: Vec<_> = taken
                .cases
                .iter()
                .map(|(name, it)| (name.as_str(), it.met.hits, it.met.of))
                .collect();
            assert_eq!(met, [("plan", 1, 1), ("plan#2", 1, 1)]);
            let text = taken.to_text();
            let toolwarden_trials::VersionedSnapshot::V2(read) = Snapshot::read(&text).unwrap()
            else {
                panic!("{text}");
            };
            assert_eq!(read, taken);
        }
    }
}

#[tokio::test]
async fn gemini_gets_the_signature_of_each_call_back() {
    let part = |name: &str, signature: Option<&str>| {
        let mut part = json!({"functionCall": {"name": name, "args": {}}});
        if let Some(signature) = signature {
            part["thoughtSignature"] = json!(signature);
        }
        part
    };
    let reply = json!({"modelVersion": "synthetic-1", "candidates": [{"finishReason": "STOP",
        "content": {"role": "model", "parts": [part("get_weather", Some("c2ln")), part("get_forecast", None)]}}]});
    let whole = ProviderResponse::json(&reply);
    let stream = ProviderResponse::events(format!("data: {reply}\r\n\r\n"));
    let suite = suite_with(TURNS);
    for mode in StreamMode::ALL {
        let script = Script::by_mode(whole.clone(), stream.clone());
        let (_, requests) = run(&suite, WireApi::Gemini, mode, script).await;
        let parts = &requests[1].body["contents"][1]["parts"];
        assert_eq!(
            *parts,
            json!([
                part("get_weather", Some("c2ln")),
                part("get_forecast", None)
            ]),
            "{mode:?}"
        );
    }
}

fn chat(message: &Value) -> ProviderResponse {
    ProviderResponse::json(&chat_completion(message, &json!("tool_calls")))
}

#[tokio::test]
async fn a_turn_that_no_reply_reached_is_not_measured() {
    let suite = suite_with(TURNS);
    let text = json!({"role": "assistant", "content": "It is sunny."});
    let other = json!({"role": "assistant", "content": null, "tool_calls": [tool_call("call_1a2b3c4d", "send_mail", "{}")]});
    for message in [text, other] {
        let script = Script::always(chat(&message));
        let (run, requests) = run(&suite, WireApi::OpenaiChat, StreamMode::Nonstream, script).await;
        assert_eq!(requests.len(), 1);
        let open = run.trials[1].outcome.as_ref().unwrap_err();
        assert_eq!(open.failure, TrialFailure::NotAsked);
        assert_eq!(run.trials.len(), 2);
        let taken = snapshot(&suite, &run);
        let second = &taken.cases["plan#2"];
        assert_eq!((second.planned, second.measured), (1, 0));
        assert_eq!(second.expected, ["get_forecast"]);
    }
}

#[tokio::test]
async fn a_call_without_a_result_gets_an_error_and_a_call_without_an_id_gets_one() {
    let suite = suite_with(TURNS);
    let mut first = tool_call("", "get_weather", WEATHER);
    first.as_object_mut().unwrap().remove("id");
    let message = json!({"role": "assistant", "content": "Let me see.", "reasoning_content": "hm",
        "tool_calls": [first, tool_call("call_1a2b3c4d", "send_mail", "{}")]});
    let script = Script::always(chat(&message));
    let (_, requests) = run(&suite, WireApi::OpenaiChat, StreamMode::Nonstream, script).await;
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(
        messages[1..4],
        [
            json!({"role": "assistant", "content": "Let me see.", "reasoning_content": "hm", "tool_calls": [
                tool_call("call_0", "get_weather", WEATHER), tool_call("call_1a2b3c4d", "send_mail", "{}")]}),
            json!({"role": "tool", "tool_call_id": "call_0", "content": "{\"celsius\":21}"}),
            json!({"role": "tool", "tool_call_id": "call_1a2b3c4d", "content": "{\"error\":\"not available\"}"}),
        ]
    );
}

#[tokio::test]
async fn captures_keep_every_turn_and_replay_both() {
    let suite = suite_with(TURNS);
    let first = chat(&toolwarden_testkit::provider::good());
    let again = json!({"role": "assistant", "content": null, "tool_calls": [tool_call("call_2a1b2c3d4e", "get_forecast", FORECAST)]});
    let provider = FakeProvider::start(Script::in_turn(vec![first, chat(&again)]));
    let runs = run_suite(vec![target(&provider)], &suite, &settings(), |_| {}).await;
    let folder = tempfile::tempdir().unwrap();
    let paths = capture::write(folder.path(), &suite.name, &runs).unwrap();
    let kept = capture::read(&paths[0]).unwrap().remove(0);
    let keys: Vec<_> = kept
        .exchanges
        .iter()
        .map(|(key, _)| (key.case.as_str(), key.attempt))
        .collect();
    assert_eq!(keys, [("plan", 1), ("plan#2", 1)]);
    assert_eq!(kept.exchanges, runs[0].exchanges);
}

#[test]
fn a_suite_with_turns_is_read_and_its_mistakes_are_named() {
    let read = suite_with(TURNS);
    let turn = &read.cases[0].turns[0];
    assert_eq!(
        turn.results.iter().collect::<Vec<_>>(),
        [
            (&"get_forecast".to_owned(), &"rain".to_owned()),
            (&"get_weather".to_owned(), &"{\"celsius\":21}".to_owned()),
        ]
    );
    assert_eq!(
        turn.calls,
        [ExpectedCall {
            tool: "get_forecast".to_owned(),
            arguments: None
        }]
    );
    assert_eq!(turn.tool_choice, Some(json!("auto")));
    let names: Vec<_> = read
        .facts()
        .cases
        .iter()
        .map(|it| (it.name.clone(), it.expect))
        .collect();
    assert_eq!(
        names,
        [
            ("plan".to_owned(), CallExpectation::Call),
            ("plan#2".to_owned(), CallExpectation::Call)
        ]
    );

    // A forced choice is for the first turn, and a case with turns expects a call.
    let forced = suite_with(
        "cases:\n  - name: a\n    messages: [{role: user, content: x}]\n    tool_choice: required\n    turns: [{results: {get_weather: 1}, expect: no_call}]",
    );
    assert_eq!(forced.cases[0].turns[0].tool_choice, Some(json!("auto")));
    assert_eq!(forced.cases[0].expect, CallExpectation::Call);
    assert_eq!(forced.cases[0].turns[0].expect, CallExpectation::NoCall);

    let mistake = |cases: &str| {
        let text =
            format!("tools: [{{name: read, input_schema: {{type: object}}}}]\ncases:\n{cases}");
        ProbeSuite::parse(&text, Path::new("s.yaml"))
            .unwrap_err()
            .to_string()
    };
    for (cases, message) in [
        (
            "  - {name: a, messages: [{role: user, content: x}], expect: no_call, turns: [{results: {read: 1}}]}",
            "s.yaml:3:53: /cases/0/expect: `expect: no_call` and a following turn exclude each other: there is no call to answer",
        ),
        (
            "  - {name: a, messages: [{role: user, content: x}], turns: [{results: {raed: 1}}]}",
            "s.yaml:3:72: /cases/0/turns/0/results/raed: there is no tool `raed`, did you mean `read`?",
        ),
        (
            "  - {name: a, messages: [{role: user, content: x}], turns: [{expect: call}]}",
            "s.yaml:3:61: /cases/0/turns/0: `results` is missing",
        ),
        (
            "  - {name: a, messages: [{role: user, content: x}], turns: [{results: {read: 1}}]}\n  - {name: 'a#2', messages: [{role: user, content: x}]}",
            "s.yaml:2:1: /cases: there are two cases `a#2`",
        ),
    ] {
        assert_eq!(mistake(cases), message, "{cases}");
    }
}

#[test]
fn suites_without_turns_keep_their_fingerprint_and_turns_change_it() {
    let one = suite_with("cases: [{name: a, messages: [{role: user, content: x}]}]");
    let two = suite_with(
        "cases: [{name: a, messages: [{role: user, content: x}], turns: [{results: {get_weather: 1}}]}]",
    );
    let three = suite_with(
        "cases: [{name: a, messages: [{role: user, content: x}], turns: [{results: {get_weather: 2}}]}]",
    );
    let bundled = suite().facts().hash.to_string();
    assert_eq!(bundled, BUNDLED_FINGERPRINT);
    assert_ne!(one.facts().hash, two.facts().hash);
    assert_ne!(two.facts().hash, three.facts().hash);
}

/// The fingerprint of the bundled suite before suites had turns.
const BUNDLED_FINGERPRINT: &str =
    "3057b6b04e27bde3fff8417011cc1401887d05f6af92f03aa63f1b79b58d7c36";
