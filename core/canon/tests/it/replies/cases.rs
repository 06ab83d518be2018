use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolwarden_canon::reply::{RULES, arguments, find_leaks};
use toolwarden_model::reply::{
    ArgumentsClass, CallIdClass, FinishClass, NotMeasured, Reply, TrialFailure, WireApi,
};

use super::{all_cases, case, cases, rules};
use crate::samples::{data, golden};

/// A reply as a document, whole.
fn document(outcome: Result<Reply, NotMeasured>) -> Value {
    let reply = match outcome {
        Ok(reply) => reply,
        Err(error) => return json!({ "not_measured": error.to_string() }),
    };
    let calls = reply.calls.iter().map(|call| {
        let sorted = arguments(call.arguments.as_ref(), None);
        json!({
            "name": call.name,
            "id": call.id,
            "id_class": CallIdClass::of(call.id.as_ref()).as_str(),
            "arguments": call.arguments,
            "arguments_class": sorted.class.as_str(),
            "at": call.pointer.as_str(),
        })
    });
    let notes = reply.notes.iter();
    let notes = notes.map(|it| format!("{} {}: {}", it.rule, it.pointer, it.message));
    let leaks = find_leaks(&reply).into_iter();
    let leaks = leaks.map(|it| format!("{} {} {}", it.place.as_str(), it.family, it.sentinel));
    let usage = [
        reply.usage.input,
        reply.usage.output,
        reply.usage.reasoning,
        reply.usage.cached,
    ];
    json!({
        "model": reply.model,
        "calls": calls.collect::<Vec<_>>(),
        "text": reply.text,
        "reasoning": reply.reasoning,
        "finish": reply.finish,
        "finish_class": reply.finish_class.as_str(),
        "usage": usage,
        "notes": notes.collect::<Vec<_>>(),
        "leaks": leaks.collect::<Vec<_>>(),
    })
}

#[test]
fn every_answer_is_read_as_expected() {
    for wire in WireApi::ALL {
        let found: Map<String, Value> = cases(wire)
            .into_iter()
            .map(|case| (case.name.clone(), document(case.read())))
            .collect();
        let path = data("replies").join(format!("expected/{wire}.json"));
        golden(&path, &Value::Object(found));
    }
}

#[test]
fn every_rule_fires_in_a_case_and_is_listed_once() {
    let fired: BTreeSet<&str> = all_cases()
        .filter_map(|case| case.read().ok())
        .flat_map(|reply| rules(&reply.notes))
        .collect();
    let listed: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(distinct.len(), listed.len());
    assert_eq!(fired, distinct);
    assert!(RULES.iter().all(|rule| rule.description.ends_with('.')));
}

#[test]
fn every_quirk_is_named() {
    for (file, rule) in [
        ("q01-leak-dsml.json", "leaked-call"),
        ("q01-leak-minimax.sse", "leaked-call"),
        ("q01-leak-minimax-m3.json", "leaked-call"),
        ("q01-leak-kimi.json", "leaked-call"),
        ("q01-leak-qwen.json", "leaked-call"),
        ("q01-leak-fence.json", "leaked-call"),
        ("q01-leak-bare.json", "leaked-call"),
        ("q01-leak-reasoning.json", "markup-in-reasoning"),
        ("q02-markup-in-arguments.json", "markup-in-arguments"),
        ("q05-stop-with-calls.json", "calls-without-finish"),
        ("q06-sensitive.json", "unusual-finish"),
        ("q06-network-error.json", "unusual-finish"),
        ("q06-empty-finish.json", "unusual-finish"),
        ("q06-number-finish.json", "unusual-finish"),
        ("q06-missing-finish.json", "missing-finish"),
        ("q08-missing-index.sse", "missing-index"),
        ("q08-no-index-no-id.sse", "missing-index"),
        ("q08-index-zero.sse", "reused-index"),
        ("q08-two-names-one-index.sse", "reused-index"),
        ("q08-empty-id.sse", "empty-id"),
        ("q08-interleaved.sse", "empty-id"),
        ("q08-repeated-name.sse", "repeated-name"),
        ("q08-arguments-before-name.sse", "arguments-before-name"),
        ("q08-object-arguments.sse", "merged-objects"),
        ("q08-never-named.sse", "malformed-tool-calls"),
        ("q12-usage-on-last.sse", "usage-on-content-chunk"),
        ("q12-usage-in-choice.sse", "usage-on-content-chunk"),
        ("q15-reasoning-only.json", "reasoning-only"),
        ("q15-think-only.sse", "reasoning-only"),
        ("q16-cut-by-length.sse", "cut-by-length"),
    ] {
        let reply = case(WireApi::OpenaiChat, file).read().unwrap();
        assert!(
            rules(&reply.notes).contains(&rule),
            "{file}: {:?}",
            reply.notes
        );
    }
}

#[test]
fn quirks_in_arguments_or_ids_are_classified() {
    let chat = |file: &str| case(WireApi::OpenaiChat, file).read().unwrap();
    let schema = json!({"type": "object", "properties": {"include": {"$ref": "#/$defs/include"}},
        "$defs": {"include": {"type": "object"}}});
    let doubled = chat("q03-double-encoded.json");
    let sorted = arguments(doubled.calls[0].arguments.as_ref(), Some(&schema));
    assert_eq!(sorted.class, ArgumentsClass::DoubleEncoded);
    let at: Vec<&str> = sorted.double_encoded.iter().map(|it| it.as_str()).collect();
    assert_eq!(at, ["/include"]);

    let forms = chat("q04-arguments.json");
    let classes = forms
        .calls
        .iter()
        .map(|it| arguments(it.arguments.as_ref(), None).class);
    let classes: BTreeSet<ArgumentsClass> = classes.collect();
    assert_eq!(classes, BTreeSet::from(ArgumentsClass::ALL));

    let ids = chat("q07-ids.json");
    let classes: Vec<CallIdClass> = ids
        .calls
        .iter()
        .map(|it| CallIdClass::of(it.id.as_ref()))
        .collect();
    assert_eq!(
        classes,
        [
            CallIdClass::KimiFunctions,
            CallIdClass::KimiBare,
            CallIdClass::Alnum9,
            CallIdClass::Absent,
            CallIdClass::Empty,
            CallIdClass::Other,
            CallIdClass::Absent,
        ]
    );
}

#[test]
fn what_says_nothing_about_the_model_is_not_measured() {
    for (wire, file, failure) in [
        (
            WireApi::OpenaiChat,
            "q17-envelope.json",
            TrialFailure::WrongEnvelope,
        ),
        (
            WireApi::OpenaiChat,
            "error-body.json",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiChat,
            "minimax-base-resp.json",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiChat,
            "error-mid-stream.sse",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiChat,
            "error-event-bare.sse",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiChat,
            "error-dashscope.sse",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiChat,
            "choices-null.json",
            TrialFailure::Empty,
        ),
        (
            WireApi::OpenaiChat,
            "choices-empty.json",
            TrialFailure::Empty,
        ),
        (
            WireApi::OpenaiChat,
            "choices-missing.json",
            TrialFailure::WrongEnvelope,
        ),
        (WireApi::OpenaiChat, "html.html", TrialFailure::NotJson),
        (WireApi::OpenaiChat, "not-json.json", TrialFailure::NotJson),
        (WireApi::OpenaiChat, "empty.json", TrialFailure::Empty),
        (
            WireApi::OpenaiChat,
            "truncated.json",
            TrialFailure::Truncated,
        ),
        (
            WireApi::OpenaiChat,
            "truncated-character.json",
            TrialFailure::Truncated,
        ),
        (
            WireApi::OpenaiChat,
            "truncated.sse",
            TrialFailure::Truncated,
        ),
        (
            WireApi::OpenaiChat,
            "cut-event.sse",
            TrialFailure::Truncated,
        ),
        (WireApi::OpenaiChat, "too-deep.json", TrialFailure::TooLarge),
        (
            WireApi::OpenaiChat,
            "comments-only.sse",
            TrialFailure::Truncated,
        ),
        (
            WireApi::Anthropic,
            "error-body.json",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::Anthropic,
            "error-mid-stream.sse",
            TrialFailure::ErrorBody,
        ),
        (WireApi::Anthropic, "truncated.sse", TrialFailure::Truncated),
        (
            WireApi::OpenaiResponses,
            "failed.sse",
            TrialFailure::ErrorBody,
        ),
        (
            WireApi::OpenaiResponses,
            "truncated.sse",
            TrialFailure::Truncated,
        ),
        (
            WireApi::Gemini,
            "candidates-empty.json",
            TrialFailure::Empty,
        ),
        (WireApi::Gemini, "blocked.json", TrialFailure::Empty),
        (WireApi::Gemini, "error-array.json", TrialFailure::ErrorBody),
        (WireApi::Gemini, "truncated.sse", TrialFailure::Truncated),
    ] {
        let error = case(wire, file).read().unwrap_err();
        assert_eq!(error.failure, failure, "{wire}/{file}: {error}");
    }
}

#[test]
fn finishes_mean_the_same_on_every_wire() {
    use toolwarden_canon::reply::classify_finish;
    for (wire, words) in [
        (
            WireApi::OpenaiChat,
            ["tool_calls", "stop", "length", "content_filter", "error"],
        ),
        (
            WireApi::Anthropic,
            ["tool_use", "end_turn", "max_tokens", "refusal", "?"],
        ),
        (
            WireApi::Gemini,
            [
                "?",
                "STOP",
                "MAX_TOKENS",
                "SAFETY",
                "MALFORMED_FUNCTION_CALL",
            ],
        ),
        (
            WireApi::OpenaiResponses,
            [
                "?",
                "completed",
                "max_output_tokens",
                "content_filter",
                "cancelled",
            ],
        ),
    ] {
        let classes = [
            FinishClass::Calls,
            FinishClass::Done,
            FinishClass::Length,
            FinishClass::Filtered,
            FinishClass::Failed,
        ];
        for (word, class) in words.into_iter().zip(classes) {
            let class = if word == "?" {
                FinishClass::Other
            } else {
                class
            };
            assert_eq!(
                classify_finish(wire, Some(&json!(word))),
                class,
                "{wire} {word}"
            );
        }
        assert_eq!(classify_finish(wire, None), FinishClass::Absent);
        assert_eq!(
            classify_finish(wire, Some(&json!(null))),
            FinishClass::Absent
        );
        assert_eq!(classify_finish(wire, Some(&json!(""))), FinishClass::Absent);
        assert_eq!(classify_finish(wire, Some(&json!(7))), FinishClass::Other);
    }
}
