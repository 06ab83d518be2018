//! Where a stream is cut into packets changes nothing.

use serde_json::{Value, json};
use toolwarden_model::event_stream::EventReader;
use toolwarden_model::reply::{Mode, Wire};
use toolwarden_testkit::provider::{FakeProvider, Script, basic, event_stream, quirks};

use crate::support::{ask, repeated, signs, target, target_on, timeless};

/// Every body cut in two at every offset gives the same events.
#[test]
fn events_do_not_depend_on_packets() {
    let bodies = basic().into_iter().map(|it| it.stream);
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

/// Over sockets: on every wire, each trial has its cut elsewhere, inside characters too.
#[tokio::test]
async fn packets_do_not_change_a_snapshot() {
    for (wire, row) in Wire::ALL.into_iter().zip(basic()) {
        assert_eq!(row.wire, wire.as_str());
        let trials = 60;
        let settings = repeated(trials, &[Mode::Stream]);
        let whole = FakeProvider::start(Script::always(row.stream.clone()));
        let whole = ask(target_on(wire, &whole), &settings).await;
        assert_eq!(
            signs(&whole.trials[0])
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
        let cut = ask(target_on(wire, &cut), &settings).await;
        assert!(whole.trials.iter().all(|it| it.outcome.is_ok()));
        assert_eq!(timeless(cut), timeless(whole), "{wire}");
    }
}

/// Byte by byte: a leak whose marker never comes in one piece.
#[tokio::test]
async fn a_marker_is_found_byte_by_byte() {
    let chunk = |content: &str| json!({"choices": [{"index": 0, "delta": {"content": content}}]});
    let mut last = chunk("");
    last["choices"][0]["finish_reason"] = json!("stop");
    let markup = ["<‖DS", "ML‖inv", "oke name=\"get_weather\">"];
    let chunks: Vec<Value> = markup.map(chunk).into_iter().chain([last]).collect();
    let answer = event_stream(&chunks);
    let settings = repeated(1, &[Mode::Stream]);
    let whole = FakeProvider::start(Script::always(answer.clone()));
    let whole = ask(target(&whole), &settings).await;
    let bytes = answer.body().len();
    let single = FakeProvider::start(Script::always(answer.split_at(1..bytes)));
    let single = ask(target(&single), &settings).await;
    assert!(signs(&whole.trials[0]).contains(&"note leaked-call".to_owned()));
    assert_eq!(timeless(single), timeless(whole));
}
