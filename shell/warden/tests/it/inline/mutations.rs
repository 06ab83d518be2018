//! The 23 realistic mutations, seen live.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_drift::Class;
use toolwarden_warden::Selection;
use toolwarden_warden::inline::Approving;
use toolwarden_warden::settings::{OnDrift, WatchSettings};

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
    let Some(vectors) = toolwarden_testkit::vectors("mutations.json") else {
        return;
    };
    let vectors: Vectors = serde_json::from_value(vectors).unwrap();
    assert_eq!(vectors.cases.len(), 23);
    let mut strict = WatchSettings::default();
    for class in Class::ALL {
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
            assert!(change.is_news, "{}: {change:?}", case.name);
            let is_served = gate.settings.on_drift[&change.class] == OnDrift::Serve;
            assert_eq!(
                checked.treatments[name].is_served(),
                is_served,
                "{}",
                case.name
            );

            gate.settings = Arc::new(strict.clone());
            assert!(
                !gate.check(changed).await.treatments[name].is_served(),
                "{}",
                case.name
            );
            let approving = Approving {
                selection: Selection {
                    ids: vec![change.alert.clone().unwrap()],
                    ..Selection::default()
                },
                by: "ada".to_owned(),
                ..Approving::default()
            };
            gate.watch.approve(approving).await.unwrap();
            assert!(
                gate.check(changed).await.treatments[name].is_served(),
                "{}",
                case.name
            );
        }
    });
}
