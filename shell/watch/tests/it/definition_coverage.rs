//! Every change in a definition is detected, in any format.

use serde_json::Value;
use toolwarden_canon::{FormatChoice, TextItem, canonicalize_item};
use toolwarden_drift::{Options, compare};
use toolwarden_model::Format;
use toolwarden_model::json::{Pointer, parse, to_canonical_string};
use toolwarden_testkit::corpus_definitions;
use toolwarden_watch::Observation;

fn read(text: &str, source: FormatChoice) -> Option<(Observation, Format)> {
    let item = TextItem {
        pointer: Pointer::root(),
        text,
    };
    let mut tools = canonicalize_item(&item, source).ok()?.tools;
    if tools.len() != 1 {
        return None;
    }
    let tool = tools.pop()?.tool;
    let format = tool.format;
    Some((Observation::from_tool(tool), format))
}

/// Every leaf of a value, with its changed form.
fn changed(value: &Value, at: &Pointer, out: &mut Vec<(Pointer, Value)>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                changed(item, &at.index(index), out);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                changed(member, &at.child(key), out);
            }
        }
        Value::String(text) => out.push((at.clone(), Value::from(format!("{text} and more")))),
        Value::Bool(flag) => out.push((at.clone(), Value::from(!flag))),
        Value::Number(_) => out.push((at.clone(), Value::from(424_242))),
        _ => out.push((at.clone(), Value::from("something else"))),
    }
}

#[test]
fn every_leaf_of_every_format_is_watched() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut seen = std::collections::BTreeMap::<Format, usize>::new();
    let mut tried = 0;
    for (index, sample) in samples.iter().enumerate() {
        let original = parse(&sample.text).unwrap().value;
        let Some((before, format)) = read(&sample.text, FormatChoice::Detect) else {
            continue;
        };
        // All of the rare formats, some of the frequent ones.
        let count = seen.entry(format).or_default();
        *count += 1;
        if *count > 60 && index % 97 != 0 {
            continue;
        }
        let mut changes = Vec::new();
        changed(&original, &Pointer::root(), &mut changes);
        let step = 1 + changes.len() / 20;
        for (at, value) in changes.into_iter().step_by(step) {
            let mut definition = original.clone();
            let Some(place) = definition.pointer_mut(at.as_str()) else {
                continue;
            };
            *place = value;
            let text = definition.to_string();
            let Some((after, _)) = read(&text, FormatChoice::Format(format)) else {
                continue;
            };
            assert_ne!(
                to_canonical_string(&definition),
                to_canonical_string(&original)
            );
            tried += 1;
            let drift = compare(
                &before.observed(),
                &after.observed(),
                &Options::default(),
                &[],
            );
            let renamed = before.name != after.name;
            assert!(
                renamed || !drift.changes.is_empty(),
                "{format} {at}: the change is not seen\n{text}"
            );
        }
    }
    assert!(tried > 5_000, "{tried}");
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn a_stored_definition_reads_back() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut compared = 0;
    for sample in samples.iter().step_by(5) {
        let text = &sample.text;
        let Some((seen, _)) = read(text, FormatChoice::Detect) else {
            continue;
        };
        let again = Observation::parse(&seen.name, seen.kept().format, seen.text()).unwrap();
        assert_eq!(again.kept(), seen.kept());
        let drift = compare(
            &seen.observed(),
            &again.observed(),
            &Options::default(),
            &[],
        );
        assert_eq!(drift.changes, [], "{text}");
        compared += 1;
    }
    assert!(compared > 1000, "{compared}");
}
