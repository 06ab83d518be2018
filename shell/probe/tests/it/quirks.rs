//! Every quirk of the catalogue is found by a real run, and named; none passes for the real thing.

use std::collections::BTreeSet;

use serde_json::json;
use toolwarden_drift::contract::{Options, Snapshot, compare};
use toolwarden_model::reply::Mode;
use toolwarden_testkit::provider::{
    Answer, FakeProvider, Script, quirks, streamed, tool_call, whole,
};

use crate::support::{ask, repeated, signs, target, timeless};

/// Ten trials of a provider that always answers the same: what is odd about them, and the snapshot.
async fn asked(answer: Answer, mode: Mode) -> (Vec<String>, Snapshot) {
    let provider = FakeProvider::start(Script::always(answer));
    let run = ask(target(&provider), &repeated(10, &[mode])).await;
    let first = signs(&run.trials[0]);
    assert!(run.trials.iter().all(|it| signs(it) == first));
    (first, timeless(run))
}

#[tokio::test]
async fn every_quirk_is_found_and_named() {
    let call = tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":"Paris"}"#);
    let right = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let whole = Answer::json(&whole(&right, &json!("tool_calls")));
    let streamed = streamed(&right, &json!("tool_calls"));
    let mut found = String::new();
    for (mode, right) in [(Mode::Nonstream, whole), (Mode::Stream, streamed)] {
        let (signs, right) = asked(right, mode).await;
        assert_eq!(signs, Vec::<String>::new());
        for quirk in quirks() {
            let answer = match mode {
                Mode::Nonstream => quirk.nonstream,
                Mode::Stream => quirk.stream,
            };
            let Some(answer) = answer else { continue };
            let (signs, snapshot) = asked(answer, mode).await;
            let compared = compare(&right, &snapshot, &Options::default()).unwrap();
            let severity = compared.changes.iter().map(|it| it.severity).max();
            found.push_str(&format!(
                "{} {} ({}): {} => {}, {}\n",
                quirk.number,
                quirk.what,
                mode.as_str(),
                signs.join(", "),
                compared.verdict.as_str(),
                severity.map_or("no change", |it| it.as_str()),
            ));
        }
    }
    assert_eq!(found, include_str!("quirks.txt"), "{found}");
    let numbers: BTreeSet<&str> = quirks().iter().map(|it| it.number).collect();
    assert_eq!(numbers.len(), 19);
}
