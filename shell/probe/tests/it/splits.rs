//! Splitting a stream into packets at any position changes nothing.

use serde_json::{Value, json};
use toolwarden_model::event_stream::EventReader;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_testkit::provider::{FakeProvider, Script, event_stream, quirks, wire_replies};

use crate::support::{note_words, repeated, run_target, snapshot_without_times, target, target_on};

/// Every body split in two at every offset gives the same events.
#[test]
fn events_do_not_depend_on_packets() {
    let bodies = wire_replies().into_iter().map(|it| it.stream);
    let bodies = bodies.chain(quirks().into_iter().filter_map(|it| it.stream));
    for answer in bodies {
        let body = answer.body();
        let read = |pieces: [&[u8]; 2]| {
            let mut reader = EventReader::new(1 << 20);
            pieces.map(|it| reader.feed(it).unwrap()).concat()
        };
        let whole = read([body, b""]);
        for at in 0..=body.len() {
            let (one, other) = body.split_at(at);
            assert_eq!(read([one, other]), whole, "at {at}");
        }
    }
}

/// Over sockets: on every wire, each trial splits at another position, also inside characters.
#[tokio::test]
async fn packets_do_not_change_a_snapshot() {
    for (wire, row) in WireApi::ALL.into_iter().zip(wire_replies()) {
        assert_eq!(row.wire, wire.as_str());
        let trials = 60;
        let settings = repeated(trials, &[StreamMode::Stream]);
        let whole = FakeProvider::start(Script::always(row.stream.clone()));
        let whole = run_target(target_on(wire, &whole), &settings).await;
        assert_eq!(
            note_words(&whole.trials[0])
                .iter()
                .filter(|it| it.contains("fault"))
                .count(),
            0
        );
        let body = row.stream.body().to_vec();
        let inside: Vec<usize> = (1..body.len())
            .filter(|at| body[*at] & 0xc0 == 0x80)
            .collect();
        assert!(inside.len() >= 5);
        let step = body.len() / usize::try_from(trials).unwrap() + 1;
        let cut = FakeProvider::start(Script::by(move |_, before| {
            let at = inside.get(before).copied().unwrap_or(before * step);
            row.stream.clone().split_at([at])
        }));
        let cut = run_target(target_on(wire, &cut), &settings).await;
        assert!(whole.trials.iter().all(|it| it.outcome.is_ok()));
        assert_eq!(
            snapshot_without_times(cut),
            snapshot_without_times(whole),
            "{wire}"
        );
    }
}

/// Byte by byte: a leak whose marker never arrives in one piece.
#[tokio::test]
async fn a_marker_is_found_byte_by_byte() {
    let chunk = |content: &str| json!({"choices": [{"index": 0, "delta": {"content": content}}]});
    let mut last = chunk("");
    last["choices"][0]["finish_reason"] = json!("stop");
    let markup = ["<‖DS", "ML‖inv", "oke name=\"get_weather\">"];
    let chunks: Vec<Value> = markup.map(chunk).into_iter().chain([last]).collect();
    let answer = event_stream(&chunks);
    let settings = repeated(1, &[StreamMode::Stream]);
    let whole = FakeProvider::start(Script::always(answer.clone()));
    let whole = run_target(target(&whole), &settings).await;
    let bytes = answer.body().len();
    let single = FakeProvider::start(Script::always(answer.split_at(1..bytes)));
    let single = run_target(target(&single), &settings).await;
    assert!(note_words(&whole.trials[0]).contains(&"note leaked-call".to_owned()));
    assert_eq!(
        snapshot_without_times(single),
        snapshot_without_times(whole)
    );
}
