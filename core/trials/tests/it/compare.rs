use serde_json::{Value, json};
use toolwarden_model::Fingerprint;
use toolwarden_model::Verdict;
use toolwarden_model::reply::{
    ArgumentsClass, FinishClass, Leak, LeakPlace, NotMeasured, TrialFailure, WireApi,
};
use toolwarden_testkit::read_vectors;
use toolwarden_trials::{
    CallExpectation, Incomparable, MeasuredReply, Metric, Options, Snapshot, TrialSuite,
    build_snapshot, compare,
};

use super::tooldrift::measured;
use super::{
    call, calling, case, change_lines, compared, origin, reply, snapshot_of, trial, weather,
};

/// One reply each: the models of the flagship.
#[test]
fn the_flagship_breaks_with_one_reply_a_side() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let suite = weather();
    let [old, new] = ["deepseek", "qwen"].map(|provider| {
        let body = &vectors[format!("{provider}_fixture")];
        let mut reply = measured(&suite, body);
        if provider == "qwen" {
            reply.finish_class = FinishClass::Done;
        }
        snapshot_of(&suite, provider, vec![reply])
    });
    let found = compared(&old, &new);
    assert_eq!(
        change_lines(&found),
        [
            "breaking get_forecast arguments_encoding: json_object_string → object",
            "breaking get_forecast wrong_type/days: 0 of 1 → 1 of 1",
            "warning get_forecast id_class: openai_call → other",
            "info get_forecast argument/include: 1 of 1 → 0 of 1",
            "info get_forecast argument/unit: 1 of 1 → 0 of 1",
            "info get_forecast argument_type/days: integer → string",
            "breaking get_weather arguments_encoding: json_object_string → object",
            "warning get_weather id_class: openai_call → other",
            "warning - finish_consistency/replies: 1 of 1 → 0 of 1",
            "warning - finish_reason/replies/finish: tool_calls → stop",
        ]
    );
    assert_eq!(found.verdict, Verdict::Drift);
    assert_eq!(found.equivalent_tools, Vec::<String>::new());
    let same = compared(&old, &old);
    assert_eq!(
        (same.verdict, change_lines(&same)),
        (Verdict::Pass, Vec::new())
    );
    assert_eq!(same.equivalent_tools, ["get_forecast", "get_weather"]);
    let alike = compared(&new, &new);
    assert_eq!(
        alike.verdict,
        Verdict::Pass,
        "what both do is not a difference"
    );
    assert_eq!(
        change_lines(&alike),
        ["warning get_forecast wrong_type/days: 1 of 1 → 1 of 1"]
    );
}

/// `n` replies, of which the first `k` are the first reply and the others the second.
fn mixed(
    suite: &TrialSuite,
    (one, k): (&MeasuredReply, usize),
    (other, rest): (&MeasuredReply, usize),
) -> Snapshot {
    let mut replies = vec![one.clone(); k];
    replies.extend(vec![other.clone(); rest]);
    snapshot_of(suite, "p", replies)
}

fn verdict(
    suite: &TrialSuite,
    good: &MeasuredReply,
    bad: &MeasuredReply,
    old: (usize, usize),
    new: (usize, usize),
) -> Verdict {
    let old = mixed(suite, (good, old.0), (bad, old.1));
    let new = mixed(suite, (good, new.0), (bad, new.1));
    compared(&old, &new).verdict
}

/// When a reply that the old side never gave fails.
#[derive(Clone, Copy, PartialEq)]
enum Fails {
    /// At its first occurrence.
    Once,
    /// If it always comes, else by statistics.
    Always,
    /// By statistics.
    ByRate,
}

/// Good and bad replies, and when the bad one fails.
fn kinds(suite: &TrialSuite) -> Vec<(&'static str, MeasuredReply, MeasuredReply, Fails)> {
    let good = || calling(suite, json!({"location": "x"}));
    let sent = |sent: Value| {
        reply(vec![call(
            suite,
            "get_weather",
            json!("call_12345678"),
            sent,
        )])
    };
    let mut leaking = good();
    leaking.leaks = vec![Leak {
        family: "qwen",
        place: LeakPlace::Text,
        sentinel: "<tool_call>".to_owned(),
    }];
    let mut further = good();
    further
        .calls
        .push(call(suite, "rm_rf", json!("call_87654321"), json!("{}")));
    let mut twice = good();
    twice.calls[0].class = ArgumentsClass::DoubleEncoded;
    vec![
        (
            "missing required",
            good(),
            calling(suite, json!({"unit": "celsius"})),
            Fails::Once,
        ),
        (
            "wrong type",
            good(),
            calling(suite, json!({"location": 3})),
            Fails::Once,
        ),
        (
            "extra key",
            good(),
            calling(suite, json!({"location": "x", "lang": "en"})),
            Fails::Always,
        ),
        ("unreadable", good(), sent(json!("{")), Fails::Once),
        (
            "object",
            good(),
            sent(json!({"location": "x"})),
            Fails::Always,
        ),
        ("double encoded", good(), twice, Fails::Once),
        ("leak", good(), leaking, Fails::Once),
        ("undeclared", good(), further, Fails::Once),
        ("silent", good(), reply(Vec::new()), Fails::ByRate),
    ]
}

#[test]
fn rates_decide_by_how_many_trials_there_are() {
    let mut suite = weather();
    suite.cases = vec![case("weather", CallExpectation::Call)];
    for (kind, good, bad, fails) in kinds(&suite) {
        let verdict = |old, new| verdict(&suite, &good, &bad, old, new);
        let at_once = match fails {
            Fails::Once | Fails::Always => Verdict::Drift,
            Fails::ByRate => Verdict::NotMeasured,
        };
        // No count is too small for a fault with zero tolerance, and no allowed drop covers it.
        let unless_once = |by_rate| match fails {
            Fails::Once => Verdict::Drift,
            Fails::Always | Fails::ByRate => by_rate,
        };
        for (old, new, expected, why) in [
            ((1, 0), (0, 1), at_once, "always now"),
            ((2, 0), (0, 2), at_once, "always now"),
            ((3, 0), (2, 1), unless_once(Verdict::NotMeasured), "few"),
            ((10, 0), (9, 1), unless_once(Verdict::NotMeasured), "few"),
            ((10, 0), (6, 4), Verdict::Drift, "Fisher has 0.043"),
            (
                (10, 0),
                (7, 3),
                unless_once(Verdict::NotMeasured),
                "Fisher has 0.105",
            ),
            ((80, 0), (75, 5), Verdict::Drift, "more than chance"),
            (
                (80, 0),
                (79, 1),
                unless_once(Verdict::Pass),
                "within what is allowed",
            ),
            (
                (400, 0),
                (385, 15),
                unless_once(Verdict::Pass),
                "established, and small",
            ),
            ((6, 4), (10, 0), Verdict::Pass, "better"),
            ((5, 5), (5, 5), Verdict::Pass, "the same"),
        ] {
            assert_eq!(verdict(old, new), expected, "{kind}: {why}");
        }
    }
}

#[test]
fn changes_name_the_place_and_the_rates() {
    let suite = weather();
    let expected = [
        "breaking get_weather missing_required: 0 of 10 → 5 of 10",
        "breaking get_weather wrong_type/location: 0 of 10 → 5 of 10",
        "breaking get_weather extra_key/lang: 0 of 10 → 5 of 10",
        "breaking get_weather unreadable_arguments: 0 of 10 → 5 of 10",
        "breaking get_weather arguments_encoding: json_object_string → json_object_string ×5, object ×5",
        "breaking get_weather arguments_encoding: json_object_string → double_encoded ×5, json_object_string ×5",
        "breaking - leak/replies/leaks/qwen/text: 0 of 10 → 5 of 10",
        "breaking rm_rf undeclared_tool: 0 of 10 → 5 of 10",
        "breaking get_weather emitted: 10 of 10 → 5 of 10",
    ];
    for ((kind, good, bad, _), expected) in kinds(&suite).into_iter().zip(expected) {
        let old = mixed(&suite, (&good, 10), (&bad, 0));
        let new = mixed(&suite, (&good, 5), (&bad, 5));
        let lines = change_lines(&compared(&old, &new));
        assert!(lines.iter().any(|it| it == expected), "{kind}: {lines:#?}");
    }
}

#[test]
fn an_optional_argument_is_no_matter_of_red_and_green() {
    let suite = weather();
    let with = calling(&suite, json!({"location": "x", "unit": "celsius"}));
    let without = calling(&suite, json!({"location": "y"}));
    let old = mixed(&suite, (&with, 20), (&without, 0));
    let new = mixed(&suite, (&with, 2), (&without, 18));
    let found = compared(&old, &new);
    assert_eq!(found.verdict, Verdict::Pass);
    assert_eq!(
        change_lines(&found),
        ["info get_weather argument/unit: 20 of 20 → 2 of 20"]
    );
    assert_eq!(found.equivalent_tools, ["get_forecast", "get_weather"]);
}

#[test]
fn three_point_nought_is_three() {
    let suite = weather();
    let forecast = |days: &str| {
        let sent = format!(r#"{{"location": "x", "days": {days}}}"#);
        reply(vec![call(
            &suite,
            "get_forecast",
            json!("call_12345678"),
            json!(sent),
        )])
    };
    let [old, new] = ["3", "3.0"].map(|it| snapshot_of(&suite, "p", vec![forecast(it)]));
    let found = compared(&old, &new);
    assert_eq!(
        (found.verdict, change_lines(&found)),
        (Verdict::Pass, Vec::new())
    );
}

#[test]
fn two_sides_with_nothing_measured_are_not_equal() {
    let suite = weather();
    let mut failed = trial("weather", 0, reply(Vec::new()));
    failed.outcome = Err(NotMeasured {
        failure: TrialFailure::ErrorBody,
        detail: String::new(),
    });
    let nothing = build_snapshot(origin("p"), &suite, &[failed]);
    let something = snapshot_of(&suite, "p", vec![calling(&suite, json!({"location": "x"}))]);
    for (old, new) in [
        (&nothing, &nothing),
        (&nothing, &something),
        (&something, &nothing),
    ] {
        let found = compared(old, new);
        assert_eq!(found.verdict, Verdict::NotMeasured);
        assert_eq!(found.unmeasured_cases, ["weather"]);
        assert_eq!(found.equivalent_tools, Vec::<String>::new());
    }
    assert_eq!(
        compared(&something, &nothing).new_trials.failures["error_body"],
        1
    );
}

#[test]
fn a_case_of_which_nothing_is_known_leaves_it_open() {
    let mut suite = weather();
    suite.cases = vec![
        case("a", CallExpectation::Call),
        case("b", CallExpectation::Call),
    ];
    let good = || calling(&suite, json!({"location": "x"}));
    let both = build_snapshot(
        origin("p"),
        &suite,
        &[trial("a", 0, good()), trial("b", 0, good())],
    );
    let one = build_snapshot(origin("p"), &suite, &[trial("a", 0, good())]);
    assert_eq!(compared(&both, &both).verdict, Verdict::Pass);
    let found = compared(&both, &one);
    assert_eq!(found.verdict, Verdict::NotMeasured);
    assert_eq!(found.unmeasured_cases, ["b"]);
}

/// A case that breaks is not averaged away by those that do not.
#[test]
fn one_case_of_many_can_fail() {
    let mut suite = weather();
    let names: Vec<String> = (0..20).map(|it| format!("case {it}")).collect();
    suite.cases = names
        .iter()
        .map(|it| case(it, CallExpectation::Call))
        .collect();
    let run = |broken: bool| {
        let mut trials = Vec::new();
        for name in &names {
            for at in 0..6 {
                let silent = broken && name == "case 7";
                let measured = if silent {
                    reply(Vec::new())
                } else {
                    calling(&suite, json!({"location": "x"}))
                };
                trials.push(trial(name, at, measured));
            }
        }
        build_snapshot(origin("p"), &suite, &trials)
    };
    let found = compared(&run(false), &run(true));
    assert_eq!(found.verdict, Verdict::Drift);
    let lines = change_lines(&found);
    assert!(
        lines.contains(&"breaking - expectation/cases/case 7: 6 of 6 → 0 of 6".to_owned()),
        "{lines:#?}"
    );
    let case = Metric::CaseExpectation {
        case: "case 7".to_owned(),
    };
    let pooled = found
        .metrics
        .iter()
        .find(|it| it.metric == Metric::Expectation);
    assert!((pooled.unwrap().difference + 0.05).abs() < 1e-9);
    let alone = found.metrics.iter().find(|it| it.metric == case);
    assert!((alone.unwrap().difference + 1.0).abs() < 1e-9);
}

/// A model is asked more often where it answers worse, because it failed elsewhere.
#[test]
fn cases_measured_unevenly_are_no_drift() {
    let mut suite = weather();
    suite.cases = vec![
        case("easy", CallExpectation::Call),
        case("hard", CallExpectation::Call),
    ];
    let run = |easy: u32, hard: u32| {
        let mut trials = Vec::new();
        for at in 0..easy {
            trials.push(trial("easy", at, calling(&suite, json!({"location": "x"}))));
        }
        for at in 0..hard {
            trials.push(trial("hard", at, reply(Vec::new())));
        }
        build_snapshot(origin("p"), &suite, &trials)
    };
    assert_eq!(compared(&run(40, 1), &run(2, 40)).verdict, Verdict::Pass);
}

#[test]
fn other_suites_and_other_tools_are_not_compared() {
    let suite = weather();
    let of = |suite: &TrialSuite| snapshot_of(suite, "p", vec![reply(Vec::new())]);
    let mut renamed = suite.clone();
    renamed.name = "other".to_owned();
    renamed.hash = Fingerprint::of_canonical("other");
    let mut edited = suite.clone();
    edited.hash = Fingerprint::of_canonical("edited");
    let mut called_otherwise = suite.clone();
    called_otherwise.name = "forecast".to_owned();
    let mut redefined = suite.clone();
    redefined.tools.get_mut("get_weather").unwrap().hash = Fingerprint::of_canonical("x");
    for (other, told) in [
        (
            &renamed,
            "the snapshots are of different suites: `weather` and `other`",
        ),
        (
            &called_otherwise,
            "the snapshots are of different suites: `weather` and `forecast`",
        ),
        (
            &edited,
            "the snapshots are of different suites: `weather` and `weather`, which changed in between",
        ),
        (
            &redefined,
            "the definition of `get_weather` is not the same in both snapshots",
        ),
    ] {
        let error: Incomparable =
            compare(&of(&suite), &of(other), &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

/// Two wire APIs send arguments as objects; that is their convention and not a change.
#[test]
fn the_custom_of_a_wire_is_no_encoding_change() {
    let suite = weather();
    let on = |wire, sent: Value| {
        let origin = toolwarden_trials::TrialOrigin {
            wire,
            ..origin("p")
        };
        let reply = reply(vec![call(
            &suite,
            "get_weather",
            json!("call_12345678"),
            sent,
        )]);
        build_snapshot(origin, &suite, &[trial("weather", 0, reply)])
    };
    let object = json!({"location": "x"});
    let text = json!(object.to_string());
    let chat = on(WireApi::OpenaiChat, text.clone());
    let found = compared(&chat, &on(WireApi::Anthropic, object));
    assert_eq!(
        change_lines(&found),
        ["info - wire/wire: openai-chat → anthropic"]
    );
    assert_eq!(found.verdict, Verdict::Pass);
    let broken = compared(&chat, &on(WireApi::Anthropic, text));
    assert_eq!(
        broken.verdict,
        Verdict::Drift,
        "a string where an object is the convention"
    );
    assert_eq!(
        compared(&chat, &on(WireApi::OpenaiResponses, json!("{}"))).verdict,
        Verdict::Drift
    );
}

#[test]
fn arguments_that_became_readable_are_no_harm() {
    let suite = weather();
    let sent = |sent: Value| {
        reply(vec![call(
            &suite,
            "get_weather",
            json!("call_12345678"),
            sent,
        )])
    };
    let broken = snapshot_of(&suite, "p", vec![sent(json!("{'location': 'x'}"))]);
    let whole = snapshot_of(&suite, "p", vec![sent(json!(r#"{"location": "x"}"#))]);
    assert_eq!(compared(&broken, &whole).verdict, Verdict::Pass);
    assert_eq!(compared(&whole, &broken).verdict, Verdict::Drift);
}

#[test]
fn the_same_id_answered_by_another_model_is_reported() {
    let suite = weather();
    let of = |model: &str| {
        let mut reply = calling(&suite, json!({"location": "x"}));
        reply.model = Some(model.to_owned());
        snapshot_of(&suite, "p", vec![reply])
    };
    let found = compared(&of("m-0613"), &of("m-1106"));
    assert_eq!(
        change_lines(&found),
        ["warning - models/models: m-0613 → m-1106"]
    );
    assert_eq!(found.verdict, Verdict::Pass);
}

#[test]
fn a_proof_takes_more_than_no_drop() {
    let suite = weather();
    let good = calling(&suite, json!({"location": "x"}));
    let options = Options {
        pass_criterion: toolwarden_trials::PassCriterion::Proven,
        ..Options::default()
    };
    let verdict = |n: usize| {
        let run = mixed(&suite, (&good, n), (&good, 0));
        compare(&run, &run, &options).unwrap().verdict
    };
    assert_eq!(verdict(3), Verdict::NotMeasured);
    assert_eq!(verdict(20), Verdict::NotMeasured);
    assert_eq!(verdict(40), Verdict::Pass);
}
