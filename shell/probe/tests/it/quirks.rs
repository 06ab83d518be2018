//! A real run finds and names every quirk of the catalogue; none passes as correct.

use std::collections::BTreeSet;

use serde_json::json;
use toolwarden_model::reply::StreamMode;
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, quirks, streamed_completion, tool_call,
};
use toolwarden_trials::{Options, Snapshot, compare, verdict_word};

use crate::support::{all_words, repeated, run_target, snapshot_without_times, target};

/// Ten trials of a provider that always sends the same reply: the oddities found, and the snapshot.
async fn asked(answer: ProviderResponse, mode: StreamMode) -> (Vec<String>, Snapshot) {
    let provider = FakeProvider::start(Script::always(answer));
    let run = run_target(target(&provider), &repeated(10, &[mode])).await;
    let first = all_words(&run.trials[0]);
    assert!(run.trials.iter().all(|it| all_words(it) == first));
    (first, snapshot_without_times(run))
}

#[tokio::test]
async fn every_quirk_is_found_and_named() {
    let call = tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":"Paris"}"#);
    let right = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let whole = ProviderResponse::json(&chat_completion(&right, &json!("tool_calls")));
    let streamed = streamed_completion(&right, &json!("tool_calls"));
    let mut found = String::new();
    for (mode, right) in [
        (StreamMode::Nonstream, whole),
        (StreamMode::Stream, streamed),
    ] {
        let (signs, right) = asked(right, mode).await;
        assert_eq!(signs, Vec::<String>::new());
        for quirk in quirks() {
            let answer = match mode {
                StreamMode::Nonstream => quirk.nonstream,
                StreamMode::Stream => quirk.stream,
            };
            let Some(answer) = answer else { continue };
            let (signs, snapshot) = asked(answer, mode).await;
            let compared = compare(&right, &snapshot, &Options::default()).unwrap();
            let severity = compared.changes.iter().map(|it| it.severity()).max();
            found.push_str(&format!(
                "{} {} ({}): {} => {}, {}\n",
                quirk.number,
                quirk.what,
                mode.as_str(),
                signs.join(", "),
                verdict_word(compared.verdict),
                severity.map_or("no change", |it| it.as_str()),
            ));
        }
    }
    assert_eq!(found, include_str!("quirks.txt"), "{found}");
    let numbers: BTreeSet<&str> = quirks().iter().map(|it| it.number).collect();
    assert_eq!(numbers.len(), 19);
}
