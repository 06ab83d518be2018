//! What snapshots of models promise: tooldrift's bytes, the same bytes in any order, and a fail or a
//! pass only if the trials show it.
#![expect(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod compare;
mod conformance;
mod files;
mod first_seen;
mod pinned;
mod simulation;
mod snapshot;
mod statistics;
mod tooldrift;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Pointer, parse};
use toolwarden_model::reply::{ArgumentsClass, FinishClass, StreamMode, WireApi};
use toolwarden_trials::{
    ArgumentFault, CallExpectation, MeasuredReply, ObservedCall, Options, Snapshot,
    SnapshotComparison, SuiteCase, SuiteTool, Trial, TrialOrigin, TrialSuite, build_snapshot,
    compare,
};

/// The suite of tooldrift: two tools and one case.
fn weather() -> TrialSuite {
    let unit = json!({"type": "string", "enum": ["celsius", "fahrenheit"]});
    let tools = [
        (
            "get_weather",
            json!({"type": "object", "properties": {"location": {"type": "string"}, "unit": unit},
                "required": ["location"]}),
        ),
        (
            "get_forecast",
            json!({"type": "object", "properties": {"location": {"type": "string"},
                "days": {"type": "integer"}, "unit": unit,
                "include": {"type": "object", "properties": {"precipitation": {"type": "boolean"},
                    "wind": {"type": "boolean"}}}},
                "required": ["location", "days"]}),
        ),
    ];
    let tools = tools.map(|(name, schema)| {
        let hash = Fingerprint::of(&schema);
        (name.to_owned(), SuiteTool { schema, hash })
    });
    TrialSuite {
        name: "weather".to_owned(),
        hash: Fingerprint::of_canonical("weather"),
        tools: BTreeMap::from(tools),
        cases: vec![case("weather", CallExpectation::Either)],
    }
}

fn case(name: &str, expect: CallExpectation) -> SuiteCase {
    SuiteCase {
        name: name.to_owned(),
        expect,
        ..SuiteCase::default()
    }
}

fn origin(provider: &str) -> TrialOrigin {
    TrialOrigin {
        provider: provider.to_owned(),
        model_id: format!("{provider}-1"),
        wire: WireApi::OpenaiChat,
        at: None,
    }
}

/// A call as a shell would pass it: parsed, and validated against the schema.
fn call(suite: &TrialSuite, name: &str, id: Value, sent: Value) -> ObservedCall {
    let (class, value) = match &sent {
        Value::Null => (ArgumentsClass::Absent, None),
        Value::Object(value) => (ArgumentsClass::Object, Some(value.clone())),
        Value::String(text) => match parse(text).map(|it| it.value) {
            Ok(Value::Object(value)) => (ArgumentsClass::JsonObjectString, Some(value)),
            Ok(_) => (ArgumentsClass::JsonNonObject, None),
            Err(_) => (ArgumentsClass::Invalid, None),
        },
        _ => (ArgumentsClass::JsonNonObject, None),
    };
    let schema = suite.tools.get(name).map(|it| &it.schema);
    let faults = match (schema, &value) {
        (Some(schema), Some(value)) => faults(schema, &Value::Object(value.clone())),
        _ => Vec::new(),
    };
    ObservedCall {
        name: name.to_owned(),
        id: (!id.is_null()).then_some(id),
        sent: Some(sent),
        class,
        value,
        faults,
    }
}

fn faults(schema: &Value, value: &Value) -> Vec<ArgumentFault> {
    let validator = jsonschema::validator_for(schema).unwrap();
    let faults = validator.iter_errors(value).map(|error| {
        let keyword = error.schema_path().as_str().rsplit('/').next();
        ArgumentFault {
            pointer: Pointer::from(error.instance_path().as_str()),
            keyword: keyword.unwrap_or_default().to_owned(),
            message: error.to_string(),
        }
    });
    faults.collect()
}

/// A reply that stops to have its calls made.
fn reply(calls: Vec<ObservedCall>) -> MeasuredReply {
    let (word, finish_class) = if calls.is_empty() {
        ("stop", FinishClass::Done)
    } else {
        ("tool_calls", FinishClass::Calls)
    };
    MeasuredReply {
        calls,
        finish: Some(json!(word)),
        finish_class,
        ..MeasuredReply::default()
    }
}

/// A reply that calls `get_weather` with these arguments, as a string.
fn calling(suite: &TrialSuite, arguments: Value) -> MeasuredReply {
    let sent = json!(arguments.to_string());
    reply(vec![call(
        suite,
        "get_weather",
        json!("call_12345678"),
        sent,
    )])
}

fn trial(case: &str, repetition: u32, measured: MeasuredReply) -> Trial {
    Trial {
        case: case.to_owned(),
        mode: StreamMode::Nonstream,
        repetition,
        outcome: Ok(measured),
        attempts: 1,
        latency_ms: None,
        first_event_ms: None,
    }
}

/// The snapshot of replies to the one case of a suite.
fn snapshot_of(suite: &TrialSuite, provider: &str, replies: Vec<MeasuredReply>) -> Snapshot {
    let case = &suite.cases[0].name;
    let trials = replies.into_iter().zip(0..);
    let trials: Vec<Trial> = trials.map(|(it, at)| trial(case, at, it)).collect();
    build_snapshot(origin(provider), suite, &trials)
}

fn compared(old: &Snapshot, new: &Snapshot) -> SnapshotComparison {
    compare(old, new, &Options::default()).unwrap()
}

/// The changes, one per line.
fn change_lines(comparison: &SnapshotComparison) -> Vec<String> {
    let changes = comparison.changes.iter();
    changes
        .map(|it| {
            let tool = it.tool.as_deref().unwrap_or("-");
            format!(
                "{} {tool} {}{}: {} → {}",
                it.severity().as_str(),
                it.evidence.rule,
                it.pointer.as_str(),
                it.before_text(),
                it.after_text()
            )
        })
        .collect()
}
