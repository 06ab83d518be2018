use serde_json::{Value, json};
use toolwarden_model::reply::WireApi;
use toolwarden_testkit::read_vectors;
use toolwarden_trials::tooldrift::{SnapshotSide, ToolCallShape, TooldriftSnapshot, diff};
use toolwarden_trials::{MeasuredReply, Snapshot, TrialOrigin, TrialSuite, VersionedSnapshot};

use super::{call, reply, snapshot_of, trial, weather};

/// What a shell would make of a reply of the chat API.
pub(super) fn measured(suite: &TrialSuite, body: &Value) -> MeasuredReply {
    let choice = &body["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    let calls = calls.iter().map(|it| {
        let function = &it["function"];
        let name = function["name"].as_str().unwrap();
        call(suite, name, it["id"].clone(), function["arguments"].clone())
    });
    MeasuredReply {
        finish: Some(choice["finish_reason"].clone()),
        model: body["model"].as_str().map(str::to_owned),
        ..reply(calls.collect())
    }
}

fn one(suite: &TrialSuite, provider: &str, body: &Value) -> TooldriftSnapshot {
    let origin = TrialOrigin {
        provider: provider.to_owned(),
        model_id: body["model"].as_str().unwrap().to_owned(),
        wire: WireApi::OpenaiChat,
        at: None,
    };
    let trials = [trial("weather", 0, measured(suite, body))];
    TooldriftSnapshot::of(&origin, suite, &trials).unwrap()
}

#[test]
fn the_flagship_has_all_its_rows() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let suite = weather();
    let sides = ["deepseek", "qwen"].map(|provider| {
        let found = one(&suite, provider, &vectors[format!("{provider}_fixture")]);
        let expected = &vectors[format!("{provider}_snapshot")];
        let mut text = serde_json::to_string_pretty(expected).unwrap();
        text.push('\n');
        assert_eq!(found.to_text(), text, "the vector has its keys sorted");
        let VersionedSnapshot::V1(read) = Snapshot::read(&text).unwrap() else {
            panic!("a snapshot of version 1");
        };
        assert_eq!(read, found);
        found
    });
    let [deepseek, qwen] = &sides;
    let delta = diff(deepseek, qwen);
    let rows: Value = delta
        .tools
        .iter()
        .map(|tool| {
            let fields = tool.fields.iter();
            let fields = fields.map(|it| json!([it.field, it.old, it.new, it.severity.as_str()]));
            (tool.tool.clone(), fields.collect::<Value>())
        })
        .collect::<serde_json::Map<String, Value>>()
        .into();
    assert_eq!(rows, vectors["diff_fields"]);
    let count: usize = delta.tools.iter().map(|it| it.fields.len()).sum();
    assert_eq!(count, 10);
    assert_eq!(
        (
            delta.old_label.as_str(),
            delta.new_label.as_str(),
            delta.suite.as_str()
        ),
        ("deepseek/deepseek-chat", "qwen/qwen-plus", "weather")
    );
    assert!(delta.has_breaking() && !delta.is_equivalent());
    assert!(diff(deepseek, deepseek).is_equivalent());
}

fn shape_of(id: &Value, arguments: &Value) -> ToolCallShape {
    let suite = weather();
    let mut call = call(&suite, "t", Value::Null, arguments.clone());
    call.id = Some(id.clone());
    call.sent = Some(arguments.clone());
    let origin = super::origin("p");
    let trials = [trial("weather", 0, reply(vec![call]))];
    let snapshot = TooldriftSnapshot::of(&origin, &suite, &trials).unwrap();
    snapshot.tools["t"].clone()
}

#[test]
fn replies_are_normalised_as_by_the_original() {
    let Some(vectors) = read_vectors("probe-normalise.json") else {
        return;
    };
    let rows = |key: &str| vectors[key].as_array().unwrap().clone();
    let ids = rows("tool_call_id_format");
    assert_eq!(ids.len(), 15);
    for row in ids {
        let found = shape_of(&row[0], &json!("{}")).tool_call_id_format;
        assert_eq!(json!(found), row[1], "{row}");
    }
    let arguments = rows("arguments");
    assert_eq!(arguments.len(), 18);
    for row in arguments {
        let found = shape_of(&json!("x"), &row[0]);
        assert_eq!(json!(found.arguments_encoding), row[1], "{row}");
        assert_eq!(json!(found.arg_nesting), row[2], "{row}");
        let keys: Vec<&String> = row[2].as_object().unwrap().keys().collect();
        assert_eq!(json!(found.arg_keys), json!(keys), "{row}");
    }
    let types = rows("json_type");
    assert_eq!(types.len(), 7);
    for row in types {
        let found = shape_of(&json!("x"), &json!({"k": row[0]}));
        assert_eq!(json!(found.arg_nesting), json!({"k": row[1]}), "{row}");
    }
}

#[test]
fn constants_of_python_are_numbers_and_the_same_letters_in_texts_are_not() {
    let text = r#"{"a": -Infinity, "NaN": "Infinity \" NaN", "b": [NaN]}"#;
    let found = shape_of(&json!("x"), &json!(text));
    let expected = json!({"NaN": "string", "a": "number", "b": "array"});
    assert_eq!(json!(found.arg_nesting), expected);
}

#[test]
fn only_the_first_call_counts_and_tools_of_one_side_are_reported() {
    let suite = weather();
    let calls = vec![
        call(&suite, "rm_rf", json!(null), json!(null)),
        call(&suite, "get_weather", json!("call_123"), json!({"a": 1})),
        call(&suite, "get_weather", json!("x"), json!("{\"b\": 1}")),
    ];
    let trials = [trial("weather", 0, reply(calls))];
    let new = TooldriftSnapshot::of(&super::origin("p"), &suite, &trials).unwrap();
    let silent = [trial("weather", 0, reply(Vec::new()))];
    let old = TooldriftSnapshot::of(&super::origin("p"), &suite, &silent).unwrap();
    let delta = diff(&old, &new);
    let told: Vec<String> = delta
        .tools
        .iter()
        .map(|tool| {
            let fields: Vec<String> = tool
                .fields
                .iter()
                .map(|it| format!("{} {}→{}", it.field, it.old, it.new))
                .collect();
            format!("{} {:?} {}", tool.tool, tool.only_in, fields.join(" "))
        })
        .collect();
    assert_eq!(
        told,
        [
            "get_forecast None finish_reason stop→tool_calls",
            "get_weather None arg_keys —→a arg_nesting:a absent→integer emitted False→True \
             arguments_encoding absent→object parallel_arity 0→2 tool_call_id_format absent→openai \
             finish_reason stop→tool_calls",
            "rm_rf Some(New) ",
        ]
    );
    assert!(!delta.tools[2].is_equivalent());
    let gone = diff(&new, &old);
    assert_eq!(gone.tools[2].only_in, Some(SnapshotSide::Old));
    assert_eq!(
        gone.tools[0].fields[0].note,
        "the choice finish_reason changed; tool-dispatch gating may differ."
    );
}

#[test]
fn a_snapshot_of_two_holds_one_of_one() {
    let suite = weather();
    let replies = || {
        vec![
            super::calling(&suite, json!({"location": "x"})),
            reply(Vec::new()),
        ]
    };
    let two = snapshot_of(&suite, "p", replies());
    let trials: Vec<_> = replies()
        .into_iter()
        .zip(0..)
        .map(|(it, at)| trial("weather", at, it))
        .collect();
    let one = TooldriftSnapshot::of(&super::origin("p"), &suite, &trials);
    assert_eq!(two.to_tooldrift(), one);
    assert!(one.unwrap().tools["get_weather"].emitted);
    let nothing = snapshot_of(&suite, "p", Vec::new());
    assert_eq!(nothing.to_tooldrift(), None, "a failure is not a contract");
}
