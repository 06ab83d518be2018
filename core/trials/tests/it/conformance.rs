use serde_json::json;
use toolwarden_model::Severity;
use toolwarden_model::reply::{Leak, LeakPlace, TrialFailure};
use toolwarden_trials::{CallExpectation, FaultLimits, conformance, contract_faults};

use super::{call, calling, case, reply, snapshot_of, weather};

#[test]
fn a_model_is_checked_against_its_own_suite() {
    let mut suite = weather();
    suite.cases = vec![case("ask", CallExpectation::Call)];
    let good = calling(&suite, json!({"location": "x"}));
    assert_eq!(
        conformance(&snapshot_of(&suite, "p", vec![good.clone()])),
        []
    );
    let mut leaking = reply(vec![call(&suite, "rm_rf", json!(1), json!("{}"))]);
    leaking.leaks = vec![Leak {
        family: "qwen",
        place: LeakPlace::Arguments,
        sentinel: "<tool_call>".to_owned(),
    }];
    let replies = vec![
        good,
        calling(&suite, json!({"location": 1})),
        calling(&suite, json!({"location": "x", "lang": "en"})),
        leaking,
        reply(Vec::new()),
    ];
    let found = conformance(&snapshot_of(&suite, "p", replies));
    let told: Vec<String> = found
        .iter()
        .map(|it| {
            assert_eq!(it.severity(), Severity::Breaking);
            let tool = it.tool.as_deref().unwrap_or("-");
            format!(
                "{tool} {}{}: {}: {}",
                it.evidence.rule,
                it.pointer.as_str(),
                it.after_text(),
                it.message
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "get_weather extra_key/lang: 1 of 3: the schema does not name this argument",
            "get_weather wrong_type/location: 1 of 3: `type`: 1 is not of type \"string\"",
            "rm_rf undeclared_tool: 1 of 5: the model called a tool that was not offered",
            "- expectation/cases/ask: 1 of 5: the model did not do what the case expects",
            "- leak/replies/leaks/qwen/arguments: 1 of 5: markup of qwen leaked into the arguments: `<tool_call>`",
        ]
    );
}

/// A contract accepts no fault that a caller acts on, however rare.
#[test]
fn a_contract_breaks_at_the_first_fault_unless_it_allows_a_share() {
    let mut suite = weather();
    suite.cases[0].forbid = vec!["get_forecast".to_owned()];
    let good = calling(&suite, json!({"location": "x"}));
    let forbidden = |name: &str| {
        let sent = json!(r#"{"location": "x", "days": 3}"#);
        let mut reply = good.clone();
        reply
            .calls
            .push(call(&suite, name, json!("call_12345678"), sent));
        reply
    };
    let mut replies = vec![good.clone(); 16];
    replies.extend([
        calling(&suite, json!({})),
        calling(&suite, json!({"location": 1})),
        forbidden("get_forecast"),
        forbidden("delete_everything"),
    ]);
    let snapshot = snapshot_of(&suite, "p", replies);
    let lines = |limits: &FaultLimits| -> Vec<String> {
        let faults = contract_faults(&snapshot, limits);
        let lines = faults.iter().map(|it| {
            let tool = it.tool.as_deref().unwrap_or("-");
            let severity = it.severity().as_str();
            format!(
                "{severity} {tool} {}: {}",
                it.evidence.rule,
                it.after_text()
            )
        });
        lines.collect()
    };
    assert_eq!(
        lines(&FaultLimits::default()),
        [
            "breaking delete_everything undeclared_tool: 1 of 20",
            "breaking get_forecast forbidden_call: 1 of 20",
            "breaking get_weather missing_required: 1 of 20",
            "breaking get_weather wrong_type: 1 of 20",
            "warning - expectation: 1 of 20",
        ]
    );
    let mut limits = FaultLimits::default();
    limits.allow("missing_required", 0.05);
    limits.allow("wrong_type", 0.04);
    let lines = lines(&limits);
    assert!(lines.contains(&"info get_weather missing_required: 1 of 20".to_owned()));
    assert!(lines.contains(&"breaking get_weather wrong_type: 1 of 20".to_owned()));
    assert_eq!(FaultLimits::words().count(), 10);
}

/// A client that fails on one reply of twenty breaks a contract; another model that answers warns.
#[test]
fn clients_that_fail_break_a_contract_and_another_model_warns() {
    let suite = weather();
    let good = calling(&suite, json!({"location": "x"}));
    let mut replies = vec![good.clone(); 18];
    let mut lost = good.clone();
    let note = ["client-openai-python", "/choices/0", "openai-python loses"];
    let [rule, pointer, message] = note.map(str::to_owned);
    lost.notes = vec![(rule, pointer, message)];
    let mut other = good;
    other.model = Some("another".to_owned());
    replies.extend([lost, other]);
    let snapshot = snapshot_of(&suite, "p", replies);
    let lines = |limits: &FaultLimits| -> Vec<String> {
        let faults = contract_faults(&snapshot, limits);
        let lines = faults.iter().map(|it| {
            let severity = it.severity().as_str();
            format!("{severity} {}: {}", it.evidence.rule, it.message)
        });
        lines.collect()
    };
    let warning = "warning models: another model than the requested one answered in 1 of 20 trials";
    assert_eq!(
        lines(&FaultLimits::default()),
        ["breaking client_break: openai-python loses", warning]
    );
    let mut limits = FaultLimits::default();
    limits.allow("client_break", 0.05);
    assert_eq!(
        lines(&limits),
        [
            "info client_break: openai-python loses (within its `max_rate`)",
            warning
        ]
    );
}

/// One refusal of the tools breaks a contract, though the other requests were answered.
#[test]
fn one_refusal_of_the_tools_breaks_a_contract() {
    let suite = weather();
    let good = calling(&suite, json!({"location": "x"}));
    let mut snapshot = snapshot_of(&suite, "p", vec![good; 19]);
    snapshot.trials.planned += 1;
    let refused = TrialFailure::SchemaRejected.as_str().to_owned();
    snapshot.trials.failures.insert(refused, 1);
    let faults = contract_faults(&snapshot, &FaultLimits::default());
    let lines: Vec<String> = faults
        .iter()
        .map(|it| {
            let severity = it.severity().as_str();
            format!("{severity} {}: {}", it.evidence.rule, it.after_text())
        })
        .collect();
    assert_eq!(lines, ["breaking tools_rejected: 1 of 20"]);
}
