use std::collections::BTreeMap;

use toolwarden_testkit::{definitions, vectors};

use super::{json, line, lines};
use crate::text::{Weight, fresh, scan};

/// Published tools are honest: what they set off measures the false alarms.
#[test]
fn published_tools_are_nearly_silent() {
    let Some(samples) = definitions() else {
        return;
    };
    let mut counts = BTreeMap::new();
    let mut high = Vec::new();
    let mut noted = 0;
    for sample in &samples {
        let findings = scan(&json(&sample.text));
        noted += usize::from(findings.iter().any(|f| f.weight > Weight::Low));
        for finding in &findings {
            *counts
                .entry((finding.detector, finding.weight))
                .or_insert(0) += 1;
            if finding.weight == Weight::High {
                high.push(format!("{} {}", sample.origin, line(finding)));
            }
        }
    }
    for ((detector, weight), count) in counts {
        println!("{detector} {weight}: {count}");
    }
    assert_eq!(high, Vec::<String>::new());
    assert!(
        noted * 200 <= samples.len(),
        "{noted} of {} definitions",
        samples.len()
    );
}

/// What the text alone says about each of the mutations; the rest is for the schema.
#[test]
fn mutations() {
    let Some(vectors) = vectors("mutations.json") else {
        return;
    };
    let base = scan(&vectors["base"]);
    assert_eq!(lines(&vectors["base"]), Vec::<String>::new());
    let mut found = Vec::new();
    for case in vectors["cases"].as_array().expect("cases") {
        let findings = scan(&case["definition"]);
        let heaviest = fresh(&base, &findings).into_iter().map(|f| f.weight).max();
        if let Some(weight) = heaviest {
            found.push(format!("{weight} {}", case["name"].as_str().expect("name")));
        }
    }
    assert_eq!(
        found,
        [
            "medium tool description changed",
            "medium top-level param description poisoned",
            "medium nested param description poisoned",
            "medium array items description poisoned",
            "low nested param added",
            "medium param title poisoned",
            "medium schema-level description poisoned",
            "low examples poisoned",
            "medium $defs/$comment poisoned",
            "medium readOnlyHint false->true",
            "low annotations.title poisoned",
            "low outputSchema added",
            "medium top-level title added",
            "low _meta added",
        ]
    );
}
