use super::change::{ContractChange, Severity, sort};
use super::fault::{Wrong, extra_keys, faults, leaks, undeclared};
use super::rate::Rate;
use super::snapshot::Snapshot;

/// What is wrong with a snapshot by itself: what the schemas say against calls, tools that were not
/// offered, markup that came through, and cases whose expectation was not met.
///
/// Two models that err alike compare as equal, and this tells that they err.
#[must_use]
pub fn conformance(snapshot: &Snapshot) -> Vec<ContractChange> {
    let mut found = leaks(snapshot);
    found.extend(undeclared(snapshot));
    for (name, tool) in &snapshot.tools {
        found.extend(faults(name, tool));
        found.extend(extra_keys(name, tool));
    }
    for (name, case) in &snapshot.cases {
        let expected = [
            (
                "expectation",
                case.met,
                "the model did not do what the case expects",
            ),
            (
                "exact_arguments",
                case.exact,
                "the arguments are not those the case asks for",
            ),
        ];
        for (field, rate, what) in expected {
            if rate.hits < rate.of {
                found.push(Wrong {
                    tool: None,
                    field,
                    pointer: format!("/cases/{name}"),
                    what: what.to_owned(),
                    rate: rate.complement(),
                });
            }
        }
    }
    let mut changes: Vec<ContractChange> = found
        .into_iter()
        .map(|wrong| ContractChange {
            tool: wrong.tool,
            field: wrong.field.to_owned(),
            pointer: wrong.pointer,
            severity: Severity::Breaking,
            before: Rate::new(0, wrong.rate.of).to_string(),
            after: wrong.rate.to_string(),
            note: wrong.what,
            rates: Some((Rate::new(0, wrong.rate.of), wrong.rate)),
        })
        .collect();
    sort(&mut changes);
    changes
}
