use std::collections::{BTreeMap, BTreeSet};

use toolwarden_testkit::{corpus_definitions, read_vectors};

use super::{json, line, lines};
use crate::text::{Detector, Weight, new_findings, scan};

/// Published tools are honest: what they set off measures the false alarms.
#[test]
fn published_tools_are_nearly_silent() {
    let Some(samples) = corpus_definitions() else {
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

/// The tools of published servers that are quarantined when they are first seen. Each was read; the
/// judgement is in docs/watch.md, and so are the numbers.
#[test]
fn published_tools_that_are_withheld_at_first_sight() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let samples: Vec<_> = samples.iter().filter(|it| it.label == "mcp").collect();
    let (mut tools, mut withheld) = (BTreeSet::new(), 0);
    let mut all = BTreeSet::new();
    for sample in &samples {
        let definition = json(&sample.text);
        let mut findings = scan(&definition);
        findings.retain(|it| it.weight > Weight::Low && it.detector != Detector::ConfusableName);
        // The file is named after the package and its version.
        let package = sample.origin.rsplit_once('@').map(|(package, _)| package);
        let tool = (package.map(str::to_owned), definition["name"].to_string());
        if !findings.is_empty() {
            withheld += 1;
            tools.insert(tool.clone());
        }
        all.insert(tool);
    }
    let documented = include_str!("../../../../../docs/watch.md");
    let numbers = format!(
        "{} of {} tools ({withheld} of {} definitions in all releases)",
        tools.len(),
        all.len(),
        samples.len()
    );
    assert!(documented.contains(&numbers), "{numbers} {tools:#?}");
}

/// What the text alone says about each of the mutations; the rest is for the schema.
#[test]
fn mutations() {
    let Some(vectors) = read_vectors("mutations.json") else {
        return;
    };
    let base = scan(&vectors["base"]);
    assert_eq!(lines(&vectors["base"]), Vec::<String>::new());
    let mut found = Vec::new();
    for case in vectors["cases"].as_array().expect("cases") {
        let findings = scan(&case["definition"]);
        let heaviest = new_findings(&base, &findings)
            .into_iter()
            .map(|f| f.weight)
            .max();
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
