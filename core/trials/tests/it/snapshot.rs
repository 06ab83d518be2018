use serde_json::{Value, json};
use toolwarden_model::Fingerprint;
use toolwarden_model::reply::{
    FinishClass, Leak, LeakPlace, NotMeasured, StreamMode, TrialFailure, WireApi,
};
use toolwarden_trials::{
    CallExpectation, ExpectedCall, MeasuredReply, SuiteCase, Trial, build_snapshot,
};

use super::{call, calling, case, origin, reply, snapshot_of, trial, weather};

/// A part of a snapshot's document, with rates as `k/n`.
fn part(snapshot: &toolwarden_trials::Snapshot, pointer: &str) -> Value {
    fn short(value: Value) -> Value {
        match value {
            Value::Object(members) if members.contains_key("rate") => {
                json!(format!("{}/{}", members["k"], members["n"]))
            }
            Value::Object(members) => members
                .into_iter()
                .map(|(key, it)| (key, short(it)))
                .collect(),
            Value::Array(items) => items.into_iter().map(short).collect(),
            other => other,
        }
    }
    short(snapshot.to_document().pointer(pointer).unwrap().clone())
}

#[test]
fn a_tool_is_summarized_over_all_calls_and_trials() {
    let suite = weather();
    let weather = |id: &str, sent: Value| call(&suite, "get_weather", json!(id), sent);
    let replies = vec![
        reply(vec![
            weather(
                "call_12345678",
                json!(r#"{"location": "a", "unit": "celsius"}"#),
            ),
            weather(
                "call_12345678",
                json!(r#"{"location": 3.0, "unit": "kelvin"}"#),
            ),
        ]),
        reply(vec![
            weather("x", json!("{")),
            weather("y", json!({"extra": []})),
        ]),
        reply(Vec::new()),
    ];
    let found = snapshot_of(&suite, "p", replies);
    assert_eq!(
        part(&found, "/tools/get_weather"),
        json!({
            "arguments": {"calls": 3, "dropped": 0, "paths": {
                "/extra": {"declared": "extra", "present": "1/3", "types": {"array": 1}},
                "/location": {"declared": "required", "present": "2/3", "types": {"integer": 1, "string": 1}},
                "/unit": {"declared": "optional", "present": "2/3", "types": {"string": 2}},
            }},
            "calls": 4,
            "emitted": "2/3",
            "encodings": {"invalid": 1, "json_object_string": 2, "object": 1},
            "extra_keys": "1/4",
            "faults": [
                {"calls": 1, "keyword": "arguments", "message": "the arguments are not an object: invalid", "pointer": ""},
                {"calls": 1, "keyword": "required", "message": "\"location\" is a required property", "pointer": ""},
                {"calls": 1, "keyword": "type", "message": "3.0 is not of type \"string\"", "pointer": "/location"},
                {"calls": 1, "keyword": "enum", "message": "\"kelvin\" is not one of \"celsius\" or \"fahrenheit\"", "pointer": "/unit"},
            ],
            "id_classes": {"openai_call": 2, "other": 2},
            "missing_required": "1/4",
            "parallel_arity": {"2": 2},
            "schema_valid": "1/4",
            "variants": part(&found, "/tools/get_weather/variants"),
            "variants_dropped": 0,
            "wrong_type": "1/4",
        })
    );
    let variants = part(&found, "/tools/get_weather/variants");
    assert_eq!(variants.as_array().unwrap().len(), 3);
    assert_eq!(
        part(&found, "/cases/weather/outcomes"),
        json!([
            {"trials": 1, "marks": []},
            {"trials": 1, "marks": ["called:get_weather", "invalid:get_weather", "extra:get_weather",
                r#"fault:["arguments","","get_weather"]"#, r#"fault:["required","","get_weather"]"#,
                r#"extra_key:["/extra","get_weather"]"#,
                "encoded:object:get_weather", "encoded:invalid:get_weather"]},
            {"trials": 1, "marks": ["called:get_weather", "invalid:get_weather",
                r#"fault:["enum","/unit","get_weather"]"#, r#"fault:["type","/location","get_weather"]"#,
                "encoded:json_object_string:get_weather"]},
        ])
    );
    assert_eq!(part(&found, "/replies/unique_in_turn"), json!("1/2"));
    assert_eq!(part(&found, "/replies/unique_in_session"), json!("3/4"));
    assert_eq!(
        part(&found, "/replies/parallel_arity"),
        json!({"0": 1, "2": 2})
    );
    assert_eq!(
        part(&found, "/tools/get_forecast/schema_valid"),
        json!("0/0")
    );
}

#[test]
fn whole_replies_are_summarized() {
    let suite = weather();
    let leak = |family, place| Leak {
        family,
        place,
        sentinel: "<x>".to_owned(),
    };
    let stopped = |class, word: Value, calls: bool| MeasuredReply {
        finish: Some(word),
        finish_class: class,
        ..if calls {
            calling(&suite, json!({"location": "x"}))
        } else {
            reply(Vec::new())
        }
    };
    let mut leaking = stopped(FinishClass::Done, json!("stop"), true);
    leaking.leaks = vec![
        leak("qwen", LeakPlace::Text),
        leak("qwen", LeakPlace::Text),
        leak("dsml", LeakPlace::Arguments),
    ];
    leaking.notes = vec![("r".to_owned(), "/b".to_owned(), "m".to_owned()); 2];
    leaking.has_text = true;
    let replies = vec![
        leaking,
        stopped(FinishClass::Calls, json!("tool_calls"), false),
        stopped(FinishClass::Length, json!("length"), false),
        stopped(FinishClass::Other, json!(3), true),
    ];
    let found = snapshot_of(&suite, "p", replies);
    let mut replies = part(&found, "/replies");
    for key in [
        "emit",
        "false_emit",
        "parallel_arity",
        "unique_in_session",
        "unique_in_turn",
        "stream_equivalence",
    ] {
        replies.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(
        replies,
        json!({
            "finish": {"3": 1, "length": 1, "stop": 1, "tool_calls": 1},
            "finish_classes": {"calls": 1, "done": 1, "length": 1, "other": 1},
            "finish_consistent": "1/4",
            "leaked": "1/4",
            "leaks": [
                {"family": "dsml", "place": "arguments", "replies": "1/4", "sentinel": "<x>"},
                {"family": "qwen", "place": "text", "replies": "1/4", "sentinel": "<x>"},
            ],
            "notes": {"r": {"replies": "1/4", "pointer": "/b", "message": "m"}},
            "text": "1/4",
        })
    );
}

#[test]
fn a_wire_without_a_word_for_calls_is_consistent_when_it_is_done() {
    let suite = weather();
    let mut measured = calling(&suite, json!({"location": "x"}));
    measured.finish_class = FinishClass::Done;
    for (wire, expected) in [
        (WireApi::OpenaiChat, "0/1"),
        (WireApi::Anthropic, "0/1"),
        (WireApi::OpenaiResponses, "1/1"),
        (WireApi::Gemini, "1/1"),
    ] {
        let mut origin = origin("p");
        origin.wire = wire;
        let found = build_snapshot(origin, &suite, &[trial("weather", 0, measured.clone())]);
        assert_eq!(
            part(&found, "/replies/finish_consistent"),
            json!(expected),
            "{wire}"
        );
    }
}

#[test]
fn failures_are_in_no_rate_but_their_own() {
    let suite = weather();
    let failed = |repetition, failure| Trial {
        outcome: Err(NotMeasured {
            failure,
            detail: String::new(),
        }),
        attempts: 3,
        latency_ms: Some(9_999.0),
        ..trial("weather", repetition, reply(Vec::new()))
    };
    let retried = Trial {
        attempts: 2,
        latency_ms: Some(30.0),
        ..trial("weather", 2, calling(&suite, json!({"location": "x"})))
    };
    let quick = Trial {
        latency_ms: Some(10.0),
        first_event_ms: Some(f64::NAN),
        ..trial("weather", 3, calling(&suite, json!({"location": "x"})))
    };
    let trials = [
        failed(0, TrialFailure::Status),
        failed(1, TrialFailure::Empty),
        retried,
        quick,
    ];
    let found = build_snapshot(origin("p"), &suite, &trials);
    assert_eq!(
        part(&found, "/trials"),
        json!({"planned": 4, "measured": 2, "attempts": 9, "delivery_first": "1/4",
            "delivery_eventual": "2/4", "failures": {"empty": 1, "status": 1}})
    );
    assert_eq!(part(&found, "/tools/get_weather/emitted"), json!("2/2"));
    assert_eq!(
        part(&found, "/latency"),
        json!({"total": {"n": 2, "p50_ms": 10.0, "p95_ms": 30.0},
            "first_event": {"n": 0, "p50_ms": null, "p95_ms": null}})
    );
    assert_eq!(
        found.failures().collect::<Vec<_>>(),
        [(TrialFailure::Empty, 1), (TrialFailure::Status, 1)]
    );
}

#[test]
fn cases_are_checked_against_their_expectation() {
    let mut suite = weather();
    let expected = |arguments: Option<Value>| ExpectedCall {
        tool: "get_weather".to_owned(),
        arguments,
    };
    suite.cases = vec![
        SuiteCase {
            calls: vec![expected(Some(json!({"location": "x", "n": 3})))],
            ..case("exact", CallExpectation::Call)
        },
        SuiteCase {
            calls: vec![expected(None), expected(None)],
            ..case("twice", CallExpectation::Either)
        },
        case("none", CallExpectation::NoCall),
        SuiteCase {
            forbid: vec!["get_weather".to_owned()],
            ..case("forbidden", CallExpectation::Either)
        },
    ];
    let right = calling(&suite, json!({"n": 3.0, "location": "x"}));
    let wrong = calling(&suite, json!({"location": "y"}));
    let mut trials = Vec::new();
    for case in ["exact", "twice", "none", "forbidden"] {
        for (at, measured) in [right.clone(), wrong.clone(), reply(Vec::new())]
            .into_iter()
            .enumerate()
        {
            trials.push(trial(case, u32::try_from(at).unwrap(), measured));
        }
    }
    let found = build_snapshot(origin("p"), &suite, &trials);
    let told = |name: &str| {
        let case = part(&found, &format!("/cases/{name}"));
        json!([
            case["met"],
            case["exact"],
            case["recall"],
            case["pass_hat"],
            case["modal_shape"],
            case["modal_arguments"]
        ])
    };
    assert_eq!(
        told("exact"),
        json!(["2/3", "1/3", "2/3", [0.6667, 0.3333, 0.0], "1/3", "1/3"])
    );
    assert_eq!(
        told("twice"),
        json!(["1/3", "0/0", "2/6", [0.3333, 0.0, 0.0], "1/3", "1/3"])
    );
    assert_eq!(
        told("none"),
        json!(["1/3", "0/0", "0/0", [0.3333, 0.0, 0.0], "1/3", "1/3"])
    );
    assert_eq!(
        told("forbidden"),
        json!(["1/3", "0/0", "0/0", [0.3333, 0.0, 0.0], "1/3", "1/3"])
    );
    assert_eq!(part(&found, "/replies/emit"), json!("2/3"));
    assert_eq!(part(&found, "/replies/false_emit"), json!("2/3"));
    assert_eq!(
        part(&found, "/tools/get_weather/emitted"),
        json!("4/6"),
        "where it is asked for"
    );
}

#[test]
fn streamed_replies_are_compared_with_whole_ones() {
    let suite = weather();
    let streamed = |repetition, measured| Trial {
        mode: StreamMode::Stream,
        ..trial("weather", repetition, measured)
    };
    let mut other_id = calling(&suite, json!({"location": "z"}));
    other_id.calls[0].id = Some(json!("other"));
    let trials = [
        trial("weather", 0, calling(&suite, json!({"location": "x"}))),
        streamed(0, calling(&suite, json!({"location": "y"}))),
        trial("weather", 1, calling(&suite, json!({"location": "x"}))),
        streamed(1, other_id),
        streamed(2, calling(&suite, json!({"location": "x"}))),
    ];
    let found = build_snapshot(origin("p"), &suite, &trials);
    assert_eq!(part(&found, "/replies/stream_equivalence"), json!("1/2"));
    assert_eq!(part(&found, "/cases/weather/modal_shape"), json!("4/5"));
}

#[test]
fn replies_beyond_all_bounds_stay_small() {
    let suite = weather();
    let wide: serde_json::Map<String, Value> = (0..20_000)
        .map(|at| (format!("k{at}"), json!([at])))
        .collect();
    let mut measured = reply(Vec::new());
    for at in 0..20_000 {
        measured
            .calls
            .push(call(&suite, &format!("t{at}"), json!(at), json!({})));
        measured
            .notes
            .push((format!("n{at}"), String::new(), "x".repeat(10_000)));
    }
    measured
        .calls
        .push(call(&suite, "get_weather", json!(1), Value::Object(wide)));
    let found = snapshot_of(&suite, "p", vec![measured]);
    assert!(
        found.to_text().len() < 2_000_000,
        "{}",
        found.to_text().len()
    );
    assert_eq!(found.undeclared["(others)"].calls, 19_800);
    assert_eq!(found.suite_hash, Fingerprint::of_canonical("weather"));
}
