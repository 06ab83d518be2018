use toolwarden_model::Severity;

use super::change::{ChangeParts, TrialChange, sort};
use super::defects::{
    Defect, broken_call_defects, extra_key_defects, forbidden_call_defects, leak_defects,
    rejection_defect, schema_defects, undeclared_tool_defects,
};
use super::rate::Rate;
use super::snapshot::Snapshot;
use super::trial_rule::TrialRule;

/// The faults of a snapshot on its own: schema violations, tools that were not offered or that the case
/// forbids, broken and leaked calls, replies on which client libraries fail, refused tools, and cases whose expectation was not met.
///
/// Two models with the same faults compare as equal; this function reports the faults.
#[must_use]
pub fn conformance(snapshot: &Snapshot) -> Vec<TrialChange> {
    let mut found = leak_defects(snapshot);
    found.extend(rejection_defect(snapshot));
    found.extend(undeclared_tool_defects(snapshot));
    found.extend(forbidden_call_defects(snapshot));
    found.extend(broken_call_defects(snapshot));
    for (name, tool) in &snapshot.tools {
        found.extend(schema_defects(name, tool));
        found.extend(extra_key_defects(name, tool));
    }
    for (name, case) in &snapshot.cases {
        let expected = [
            (
                TrialRule::Expectation,
                case.met,
                "the model did not do what the case expects",
            ),
            (
                TrialRule::ExactArguments,
                case.exact,
                "the arguments are not those the case asks for",
            ),
        ];
        for (rule, rate, what) in expected {
            if rate.hits < rate.of {
                found.push(Defect {
                    tool: None,
                    rule,
                    pointer: format!("/cases/{name}"),
                    what: what.to_owned(),
                    rate: rate.complement(),
                });
            }
        }
    }
    let mut changes: Vec<TrialChange> = found
        .into_iter()
        .map(|wrong| ChangeParts {
            tool: wrong.tool,
            rule: wrong.rule,
            pointer: wrong.pointer,
            severity: Severity::Breaking,
            before: Rate::new(0, wrong.rate.of).to_string(),
            after: wrong.rate.to_string(),
            message: wrong.what,
            rates: Some((Rate::new(0, wrong.rate.of), wrong.rate)),
        })
        .map(TrialChange::from)
        .collect();
    changes.extend(other_models(snapshot));
    sort(&mut changes);
    changes
}

/// The models that answered, if they are not the one that was requested or a dated version of it.
fn other_models(snapshot: &Snapshot) -> Option<TrialChange> {
    let requested = snapshot.model_id.rsplit('/').next().unwrap_or_default();
    let is_other = |model: &&String| {
        let answered = model.rsplit('/').next().unwrap_or_default();
        let version = answered.strip_prefix(requested);
        !version.is_some_and(|it| it.is_empty() || it.starts_with(['-', '@', ':', '.']))
    };
    let others: Vec<&String> = snapshot.models.keys().filter(is_other).collect();
    let counts = others.iter().filter_map(|it| snapshot.models.get(*it));
    let count = counts.fold(0, |sum: u64, it| sum.saturating_add(*it));
    let first = others.first()?;
    let rate = Rate::new(count, snapshot.trials.measured);
    Some(TrialChange::from(ChangeParts {
        tool: None,
        rule: TrialRule::Models,
        pointer: "/models".to_owned(),
        severity: Severity::Warning,
        before: snapshot.model_id.clone(),
        after: (*first).clone(),
        message: format!("another model than the requested one answered in {rate} trials"),
        rates: None,
    }))
}
