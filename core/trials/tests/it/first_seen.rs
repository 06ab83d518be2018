//! A caller-breaking fault that was never seen before never passes without a report.

use serde_json::{Value, json};
use toolwarden_model::Verdict;
use toolwarden_model::reply::{Leak, LeakPlace};
use toolwarden_trials::{
    CallExpectation, MeasuredReply, ObservedCall, Snapshot, TrialRule, TrialSuite, build_snapshot,
};

use super::{
    call, calling, case, change_lines, compared, origin, reply, snapshot_of, trial, weather,
};

fn called(suite: &TrialSuite, tool: &str, arguments: &Value) -> ObservedCall {
    let sent = json!(arguments.to_string());
    call(suite, tool, json!("call_12345678"), sent)
}

fn good(suite: &TrialSuite) -> MeasuredReply {
    calling(suite, json!({"location": "x"}))
}

fn and_calling(suite: &TrialSuite, tool: &str, arguments: &Value) -> MeasuredReply {
    let mut reply = good(suite);
    reply.calls.push(called(suite, tool, arguments));
    reply
}

fn leaking(suite: &TrialSuite, family: &'static str, sentinel: &str) -> MeasuredReply {
    let mut reply = good(suite);
    reply.leaks = vec![Leak {
        family,
        place: LeakPlace::Text,
        sentinel: sentinel.to_owned(),
    }];
    reply
}

fn broken(suite: &TrialSuite) -> MeasuredReply {
    let mut reply = good(suite);
    let note = ("malformed-tool-calls", "/tool_calls/1", "no object");
    let (rule, pointer, message) = note;
    reply.notes = vec![(rule.to_owned(), pointer.to_owned(), message.to_owned())];
    reply
}

/// One fault of the old side does not excuse another of the new side.
#[test]
fn each_thing_that_is_wrong_is_compared_by_itself() {
    let suite = weather();
    let invalid = |arguments: Value| calling(&suite, arguments);
    for (old, new, row) in [
        (
            invalid(json!({"location": "x", "unit": "kelvin"})),
            invalid(json!({"unit": "celsius"})),
            "breaking get_weather missing_required: 0 of 3 → 3 of 3",
        ),
        (
            invalid(json!({"location": "x", "unit": "kelvin"})),
            invalid(json!({"location": "x", "unit": 3})),
            "breaking get_weather wrong_type/unit: 0 of 3 → 3 of 3",
        ),
        (
            invalid(json!({"location": "x", "lang": "en"})),
            invalid(json!({"location": "x", "force": true})),
            "breaking get_weather extra_key/force: 0 of 3 → 3 of 3",
        ),
        (
            and_calling(&suite, "foo", &json!({})),
            and_calling(&suite, "rm_rf", &json!({})),
            "breaking rm_rf undeclared_tool: 0 of 3 → 3 of 3",
        ),
        (
            leaking(&suite, "think", "<think>"),
            leaking(&suite, "qwen", "<tool_call>"),
            "breaking - leak/replies/leaks/qwen/text: 0 of 3 → 3 of 3",
        ),
    ] {
        let [old, new] = [old, new].map(|it| snapshot_of(&suite, "p", vec![it; 3]));
        let found = compared(&old, &new);
        let lines = change_lines(&found);
        assert!(lines.iter().any(|it| it == row), "{row}: {lines:#?}");
        assert_eq!(found.verdict, Verdict::Drift, "{row}");
        assert_eq!(compared(&old, &old).verdict, Verdict::Pass, "{row}");
    }
}

/// A side that never called a tool never called it wrongly.
#[test]
fn a_tool_that_is_called_wrongly_from_the_first_call_fails() {
    let suite = weather();
    let forecast = |sent: Value| {
        let mut reply = good(&suite);
        let call = call(&suite, "get_forecast", json!("call_12345678"), sent);
        reply.calls.push(call);
        reply
    };
    let old = snapshot_of(&suite, "p", vec![good(&suite); 3]);
    for (sent, row) in [
        (
            json!(r#"{"location": "x"}"#),
            "breaking get_forecast missing_required: 0 of 3 → 3 of 3",
        ),
        (
            json!(r#"{"location": "x", "days": 3, "lang": "en"}"#),
            "breaking get_forecast extra_key/lang: 0 of 3 → 3 of 3",
        ),
        (
            json!("{"),
            "breaking get_forecast unreadable_arguments: 0 of 3 → 3 of 3",
        ),
        (
            json!({"location": "x", "days": 3}),
            "breaking get_forecast arguments_encoding: — → object",
        ),
    ] {
        let new = snapshot_of(&suite, "p", vec![forecast(sent); 3]);
        let found = compared(&old, &new);
        let lines = change_lines(&found);
        assert!(lines.iter().any(|it| it == row), "{row}: {lines:#?}");
        assert_eq!(found.verdict, Verdict::Drift, "{row}");
    }
    let right = json!(r#"{"location": "x", "days": 3}"#);
    let new = snapshot_of(&suite, "p", vec![forecast(right); 3]);
    assert_eq!(compared(&old, &new).verdict, Verdict::Pass);
}

/// Sixty cases of so many trials, of which the first may answer otherwise.
fn sixty(trials: u32, first: Option<&MeasuredReply>) -> Snapshot {
    let mut suite = weather();
    let names: Vec<String> = (0..60).map(|it| format!("c{it:02}")).collect();
    suite.cases = names
        .iter()
        .map(|it| case(it, CallExpectation::Call))
        .collect();
    suite.cases[0].forbid = vec!["get_forecast".to_owned()];
    let good = good(&suite);
    let trials = names.iter().enumerate().flat_map(|(at, name)| {
        let reply = first.filter(|_| at == 0).unwrap_or(&good).clone();
        (0..trials).map(move |it| trial(name, it, reply.clone()))
    });
    build_snapshot(origin("p"), &suite, &trials.collect::<Vec<_>>())
}

#[test]
fn one_case_of_sixty_is_reported_and_inconclusive() {
    let suite = weather();
    let right = json!({"location": "x", "days": 3});
    for (reply, row) in [
        (
            and_calling(&suite, "get_forecast", &right),
            "warning get_forecast forbidden_call: 0 of 3 → 3 of 3",
        ),
        (
            and_calling(&suite, "rm_rf", &right),
            "warning rm_rf undeclared_tool: 0 of 180 → 3 of 180",
        ),
        (
            leaking(&suite, "qwen", "<tool_call>"),
            "warning - leak/replies/leaks/qwen/text: 0 of 180 → 3 of 180",
        ),
        (
            broken(&suite),
            "warning - broken_call/replies/notes/malformed-tool-calls: 0 of 180 → 3 of 180",
        ),
        (
            calling(&suite, json!({"location": 3})),
            "warning get_weather wrong_type/location: 0 of 180 → 3 of 180",
        ),
    ] {
        let found = compared(&sixty(3, None), &sixty(3, Some(&reply)));
        let lines = change_lines(&found);
        assert!(lines.iter().any(|it| it == row), "{row}: {lines:#?}");
        let change = found
            .changes
            .iter()
            .find(|it| it.evidence.rule != TrialRule::ParallelArity);
        let note = &change.unwrap().message;
        assert!(
            note.contains("never before, now in the case `c00`"),
            "{note}"
        );
        assert_eq!(found.verdict, Verdict::NotMeasured, "{row}");
    }
    let found = compared(&sixty(2, None), &sixty(2, Some(&reply(Vec::new()))));
    let row = "warning - expectation/cases/c00: 2 of 2 → 0 of 2".to_owned();
    assert!(
        change_lines(&found).contains(&row),
        "{:#?}",
        change_lines(&found)
    );
}

/// With many trials of the case itself, a single occurrence is within the allowed drop.
#[test]
fn what_is_rare_among_many_trials_passes_with_a_word() {
    let suite = weather();
    let run = |bad: usize| {
        let mut replies = vec![good(&suite); 80 - bad];
        replies.extend(vec![and_calling(&suite, "rm_rf", &json!({})); bad]);
        snapshot_of(&suite, "p", replies)
    };
    let found = compared(&run(0), &run(1));
    assert_eq!(found.verdict, Verdict::Pass);
    assert_eq!(
        change_lines(&found),
        ["warning rm_rf undeclared_tool: 0 of 80 → 1 of 80"]
    );
}

#[test]
fn what_is_sent_as_a_call_and_is_none_breaks() {
    let suite = weather();
    let old = snapshot_of(&suite, "p", vec![good(&suite)]);
    let new = snapshot_of(&suite, "p", vec![broken(&suite)]);
    let found = compared(&old, &new);
    assert_eq!(
        change_lines(&found),
        ["breaking - broken_call/replies/notes/malformed-tool-calls: 0 of 1 → 1 of 1"]
    );
    assert_eq!(found.verdict, Verdict::Drift);
    assert_eq!(compared(&new, &new).verdict, Verdict::Pass);
    assert_eq!(compared(&new, &old).verdict, Verdict::Pass);
}

#[test]
fn a_snapshot_without_its_tools_is_not_equal_to_any() {
    let suite = weather();
    let whole = snapshot_of(&suite, "p", vec![good(&suite); 3]);
    let mut empty = whole.clone();
    empty.tools.clear();
    let mut lacking = whole.clone();
    lacking.tools.remove("get_forecast");
    for (old, new) in [(&whole, &empty), (&empty, &empty), (&empty, &whole)] {
        assert_eq!(compared(old, new).verdict, Verdict::NotMeasured);
    }
    let found = compared(&whole, &lacking);
    assert_eq!(found.verdict, Verdict::NotMeasured);
    assert_eq!(
        change_lines(&found),
        ["warning - tools/tools: 2 of 2 tool(s) → 1 of 2 tool(s)"]
    );
    assert_eq!(compared(&lacking, &whole).verdict, Verdict::NotMeasured);
}
