use proptest::prelude::*;
use serde_json::{Value, json};
use std::error::Error as _;
use toolwarden_model::reply::{Leak, LeakPlace, NotMeasured, StreamMode, TokenUsage, TrialFailure};
use toolwarden_trials::{InvalidSnapshot, Snapshot, Trial, VersionedSnapshot, build_snapshot};

use super::{call, calling, origin, reply, snapshot_of, trial, weather};

fn read(text: &str) -> Snapshot {
    match Snapshot::read(text).unwrap() {
        VersionedSnapshot::V2(snapshot) => snapshot,
        VersionedSnapshot::V1(one) => panic!("version 1: {one:?}"),
    }
}

/// Trials with something in every part of a snapshot.
fn rich() -> Vec<Trial> {
    let suite = weather();
    let mut trials = Vec::new();
    for at in 0..6_u32 {
        let arguments = match at % 3 {
            0 => json!({"location": "x", "unit": "celsius"}),
            1 => json!({"location": 1.5}),
            _ => json!({"location": "é", "further": [{"a": 1}, null]}),
        };
        let mut measured = calling(&suite, arguments);
        if at == 2 {
            measured
                .calls
                .push(call(&suite, "rm_rf", json!(7), json!("{")));
            measured
                .calls
                .push(call(&suite, "get_forecast", json!("a:1"), json!("{")));
        }
        measured.model = Some("m".to_owned());
        measured.usage = TokenUsage {
            input: Some(10),
            ..TokenUsage::default()
        };
        measured.notes = vec![("repair".to_owned(), "/a".to_owned(), "told".to_owned())];
        measured.leaks = vec![Leak {
            family: "qwen",
            place: LeakPlace::Text,
            sentinel: "<tool_call>".to_owned(),
        }];
        let mut trial = trial("weather", at / 2, measured);
        trial.mode = StreamMode::ALL[usize::try_from(at % 2).unwrap()];
        trial.latency_ms = Some(f64::from(at) * 10.25);
        trials.push(trial);
    }
    let mut failed = trial("weather", 9, reply(Vec::new()));
    failed.outcome = Err(NotMeasured {
        failure: TrialFailure::Timeout,
        detail: "30 s".to_owned(),
    });
    failed.attempts = 3;
    trials.push(failed);
    trials
}

#[test]
fn what_is_written_is_read() {
    let written = build_snapshot(origin("p"), &weather(), &rich());
    let text = written.to_text();
    let back = read(&text);
    assert_eq!(back, written);
    assert_eq!(back.to_text(), text);
    assert_eq!(back.to_document()["schema"], "toolwarden/probe/snapshot/v2");
    assert_eq!(back.to_document()["schema_version"], 2);
    let empty = snapshot_of(&weather(), "p", Vec::new());
    assert_eq!(read(&empty.to_text()), empty);
    assert_eq!(
        empty.to_document()["replies"]["leaked"],
        json!({"k": 0, "n": 0, "rate": null})
    );
}

proptest! {
    #[test]
    fn the_order_of_trials_does_not_show(order in Just(rich()).prop_shuffle()) {
        let expected = build_snapshot(origin("p"), &weather(), &rich()).to_text();
        prop_assert_eq!(build_snapshot(origin("p"), &weather(), &order).to_text(), expected);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _answer = Snapshot::read(&text);
    }
}

#[test]
fn texts_that_are_no_snapshots_are_refused() {
    let said = |text: &str| {
        let error = Snapshot::read(text).unwrap_err();
        let cause = error
            .source()
            .map(|it| format!(": {it}"))
            .unwrap_or_default();
        format!("{error}{cause}")
    };
    let one = |key: &str, value: Value| {
        let mut document = json!({"provider": "p", "model_id": "m", "suite": "s", "tools": {}});
        document[key] = value;
        document.to_string()
    };
    assert_eq!(said("[]"), "expected an object, found an array");
    assert!(said("{").starts_with("not JSON: "));
    for version in [
        json!(0),
        json!(3),
        json!(99),
        json!("1"),
        json!(1.5),
        json!(null),
    ] {
        let told = format!("`schema_version` is {version}; supported versions are 1 and 2");
        assert_eq!(said(&one("schema_version", version)), told);
    }
    let told = said(&one("extra", json!(1)));
    assert!(
        told.starts_with("not a snapshot of version 1: unknown field `extra`"),
        "{told}"
    );
    let told = said(&one("tools", json!({"t": {"emited": true}})));
    assert!(told.contains("unknown field `emited`"), "{told}");
    let told = said(r#"{"schema_version": 1}"#);
    assert!(told.contains("missing field `provider`"), "{told}");
}

#[test]
fn snapshots_that_contradict_themselves_are_refused() {
    let document = build_snapshot(origin("p"), &weather(), &rich()).to_document();
    let said = |pointer: &str, value: Value| {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        Snapshot::read(&document.to_string()).unwrap_err()
    };
    for (pointer, value, told) in [
        (
            "/trials/measured",
            json!(5),
            "at /trials/measured: the cases do not add up to the trials that were measured",
        ),
        (
            "/trials/planned",
            json!(1),
            "at /trials/measured: more trials were measured than planned",
        ),
        (
            "/trials/planned",
            json!(9_000_000),
            "at /trials/planned: more trials than a snapshot may have",
        ),
        (
            "/cases/weather/measured",
            json!(7),
            "at /cases/weather/outcomes: the number of outcomes differs from the number of measured trials",
        ),
    ] {
        let error = said(pointer, value);
        assert!(matches!(error, InvalidSnapshot::Contradiction { .. }));
        assert_eq!(error.to_string(), told);
    }
    for (pointer, value) in [
        ("/replies/leaked/k", json!(99)),
        ("/schema", json!("toolwarden/probe/snapshot/v3")),
        ("/wire", json!("smoke")),
        ("/suite_hash", json!("00")),
        ("/cases/weather/expect", json!("maybe")),
        ("/cases/weather/outcomes/0/marks/0", json!("strange")),
        ("/tools/get_weather/calls", json!(-1)),
    ] {
        let error = said(pointer, value);
        assert!(
            matches!(error, InvalidSnapshot::Member { version: 2, .. }),
            "{pointer}: {error}"
        );
    }
}

/// Files of tooldrift may omit members that have a default.
#[test]
fn fields_a_file_leaves_out_have_the_originals_values() {
    let text = r#"{"provider": "p", "model_id": "m", "tools": {"t": {"emitted": true}}}"#;
    let VersionedSnapshot::V1(one) = Snapshot::read(text).unwrap() else {
        panic!("version 1");
    };
    let tool = json!(one.tools["t"]);
    assert_eq!(
        tool,
        json!({"emitted": true, "arg_keys": [], "arg_nesting": {}, "arguments_encoding": "absent",
            "parallel_arity": 0, "tool_call_id_format": "absent", "finish_reason": ""})
    );
}
