use toolwarden_canon::reply::{ReplyLimits, read};
use toolwarden_model::event_stream::{EventReader, ServerSentEvent};
use toolwarden_model::reply::{Reply, StreamMode, WireApi};

use super::{all_cases, case};

/// A reply without the notes on how it came.
fn content(reply: Reply) -> Reply {
    Reply {
        notes: Vec::new(),
        ..reply
    }
}

#[test]
fn a_stream_and_its_whole_form_give_the_same_reply() {
    for (wire, name) in [
        (WireApi::OpenaiChat, "pair-calls"),
        (WireApi::OpenaiChat, "pair-text"),
        (WireApi::OpenaiResponses, "pair-calls"),
        (WireApi::Anthropic, "pair-calls"),
        (WireApi::Gemini, "pair-calls"),
    ] {
        let whole = case(wire, &format!("{name}.json")).read().unwrap();
        let pieces = case(wire, &format!("{name}.sse")).read().unwrap();
        assert_eq!(whole.notes, [], "{wire}");
        assert_eq!(pieces.notes, [], "{wire}");
        assert_eq!(whole, pieces, "{wire}");
    }
}

#[test]
fn an_array_of_chunks_is_a_stream() {
    let array = case(WireApi::Gemini, "array-stream.asked-stream.json")
        .read()
        .unwrap();
    let events = case(WireApi::Gemini, "pair-calls.sse").read().unwrap();
    assert_eq!(content(array), content(events));
}

fn events(pieces: &[&[u8]]) -> Vec<ServerSentEvent> {
    let mut reader = EventReader::new(1 << 20);
    pieces
        .iter()
        .flat_map(|piece| reader.feed(piece).unwrap())
        .collect()
}

#[test]
fn every_split_of_every_stream_gives_the_same_events() {
    for case in all_cases().filter(|case| case.name.ends_with(".sse")) {
        let whole = events(&[&case.body]);
        for split in 0..=case.body.len() {
            let (first, second) = case.body.split_at(split);
            assert_eq!(events(&[first, second]), whole, "{} at {split}", case.name);
        }
        let bytes: Vec<&[u8]> = case.body.chunks(1).collect();
        assert_eq!(events(&bytes), whole, "{} byte by byte", case.name);
    }
}

/// Cut anywhere, a stream is either not measured or says no other calls than it has.
#[test]
fn a_stream_that_is_cut_off_never_passes_for_another() {
    for case in all_cases().filter(|case| case.name == "pair-calls.sse") {
        let whole = case.read().unwrap();
        for end in 0..case.body.len() {
            let cut = &case.body[..end];
            if let Ok(reply) = read(case.wire, StreamMode::Stream, cut, &ReplyLimits::default()) {
                assert_eq!(reply.calls, whole.calls, "{} cut at {end}", case.wire);
                assert_eq!(reply.finish, whole.finish, "{} cut at {end}", case.wire);
            }
        }
    }
}
