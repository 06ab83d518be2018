//! What snapshots of models promise: the original's bytes, the same bytes in any order, and red or
//! green only where the trials show it.

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
use toolwarden_drift::contract::{
    Comparison, Expect, Fault, Measured, ObservedCall, Options, Origin, Snapshot, Suite, SuiteCase,
    SuiteTool, Trial, compare, snapshot,
};
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Pointer, parse};
use toolwarden_model::reply::{ArgumentsClass, FinishClass, Mode, Wire};

/// The suite of the original: two tools and one case.
fn weather() -> Suite {
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
    Suite {
        name: "weather".to_owned(),
        hash: Fingerprint::of_canonical("weather"),
        tools: BTreeMap::from(tools),
        cases: vec![case("weather", Expect::Either)],
    }
}

fn case(name: &str, expect: Expect) -> SuiteCase {
    SuiteCase {
        name: name.to_owned(),
        expect,
        ..SuiteCase::default()
    }
}

fn origin(provider: &str) -> Origin {
    Origin {
        provider: provider.to_owned(),
        model_id: format!("{provider}-1"),
        wire: Wire::OpenaiChat,
        at: None,
    }
}

/// A call as a shell would hand it over: read, and held against the schema.
fn call(suite: &Suite, name: &str, id: Value, sent: Value) -> ObservedCall {
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

fn faults(schema: &Value, value: &Value) -> Vec<Fault> {
    let validator = jsonschema::validator_for(schema).unwrap();
    let faults = validator.iter_errors(value).map(|error| {
        let keyword = error.schema_path().as_str().rsplit('/').next();
        Fault {
            pointer: Pointer::from(error.instance_path().as_str()),
            keyword: keyword.unwrap_or_default().to_owned(),
            message: error.to_string(),
        }
    });
    faults.collect()
}

/// A reply that stops to have its calls made.
fn reply(calls: Vec<ObservedCall>) -> Measured {
    let (word, finish_class) = if calls.is_empty() {
        ("stop", FinishClass::Done)
    } else {
        ("tool_calls", FinishClass::Calls)
    };
    Measured {
        calls,
        finish: Some(json!(word)),
        finish_class,
        ..Measured::default()
    }
}

/// A reply that calls `get_weather` with these arguments, as a string.
fn calling(suite: &Suite, arguments: Value) -> Measured {
    let sent = json!(arguments.to_string());
    reply(vec![call(
        suite,
        "get_weather",
        json!("call_12345678"),
        sent,
    )])
}

fn trial(case: &str, repetition: u32, measured: Measured) -> Trial {
    Trial {
        case: case.to_owned(),
        mode: Mode::Nonstream,
        repetition,
        outcome: Ok(measured),
        attempts: 1,
        latency_ms: None,
        first_event_ms: None,
    }
}

/// The snapshot of replies to the one case of a suite.
fn snapshot_of(suite: &Suite, provider: &str, replies: Vec<Measured>) -> Snapshot {
    let case = &suite.cases[0].name;
    let trials = replies.into_iter().zip(0..);
    let trials: Vec<Trial> = trials.map(|(it, at)| trial(case, at, it)).collect();
    snapshot(origin(provider), suite, &trials)
}

fn compared(old: &Snapshot, new: &Snapshot) -> Comparison {
    compare(old, new, &Options::default()).unwrap()
}

/// The changes, one a line.
fn told(comparison: &Comparison) -> Vec<String> {
    let changes = comparison.changes.iter();
    changes
        .map(|it| {
            let tool = it.tool.as_deref().unwrap_or("-");
            format!(
                "{} {tool} {}{}: {} → {}",
                it.severity.as_str(),
                it.field,
                it.pointer,
                it.before,
                it.after
            )
        })
        .collect()
}
