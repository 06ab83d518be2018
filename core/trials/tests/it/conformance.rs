use serde_json::json;
use toolwarden_model::Severity;
use toolwarden_model::reply::{Leak, LeakPlace};
use toolwarden_trials::{CallExpectation, conformance};

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
