//! One approval permits one call, and only the call that was approved.

use std::sync::Barrier;

use serde_json::{Value, json};
use toolwarden_guard::ReasonCode;
use toolwarden_live_guard::{Call, OpenCall};
use toolwarden_model::StateName;

use super::{GuardFixture, call, fixture};

const PAYMENTS: &str = "
tools:
  propose: {state: proposed, available_in_states: [undefined, paid]}
  approve: {state: approved, available_in_states: [proposed], binds: [invoice, /to/iban]}
  renew: {state: approved, available_in_states: [approved], uses_state: false, binds: [invoice, /to/iban]}
  pay: {state: paid, available_in_states: [approved]}
  tip: {available_in_states: [approved]}
  look: {available_in_states: [approved], uses_state: false}
  search: {}
states:
  approved: {single_use: true}
rate: {limit: 100000}
";

fn arguments() -> Value {
    json!({"invoice": "INV-1", "to": {"iban": "DE02"}, "amount": 5})
}

fn paying(tool: &str, arguments: Value) -> Call<'_> {
    Call {
        session: Some("s"),
        ..call(tool, "p", arguments)
    }
}

fn decide(bench: &GuardFixture, tool: &str, arguments: Value) -> Result<OpenCall, ReasonCode> {
    let decided = bench.guard.decide(&paying(tool, arguments));
    decided.map_err(|denial| denial.code)
}

fn step(bench: &GuardFixture, tool: &str) {
    decide(bench, tool, arguments())
        .unwrap()
        .report_success_unchecked();
}

fn approved() -> GuardFixture {
    let bench = fixture(PAYMENTS);
    step(&bench, "propose");
    step(&bench, "approve");
    bench
}

fn state(bench: &GuardFixture) -> String {
    bench.guard.session("p", "s").unwrap().state.to_string()
}

#[test]
fn of_calls_at_the_same_time_one_is_permitted() {
    const THREADS: usize = 16;
    for round in 0..50 {
        let bench = approved();
        let start = Barrier::new(THREADS);
        let tool = if round % 2 == 0 { "pay" } else { "tip" };
        let permitted: Vec<Result<OpenCall, ReasonCode>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        decide(&bench, tool, arguments())
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let codes = permitted.iter().filter_map(|it| it.as_ref().err());
        let codes: Vec<ReasonCode> = codes.copied().collect();
        assert_eq!(codes, [ReasonCode::StateUsed; THREADS - 1], "round {round}");
        let allowed = bench.kinds();
        let allowed = allowed.iter().filter(|it| *it == "decision allowed");
        assert_eq!(allowed.count(), 3, "two steps before it");
    }
}

#[test]
fn a_state_is_used_by_a_call_that_was_made_and_not_by_one_that_was_not() {
    let bench = approved();
    // Not sent: available again.
    decide(&bench, "pay", arguments())
        .unwrap()
        .report_not_sent(&"the server is down");
    // Denied for its arguments: never used.
    let other = json!({"invoice": "INV-2", "to": {"iban": "DE02"}});
    assert_eq!(
        decide(&bench, "pay", other).unwrap_err(),
        ReasonCode::ApprovalMismatch
    );
    let open = decide(&bench, "pay", arguments()).unwrap();
    assert_eq!(
        decide(&bench, "tip", arguments()).unwrap_err(),
        ReasonCode::StateUsed
    );
    // Failed, and it is unknown how far the call got: used.
    open.report_failure(&"time-out");
    assert_eq!(
        decide(&bench, "pay", arguments()).unwrap_err(),
        ReasonCode::StateUsed
    );
    let denial = bench.guard.decide(&paying("pay", arguments())).unwrap_err();
    assert_eq!(
        denial.reason,
        "state 'approved' allows one call, and a call was permitted in it before; tool 'pay' needs the \
         state to be entered again"
    );
    // Tools that do not use the state still work.
    for tool in ["look", "search"] {
        decide(&bench, tool, json!({}))
            .unwrap()
            .report_success_unchecked();
    }
    // Another approval in this state enters it again, for other arguments.
    let other = json!({"invoice": "INV-9", "to": {"iban": "DE07"}});
    decide(&bench, "renew", other.clone())
        .unwrap()
        .report_success_unchecked();
    assert!(bench.kinds().contains(&"transition renewed".to_owned()));
    assert_eq!(
        decide(&bench, "pay", arguments()).unwrap_err(),
        ReasonCode::ApprovalMismatch
    );
    decide(&bench, "pay", other)
        .unwrap()
        .report_success_unchecked();
    assert_eq!(state(&bench), "paid");
}

#[test]
fn a_caller_who_leaves_before_the_decision_is_recorded_uses_nothing() {
    let bench = approved();
    drop(bench.guard.decide_async(&paying("pay", arguments())));
    let open = decide(&bench, "pay", arguments()).unwrap();
    open.report_success_unchecked();
    assert_eq!(state(&bench), "paid");
}

#[test]
fn keys_that_pass_for_bound_ones_are_refused() {
    let bench = approved();
    for key in ["Invoice", "INVOICE"] {
        let mut sent = arguments();
        sent[key] = json!("INV-2");
        assert_eq!(
            decide(&bench, "pay", sent).unwrap_err(),
            ReasonCode::KeyCase
        );
    }
    let mut sent = arguments();
    sent["to"]["IBAN"] = json!("DE99");
    assert_eq!(
        decide(&bench, "pay", sent).unwrap_err(),
        ReasonCode::KeyCase
    );
    let mut sent = arguments();
    sent["note"] = json!("other keys are fine");
    assert!(decide(&bench, "pay", sent).is_ok());
}

#[test]
fn a_dropped_call_and_one_decided_elsewhere_use_the_state() {
    let bench = approved();
    drop(decide(&bench, "tip", arguments()).unwrap());
    assert_eq!(
        decide(&bench, "tip", arguments()).unwrap_err(),
        ReasonCode::StateUsed
    );
    let bench = approved();
    assert!(bench.guard.intercept(&paying("pay", arguments())).allowed);
    assert_eq!(
        decide(&bench, "pay", arguments()).unwrap_err(),
        ReasonCode::StateUsed
    );
}

/// A second approval that was permitted before the first one succeeded does not permit a second payment.
#[test]
fn approvals_permitted_before_the_state_was_entered_do_not_renew_it() {
    let bench = fixture(PAYMENTS);
    step(&bench, "propose");
    let one = decide(&bench, "approve", arguments()).unwrap();
    let two = decide(&bench, "approve", arguments()).unwrap();
    one.report_success_unchecked();
    decide(&bench, "tip", arguments())
        .unwrap()
        .report_success_unchecked();
    two.report_success_unchecked();
    assert_eq!(
        decide(&bench, "tip", arguments()).unwrap_err(),
        ReasonCode::StateUsed
    );
}

#[test]
fn calls_carry_what_was_approved() {
    let bench = approved();
    for (given, places) in [
        (json!({"invoice": "INV-1"}), &["/to/iban"][..]),
        (json!({}), &["/invoice", "/to/iban"]),
        (
            json!({"invoice": "inv-1", "to": {"iban": "DE02"}}),
            &["/invoice"],
        ),
        (
            json!({"invoice": ["INV-1"], "to": "DE02"}),
            &["/invoice", "/to/iban"],
        ),
    ] {
        let denial = bench.guard.decide(&paying("pay", given)).unwrap_err();
        assert_eq!(denial.code.as_str(), "approval_mismatch");
        let found: Vec<&str> = denial.faults.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(found, places);
        assert!(!denial.reason.contains("DE02"), "{}", denial.reason);
    }
    // Bound arguments must be present when they are approved.
    let bench = self::fixture(PAYMENTS);
    step(&bench, "propose");
    assert_eq!(
        decide(&bench, "approve", json!({})).unwrap_err(),
        ReasonCode::InvalidInput
    );
}

#[test]
fn equal_numbers_are_equal_however_they_are_written() {
    let bench =
        fixture("tools: {approve: {state: ok, binds: amount}, pay: {available_in_states: ok}}");
    let number =
        |text: &str| serde_json::from_str::<Value>(&format!(r#"{{"amount": {text}}}"#)).unwrap();
    decide(&bench, "approve", number("1e2"))
        .unwrap()
        .report_success_unchecked();
    for (text, fits) in [
        ("100", true),
        ("100.0", true),
        ("100.000000001", false),
        ("\"100\"", false),
    ] {
        let decided = decide(&bench, "pay", number(text));
        assert_eq!(decided.is_ok(), fits, "{text}");
    }
}

#[test]
fn lists_and_explanations_say_that_a_state_is_used() {
    let bench = approved();
    let listed = |bench: &GuardFixture| {
        let found = bench.guard.available(&paying("", json!({}))).unwrap();
        let names = found.available.iter().map(ToString::to_string);
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed(&bench), ["renew", "pay", "tip", "look", "search"]);
    drop(decide(&bench, "tip", arguments()).unwrap());
    assert_eq!(listed(&bench), ["renew", "look", "search"]);
    let why = bench.guard.explain_visibility("p", Some("s"), "pay", None);
    assert!(
        !why.visible && why.reason.contains("allows one call"),
        "{}",
        why.reason
    );
    assert_eq!(
        why.remedy,
        "Enter the state again with a tool that leads to it, or close the session."
    );
}

/// A client that may choose its initial state does not get a used state back by starting there again.
#[test]
fn naming_the_state_does_not_renew_it() {
    let bench = fixture(
        "tools: {pay: {available_in_states: [ready, other]}}\n\
         states: {ready: {single_use: true}}\nsessions: {initial_states: '*'}",
    );
    let pay = |state: &str| {
        let state = StateName::new(state);
        let call = Call {
            state: Some(&state),
            ..paying("pay", json!({}))
        };
        bench.guard.decide(&call)
    };
    drop(pay("ready").unwrap());
    for state in ["ready", "other", "ready"] {
        let denied = pay(state).unwrap_err();
        assert_eq!(denied.code, ReasonCode::StateUsed, "{state}");
    }
}
