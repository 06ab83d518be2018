use proptest::prelude::*;
use serde_json::{Value, json};
use toolwarden_canon::reply::{ReplyLimits, arguments, classify_refusal, find_leaks, read};
use toolwarden_model::reply::{ArgumentsClass, StreamMode, TrialFailure, WireApi};

use super::all_cases;

/// Puts bytes through every reader.
fn exercise(body: &[u8]) {
    for wire in WireApi::ALL {
        for mode in StreamMode::ALL {
            let Ok(reply) = read(wire, mode, body, &ReplyLimits::default()) else {
                continue;
            };
            assert!(
                find_leaks(&reply)
                    .iter()
                    .all(|leak| !leak.sentinel.is_empty())
            );
            for call in &reply.calls {
                assert!(!call.name.trim().is_empty());
                sort(call.arguments.as_ref(), call.arguments.as_ref());
            }
        }
    }
    let failure = classify_refusal(400, body);
    assert!(matches!(
        failure,
        TrialFailure::Status | TrialFailure::SchemaRejected
    ));
}

/// Sorts arguments and looks whether the class fits what was found.
fn sort(sent: Option<&Value>, schema: Option<&Value>) {
    use ArgumentsClass as Class;
    let sorted = arguments(sent, schema);
    let stands = match sorted.class {
        Class::JsonObjectString | Class::Object | Class::PythonLiteral | Class::DoubleEncoded => {
            Some(true)
        }
        Class::MarkupPolluted => None,
        Class::EmptyString
        | Class::Null
        | Class::Absent
        | Class::JsonNonObject
        | Class::Truncated
        | Class::Invalid => Some(false),
    };
    let found = sorted.value.is_some();
    assert!(stands.is_none_or(|stands| stands == found), "{sent:?}");
}

#[test]
fn every_answer_on_every_wire_with_every_part_replaced_by_anything() {
    let replacements = [
        json!(null),
        json!(true),
        json!(0),
        json!("x"),
        json!([null]),
        json!({"a": 1}),
    ];
    for case in all_cases() {
        exercise(&case.body);
        let Ok(document) = serde_json::from_slice::<Value>(&case.body) else {
            continue;
        };
        for pointer in pointers(&document) {
            for replacement in &replacements {
                let mut changed = document.clone();
                *changed.pointer_mut(&pointer).unwrap() = replacement.clone();
                exercise(changed.to_string().as_bytes());
            }
        }
    }
}

#[test]
fn every_event_with_every_part_replaced_by_anything() {
    let replacements = [
        json!(null),
        json!(7),
        json!("x"),
        json!([null]),
        json!({"a": 1}),
    ];
    for case in
        all_cases().filter(|case| case.name.starts_with("pair-") && case.name.ends_with(".sse"))
    {
        let text = std::str::from_utf8(&case.body).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let data = line.strip_prefix("data: ").unwrap_or_default();
            let Ok(document) = serde_json::from_str::<Value>(data) else {
                continue;
            };
            for pointer in pointers(&document) {
                for replacement in &replacements {
                    let mut changed = document.clone();
                    *changed.pointer_mut(&pointer).unwrap() = replacement.clone();
                    let event = format!("data: {changed}");
                    let mut lines = lines.clone();
                    lines[at] = &event;
                    let body = lines.join("\n") + "\n\n";
                    drop(read(
                        case.wire,
                        StreamMode::Stream,
                        body.as_bytes(),
                        &ReplyLimits::default(),
                    ));
                }
            }
        }
    }
}

fn pointers(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, value)) = pending.pop() {
        match value {
            Value::Object(members) => {
                let members = members.iter();
                pending.extend(members.map(|(key, value)| (format!("{pointer}/{key}"), value)));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                pending.extend(items.map(|(at, value)| (format!("{pointer}/{at}"), value)));
            }
            _ => {}
        }
        found.push(pointer);
    }
    found
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z<>{}\\[\\]'\"\\\\]{0,6}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("choices"),
        Just("message"),
        Just("delta"),
        Just("tool_calls"),
        Just("function"),
        Just("name"),
        Just("arguments"),
        Just("index"),
        Just("id"),
        Just("content"),
        Just("candidates"),
        Just("parts"),
        Just("functionCall"),
        Just("output"),
        Just("type"),
        Just("item"),
        Just("error"),
        Just("finish_reason"),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&bytes);
    }

    #[test]
    fn any_events(chunks in prop::collection::vec(any_json(), 0..5)) {
        let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        exercise(body.as_bytes());
        exercise(format!("{body}data: [DONE]\n\n").as_bytes());
    }

    #[test]
    fn any_document(document in any_json()) {
        exercise(document.to_string().as_bytes());
        sort(Some(&document), Some(&document));
        sort(Some(&Value::from(document.to_string())), Some(&document));
    }

    #[test]
    fn any_text_as_arguments(text in "[{}'\":,a-z0-9\\\\ \\[\\]()<|｜TrueNon-]{0,40}") {
        sort(Some(&Value::from(text.as_str())), None);
    }

    #[test]
    fn any_calls_in_any_pieces(
        calls in prop::collection::vec(("[a-c]", "[a-zé｜<{}\"]{0,12}", prop::collection::vec(0_usize..12, 0..4)), 1..5),
        order in any::<bool>(),
    ) {
        let whole: Vec<Value> = calls.iter().enumerate().map(|(at, (name, arguments, _))| {
            json!({"id": format!("call_{at}"), "type": "function", "function": {"name": name, "arguments": arguments}})
        }).collect();
        let whole = json!({"choices": [{"message": {"tool_calls": whole}, "finish_reason": "tool_calls"}]}).to_string();
        let mut pieces: Vec<(usize, Value)> = Vec::new();
        for (at, (name, arguments, cuts)) in calls.iter().enumerate() {
            pieces.push((0, json!({"index": at, "id": format!("call_{at}"), "type": "function", "function": {"name": name, "arguments": ""}})));
            for (round, piece) in cut(arguments, cuts).into_iter().enumerate() {
                pieces.push((round + 1, json!({"index": at, "function": {"arguments": piece}})));
            }
        }
        // One call after the other, or a piece of each in turn.
        if order {
            pieces.sort_by_key(|(round, _)| *round);
        }
        let mut body: String = pieces.iter().map(|(_, piece)| {
            format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [piece]}}]}))
        }).collect();
        body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
        let read = |mode, body: &str| read(WireApi::OpenaiChat, mode, body.as_bytes(), &ReplyLimits::default()).unwrap();
        prop_assert_eq!(read(StreamMode::Stream, &body), read(StreamMode::Nonstream, &whole));
    }
}

/// A text in pieces, cut after some characters.
fn cut(text: &str, after: &[usize]) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (at, c) in text.chars().enumerate() {
        if after.contains(&at) {
            pieces.push(String::new());
        }
        pieces.last_mut().unwrap().push(c);
    }
    pieces
}
