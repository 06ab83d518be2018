//! The 23 realistic mutations, observed live.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_drift::ChangeClass;
use toolwarden_settings::{OnDrift, WatchSettings};
use toolwarden_watch::ApprovalSelection;
use toolwarden_watch::inline::ApprovalRequest;

use super::{Gate, run};

#[derive(serde::Deserialize)]
struct Vectors {
    base: Value,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    definition: Value,
}

#[test]
fn every_mutation_raises_an_alert_and_is_withheld_as_the_settings_say() {
    let Some(vectors) = toolwarden_testkit::read_vectors("mutations.json") else {
        return;
    };
    let vectors: Vectors = serde_json::from_value(vectors).unwrap();
    assert_eq!(vectors.cases.len(), 23);
    let mut strict = WatchSettings::default();
    for class in ChangeClass::ALL {
        strict.on_drift.insert(class, OnDrift::Quarantine);
    }
    run(async {
        for case in &vectors.cases {
            let mut gate = Gate::new();
            let name = vectors.base["name"].as_str().unwrap();
            let changed = std::slice::from_ref(&case.definition);
            gate.check(std::slice::from_ref(&vectors.base)).await;
            let checked = gate.check(changed).await;
            let [change] = checked.changes.as_slice() else {
                panic!("{}: {:?}", case.name, checked.changes);
            };
            assert!(change.is_new, "{}: {change:?}", case.name);
            let is_served = gate.settings.on_drift[&change.class] == OnDrift::Serve;
            assert_eq!(
                checked.tool_actions[name].is_served(),
                is_served,
                "{}",
                case.name
            );

            gate.settings = Arc::new(strict.clone());
            assert!(
                !gate.check(changed).await.tool_actions[name].is_served(),
                "{}",
                case.name
            );
            let approving = ApprovalRequest {
                selection: ApprovalSelection {
                    ids: vec![change.alert.clone().unwrap()],
                    ..ApprovalSelection::default()
                },
                by: "ada".to_owned(),
                ..ApprovalRequest::default()
            };
            gate.watch.approve(approving).await.unwrap();
            assert!(
                gate.check(changed).await.tool_actions[name].is_served(),
                "{}",
                case.name
            );
        }
    });
}
