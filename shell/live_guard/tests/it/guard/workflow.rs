use serde_json::json;
use toolwarden_guard::ReasonCode;
use toolwarden_live_guard::Call;
use toolwarden_model::StateName;

use super::{GuardFixture, call, fixture, groups};

static ANALYSIS: StateName = StateName::from_static("analysis");
static RESULTS: StateName = StateName::from_static("results");
static NO_STATE: StateName = StateName::from_static("");
static MADE_UP: StateName = StateName::from_static("made up");

const WORKFLOW: &str = "
tools:
  query: {group: [knowledge], state: analysis, available_in_states: [undefined]}
  analyse: {group: [compute], state: results, available_in_states: [analysis]}
  reset: {group: [admin], state: undefined, available_in_states: [analysis, results]}
  vanish: {group: [knowledge], state: nowhere, available_in_states: [analysis]}
principals:
  p: {groups: [knowledge, compute, admin]}
  q: {groups: [knowledge]}
";

fn in_session<'c>(tool: &'c str, session: &'c str) -> Call<'c> {
    Call {
        session: Some(session),
        groups: groups(&["knowledge", "compute", "admin"]),
        ..call(tool, "p", json!({}))
    }
}

fn state(bench: &GuardFixture, session: &str) -> String {
    bench.guard.session("p", session).unwrap().state.to_string()
}

fn step(bench: &GuardFixture, tool: &str, session: &str) {
    let open = bench.guard.decide(&in_session(tool, session)).unwrap();
    open.report_success_unchecked();
}

#[test]
fn a_session_moves_on_success_only() {
    let bench = fixture(WORKFLOW);
    let open = bench.guard.decide(&in_session("query", "s")).unwrap();
    open.report_failure(&"no answer");
    assert!(
        bench.guard.session("p", "s").is_none(),
        "nothing has happened yet"
    );
    drop(bench.guard.decide(&in_session("query", "s")).unwrap());
    assert!(bench.guard.session("p", "s").is_none());
    assert_eq!(
        bench
            .guard
            .decide(&in_session("analyse", "s"))
            .unwrap_err()
            .code,
        ReasonCode::FilteredByState
    );

    step(&bench, "query", "s");
    assert_eq!(state(&bench, "s"), "analysis");
    assert_eq!(
        bench
            .guard
            .decide(&in_session("query", "s"))
            .unwrap_err()
            .code,
        ReasonCode::FilteredByState,
        "filtered again at once"
    );
    step(&bench, "analyse", "s");
    step(&bench, "reset", "s");
    assert_eq!(state(&bench, "s"), "undefined");
    step(&bench, "query", "s");
    assert_eq!(
        bench.kinds(),
        [
            "decision allowed",
            "outcome failed",
            "decision allowed",
            "outcome abandoned",
            "decision filtered_by_state",
            "decision allowed",
            "outcome succeeded",
            "transition taken",
            "decision filtered_by_state",
            "decision allowed",
            "outcome succeeded",
            "transition taken",
            "decision allowed",
            "outcome succeeded",
            "transition taken",
            "decision allowed",
            "outcome succeeded",
            "transition taken",
        ]
    );
}

#[test]
fn sessions_and_principals_are_apart() {
    let bench = fixture(WORKFLOW);
    step(&bench, "query", "s");
    assert!(bench.guard.session("p", "t").is_none());
    assert!(
        bench.guard.session("q", "s").is_none(),
        "a session belongs to one principal"
    );
    let stolen = Call {
        principal: "q",
        groups: groups(&["knowledge"]),
        ..in_session("vanish", "s")
    };
    assert_eq!(
        bench.guard.decide(&stolen).unwrap_err().code,
        ReasonCode::FilteredByState
    );
}

#[test]
fn calls_in_flight_cannot_move_a_session_from_where_it_no_longer_is() {
    let bench = fixture(WORKFLOW);
    step(&bench, "query", "s");
    let slow = bench.guard.decide(&in_session("reset", "s")).unwrap();
    step(&bench, "analyse", "s");
    slow.report_success_unchecked();
    assert_eq!(state(&bench, "s"), "results");
    assert_eq!(bench.kinds().last().unwrap(), "transition elsewhere");
    assert!(
        bench
            .guard
            .metrics()
            .text()
            .contains("agent_invalid_state_transition_total{reason=\"elsewhere\"} 1")
    );
}

#[test]
fn a_client_cannot_say_where_it_is() {
    let bench = fixture(WORKFLOW);
    let claim = |state: &'static StateName, session: &'static str, tool: &'static str| Call {
        state: Some(state),
        ..in_session(tool, session)
    };
    let denied = bench
        .guard
        .decide(&claim(&ANALYSIS, "s", "analyse"))
        .unwrap_err();
    assert_eq!(
        denied.code,
        ReasonCode::FilteredByState,
        "it starts where every session starts"
    );
    step(&bench, "query", "s");
    let denied = bench
        .guard
        .decide(&claim(&RESULTS, "s", "query"))
        .unwrap_err();
    assert_eq!(denied.code, ReasonCode::FilteredByState);
    assert_eq!(state(&bench, "s"), "analysis");
    let metrics = bench.guard.metrics().text();
    assert!(
        metrics.contains("agent_privilege_escalation_attempts_total{reason=\"client_state\"} 2")
    );
    assert_eq!(
        bench
            .kinds()
            .iter()
            .filter(|it| *it == "escalation client_state")
            .count(),
        2
    );

    let lenient = super::fixture(&format!(
        "{WORKFLOW}sessions: {{initial_states: [undefined, analysis]}}"
    ));
    step(&lenient, "query", "other");
    let open = lenient
        .guard
        .decide(&claim(&ANALYSIS, "s", "analyse"))
        .unwrap();
    open.report_success_unchecked();
    assert_eq!(state(&lenient, "s"), "results");
    let again = lenient
        .guard
        .decide(&claim(&ANALYSIS, "s", "analyse"))
        .unwrap_err();
    assert_eq!(again.code, ReasonCode::FilteredByState, "only at the start");
}

#[test]
fn a_session_that_is_not_used_is_forgotten() {
    let bench = fixture(&format!("{WORKFLOW}sessions: {{idle: 1h}}"));
    step(&bench, "query", "s");
    bench.at(3600.0);
    assert_eq!(state(&bench, "s"), "analysis");
    bench.at(7200.1);
    assert!(bench.guard.session("p", "s").is_none());
    step(&bench, "query", "s");
}

#[test]
fn without_a_session_the_principal_has_one_of_its_own() {
    let bench = fixture(WORKFLOW);
    let mine = |tool| Call {
        groups: groups(&["knowledge", "compute"]),
        ..call(tool, "p", json!({}))
    };
    bench
        .guard
        .decide(&mine("query"))
        .unwrap()
        .report_success_unchecked();
    assert!(bench.guard.decide(&mine("analyse")).is_ok());
}

#[test]
fn the_request_log_has_the_fields_of_the_document() {
    let bench = fixture(WORKFLOW);
    let open = Call {
        groups: groups(&["knowledge", "nowhere/else", "compute"]),
        ..in_session("", "req-123")
    };
    let refused = bench.guard.open_session(&open).unwrap_err();
    assert_eq!(refused.code, ReasonCode::GroupsNotGranted);
    let open = Call {
        groups: groups(&["knowledge", "compute"]),
        ..open
    };
    let seen = bench.guard.open_session(&open).unwrap();
    assert_eq!(
        seen.available.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["query"]
    );
    let plain = Call {
        groups: None,
        ..in_session("query", "req-123")
    };
    bench.at(1.2);
    bench
        .guard
        .decide(&plain)
        .unwrap()
        .report_success_unchecked();
    let log = bench.guard.close_session("p", "req-123").unwrap();
    assert_eq!(
        log.document(),
        json!({
            "request_id": "req-123",
            "requested_groups": ["knowledge", "compute"],
            "initial_state": "undefined",
            "state_transitions": [{
                "tool": "query", "from": "undefined", "to": "analysis",
                "timestamp": "2026-01-05T08:00:01.200Z",
            }],
            "available_tools": ["analyse", "vanish"],
            "filtered_by_group": ["reset"],
            "filtered_by_state": ["query"],
            "execution_time": "1.2s",
        })
    );
    assert!(bench.guard.session("p", "req-123").is_none());
    assert_eq!(
        bench.kinds(),
        [
            "escalation groups_not_granted",
            "session opened",
            "decision allowed",
            "outcome succeeded",
            "transition taken",
            "session closed",
        ]
    );
}

#[test]
fn every_metric_of_the_document_is_counted() {
    let bench = fixture(WORKFLOW);
    let open = Call {
        groups: groups(&["knowledge", "compute"]),
        ..in_session("", "s")
    };
    bench.guard.open_session(&open).unwrap();
    bench.at(2.0);
    step(&bench, "query", "s");
    step(&bench, "vanish", "s");
    let greedy = Call {
        groups: groups(&["admin", "made-up"]),
        ..call("reset", "q", json!({}))
    };
    assert!(bench.guard.decide(&greedy).is_err());
    assert!(bench.guard.decide(&in_session("query", "s")).is_err());
    let text = bench.guard.metrics().text();
    for line in [
        "agent_tool_group_requests_total{group=\"knowledge\"} 1",
        "agent_tool_group_availability{group=\"knowledge\"} 1",
        "agent_tool_group_availability{group=\"compute\"} 0",
        "agent_filtered_tools_count_count 1",
        "agent_state_transitions_total{tool=\"query\",from=\"undefined\",to=\"analysis\"} 1",
        "agent_workflow_duration_seconds_sum{state=\"undefined\"} 2.0",
        "agent_state_availability{state=\"undefined\"} 1",
        "agent_group_access_denied_total{group=\"admin\"} 1",
        "agent_group_access_denied_total{group=\"(unknown)\"} 1",
        "agent_invalid_state_transition_total{reason=\"dead_end\"} 1",
        "agent_invalid_state_transition_total{reason=\"not_available\"} 1",
        "agent_privilege_escalation_attempts_total{reason=\"groups\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn groups_can_depend_on_time_load_and_request() {
    let bench = fixture(
        "
zone: Europe/Berlin
tools: {night: {group: batch}, pay: {group: office}, mine: {group: team}}
groups:
  batch: {when: 'load < 0.5'}
  office: {when: 'time.clock >= \"09:00\" && time.clock < \"17:00\" && time.weekday in [\"mon\", \"tue\"]'}
  team: {when: 'request.team == \"finance\"'}
principals: {'*': {groups: ['*']}}
",
    );
    let everything = |tool: &'static str| Call {
        groups: groups(&["*"]),
        ..call(tool, "p", json!({}))
    };
    let code = |call: &Call<'_>| bench.guard.intercept(call).code;
    // Monday, nine o'clock in Berlin.
    assert_eq!(code(&everything("pay")), ReasonCode::Allowed);
    bench.at(8.0 * 3600.0);
    assert_eq!(code(&everything("pay")), ReasonCode::GroupOff);
    assert_eq!(
        code(&everything("night")),
        ReasonCode::GroupOff,
        "no load is known"
    );
    bench.guard.report_load(0.2);
    assert_eq!(code(&everything("night")), ReasonCode::Allowed);
    assert_eq!(code(&everything("mine")), ReasonCode::GroupOff);
    let mut ours = everything("mine");
    ours.attributes.insert("team".to_owned(), json!("finance"));
    assert_eq!(code(&ours), ReasonCode::Allowed);
}

#[test]
fn the_groups_of_a_session_hold_for_its_calls() {
    let bench = fixture(
        "tools: {pay: {group: money}, note: {}}\nprincipals: {p: {groups: [money, default]}}",
    );
    let open = Call {
        groups: groups(&["money"]),
        ..call("", "p", json!({}))
    };
    bench.guard.open_session(&open).unwrap();
    assert!(bench.decide("pay", "p", json!({})).allowed);
    assert_eq!(
        bench.decide("note", "p", json!({})).code,
        ReasonCode::FilteredByGroup
    );
}

#[test]
fn what_is_explained_is_what_is_decided() {
    let bench = fixture(&format!(
        "{WORKFLOW}sessions: {{initial_states: [analysis], idle: 60s}}"
    ));
    let refused = |call: &Call<'_>| {
        let steps = bench.guard.explain(call).into_iter();
        steps
            .filter_map(|step| step.outcome?.err())
            .next()
            .map(|it| it.code)
    };
    let calls = [
        in_session("query", "a"),
        in_session("analyse", "a"),
        Call {
            state: Some(&RESULTS),
            ..in_session("reset", "a")
        },
        Call {
            state: Some(&ANALYSIS),
            ..in_session("analyse", "b")
        },
        Call {
            state: Some(&NO_STATE),
            ..in_session("query", "c")
        },
        Call {
            groups: groups(&["nobody's"]),
            ..in_session("query", "d")
        },
        in_session("nothing", "e"),
    ];
    for call in &calls {
        let told = refused(call);
        assert_eq!(
            told,
            bench.guard.decide(call).err().map(|it| it.code),
            "{call:?}"
        );
    }
    step(&bench, "query", "s");
    bench.at(50.0);
    refused(&in_session("analyse", "s"));
    bench.at(70.0);
    assert!(
        bench.guard.session("p", "s").is_none(),
        "explaining keeps no session alive"
    );
}

#[test]
fn a_claimed_start_opens_a_session_only_with_an_admitted_call() {
    let bench = fixture(&format!("{WORKFLOW}sessions: {{initial_states: ['*']}}"));
    let claim = |tool: &'static str, session: &'static str| Call {
        state: Some(&MADE_UP),
        ..in_session(tool, session)
    };
    assert!(bench.guard.decide(&claim("nothing", "s")).is_err());
    assert!(bench.guard.session("p", "s").is_none());
    let start = Call {
        state: Some(&ANALYSIS),
        ..in_session("analyse", "s")
    };
    bench
        .guard
        .decide(&start)
        .unwrap()
        .report_success_unchecked();
    assert_eq!(state(&bench, "s"), "results");
    assert!(
        !bench.guard.metrics().text().contains("made up"),
        "callers cannot invent labels"
    );
}

#[test]
fn a_session_can_be_taken_up_where_it_was_left() {
    let bench = fixture(WORKFLOW);
    let groups = ["compute"].into_iter().collect();
    bench
        .guard
        .restore_session("p", "s", groups, &StateName::new("analysis"))
        .unwrap();
    let call = Call {
        groups: None,
        ..in_session("analyse", "s")
    };
    bench
        .guard
        .decide(&call)
        .unwrap()
        .report_success_unchecked();
    assert_eq!(state(&bench, "s"), "results");
    assert_eq!(bench.kinds().first().unwrap(), "session restored");
}

#[test]
fn narrowed_and_unknown_requests_are_counted_and_recorded() {
    let bench = fixture(&format!("{WORKFLOW}mode: narrow"));
    let greedy = Call {
        groups: groups(&["knowledge", "admin", "made-up"]),
        ..call("query", "q", json!({}))
    };
    assert!(
        bench.guard.intercept(&greedy).allowed,
        "what is granted is given"
    );
    let text = bench.guard.metrics().text();
    for line in [
        "agent_group_access_denied_total{group=\"admin\"} 1",
        "agent_privilege_escalation_attempts_total{reason=\"groups\"} 1",
        "toolwarden_unknown_group_requests_total 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(
        !text.contains("access_denied_total{group=\"knowledge\"}"),
        "{text}"
    );
    assert_eq!(
        bench.kinds(),
        [
            "escalation unknown_group",
            "escalation groups_left_away",
            "decision allowed"
        ]
    );
    let body = |at: usize| {
        let mut body: serde_json::Value =
            serde_json::from_str(&bench.log.all()[at].content().body).unwrap();
        body["groups"].take()
    };
    assert_eq!(
        (body(0), body(1)),
        (json!(["made-up"]), json!(["admin", "made-up"]))
    );
    bench.guard.available(&greedy).unwrap();
    assert_eq!(
        bench.kinds()[3..],
        ["escalation unknown_group", "escalation groups_left_away"],
        "so are those of a listing"
    );
}

#[test]
fn a_transition_into_a_dead_end_is_recorded_as_one() {
    let bench = fixture("tools: {t: {state: end, available_in_states: [undefined]}}");
    let open = bench.guard.decide(&call("t", "p", json!({}))).unwrap();
    open.report_success_unchecked();
    assert_eq!(
        bench.kinds(),
        [
            "decision allowed",
            "outcome succeeded",
            "transition dead_end"
        ]
    );
    let text = bench.guard.metrics().text();
    let line = "agent_invalid_state_transition_total{reason=\"dead_end\"} 1";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_strict_policy_refuses_groups_without_tools() {
    let bench = fixture(&format!("{WORKFLOW}strict_groups: true"));
    let call = Call {
        groups: groups(&["knowledge/none"]),
        ..call("query", "p", json!({}))
    };
    assert_eq!(bench.guard.intercept(&call).code, ReasonCode::UnknownGroup);
    let endless = "knowledge/".repeat(100_000);
    let call = Call {
        groups: groups(&[&endless]),
        ..call
    };
    assert_eq!(
        bench.guard.intercept(&call).code,
        ReasonCode::GroupsNotGranted
    );
}

#[test]
fn listings_are_made_once_and_anew_when_the_policy_changes() {
    let bench = fixture("tools: {t: {}, u: {required_permissions: [a]}}");
    let asked = call("", "p", json!({}));
    let first = bench.guard.available(&asked).unwrap();
    assert!(std::sync::Arc::ptr_eq(
        &first,
        &bench.guard.available(&asked).unwrap()
    ));
    assert_eq!(first.available.len(), 1);
    bench.guard.grant_permission("p", "a").unwrap();
    assert_eq!(bench.guard.available(&asked).unwrap().available.len(), 2);
}
