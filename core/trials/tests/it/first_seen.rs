//! A caller-breaking fault that was never seen before never passes without a report.

use serde_json::{Value, json};
use toolwarden_model::Verdict;
use toolwarden_model::reply::{Leak, LeakPlace};
use toolwarden_trials::{
    CallExpectation, MeasuredReply, ObservedCall, Options, Snapshot, TrialRule, TrialSuite,
    build_snapshot, compare,
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

/// The same fault in one case of sixty and in every trial of the only case.
#[test]
fn one_case_of_sixty_with_a_new_fault_breaks() {
    let suite = weather();
    let right = json!({"location": "x", "days": 3});
    for (reply, row) in [
        (
            and_calling(&suite, "get_forecast", &right),
            "breaking get_forecast forbidden_call: 0 of 3 → 3 of 3",
        ),
        (
            and_calling(&suite, "rm_rf", &right),
            "breaking rm_rf undeclared_tool: 0 of 180 → 3 of 180",
        ),
        (
            leaking(&suite, "qwen", "<tool_call>"),
            "breaking - leak/replies/leaks/qwen/text: 0 of 180 → 3 of 180",
        ),
        (
            broken(&suite),
            "breaking - broken_call/replies/notes/malformed-tool-calls: 0 of 180 → 3 of 180",
        ),
        (
            calling(&suite, json!({"location": 3})),
            "breaking get_weather wrong_type/location: 0 of 180 → 3 of 180",
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
            note.contains("never before, now in the case `c00`")
                || note.contains("never before, always now"),
            "{note}"
        );
        assert_eq!(found.verdict, Verdict::Drift, "{row}");
    }
    let found = compared(&sixty(2, None), &sixty(2, Some(&reply(Vec::new()))));
    let row = "warning - expectation/cases/c00: 2 of 2 → 0 of 2".to_owned();
    assert!(
        change_lines(&found).contains(&row),
        "{:#?}",
        change_lines(&found)
    );
}

/// No number of trials and no allowed drop makes a new fault harmless.
#[test]
fn one_new_fault_breaks_at_any_count_and_with_any_allowed_drop() {
    let suite = weather();
    let run = |bad: usize| {
        let mut replies = vec![good(&suite); 80 - bad];
        replies.extend(vec![and_calling(&suite, "rm_rf", &json!({})); bad]);
        snapshot_of(&suite, "p", replies)
    };
    for allowed_drop in [0.0, 0.1, 1.0] {
        let options = Options {
            allowed_drop,
            ..Options::default()
        };
        let found = compare(&run(0), &run(1), &options).unwrap();
        assert_eq!(found.verdict, Verdict::Drift);
        assert_eq!(
            change_lines(&found),
            ["breaking rm_rf undeclared_tool: 0 of 80 → 1 of 80"]
        );
    }
}

/// Seven forbidden calls in two hundred trials are proven, and an allowed drop of ten points does not
/// cover them.
#[test]
fn the_allowed_drop_does_not_cover_an_established_increase() {
    let suite = weather();
    let run = |bad: usize| {
        let mut replies = vec![good(&suite); 200 - bad];
        replies.extend(vec![and_calling(&suite, "rm_rf", &json!({})); bad]);
        snapshot_of(&suite, "p", replies)
    };
    for (before, now, severity, verdict) in [
        (0, 7, "breaking", Verdict::Drift),
        (1, 17, "breaking", Verdict::Drift),
        (7, 8, "warning", Verdict::Pass),
        (7, 7, "warning", Verdict::Pass),
        (7, 1, "warning", Verdict::Pass),
    ] {
        let found = compared(&run(before), &run(now));
        let line = format!("{severity} rm_rf undeclared_tool: {before} of 200 → {now} of 200");
        // The second call has the id of the first, which is reported too if it is frequent.
        let mut lines = change_lines(&found);
        lines.retain(|it| !it.contains("unique_ids"));
        assert_eq!(lines, [line]);
        assert_eq!(found.verdict, verdict, "{before} → {now}");
    }
    assert_eq!(compared(&run(7), &run(0)).changes, []);
}

/// More faults than are tested together: the rarest of them still breaks.
#[test]
fn a_new_fault_among_hundreds_of_old_ones_breaks() {
    let suite = weather();
    let names: Vec<String> = (0..100).map(|at| format!("odd_{at:03}")).collect();
    let calls = |name: &String| and_calling(&suite, name, &json!({}));
    let old: Vec<MeasuredReply> = names.iter().chain(&names).map(calls).collect();
    let mut new = old.clone();
    new.push(and_calling(&suite, "zz_rm_rf", &json!({})));
    let found = compared(
        &snapshot_of(&suite, "p", old),
        &snapshot_of(&suite, "p", new),
    );
    let lines = change_lines(&found);
    let row = "breaking zz_rm_rf undeclared_tool: 0 of 200 → 1 of 201";
    assert!(lines.iter().any(|it| it == row), "{lines:#?}");
    assert_eq!(found.verdict, Verdict::Drift);
}

/// A model that calls nothing was not seen to call tools as another does.
#[test]
fn a_silent_model_is_never_equivalent() {
    let suite = weather();
    let run = |replies: Vec<MeasuredReply>| snapshot_of(&suite, "p", replies);
    let silent = |count: usize| run(vec![reply(Vec::new()); count]);
    for (old, new, verdict) in [
        (run(vec![good(&suite); 1]), silent(1), Verdict::NotMeasured),
        (run(vec![good(&suite); 3]), silent(3), Verdict::NotMeasured),
        (run(vec![good(&suite); 20]), silent(20), Verdict::Drift),
        (silent(20), silent(20), Verdict::NotMeasured),
    ] {
        let found = compared(&old, &new);
        assert_eq!(found.verdict, verdict, "{:#?}", change_lines(&found));
        assert_eq!(found.equivalent_tools, Vec::<String>::new());
        assert_eq!(found.more_trials, None);
    }
    let found = compared(&run(vec![good(&suite); 3]), &silent(3));
    let lines = change_lines(&found);
    for row in [
        "warning get_weather emitted: 3 of 3 → 0 of 3",
        "warning - emitted/tools: 3 calls → 0 calls",
    ] {
        assert!(lines.iter().any(|it| it == row), "{lines:#?}");
    }
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
