use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::annotations::{compare_annotations, is_read_only};
use crate::call_contract::mark_call_contract;
use crate::caution::classify_caution;
use crate::change::{CallEffect, Change, ChangeClass, ChangeId, ChangeKind, DefinitionEvidence};
use crate::change_builder::ChangeBuilder;
use crate::definition_drift::Drift;
use crate::definition_text::PROSE;
use crate::difference::{Difference, differences, is_identical};
use crate::facet::{Facet, ObservedDefinition};
use crate::options::Options;
use crate::routes::{mark_same_route, route_change};
use crate::schema::{self, SchemaDirection, SchemaDrift};
use crate::text::{self, Detector, TextFinding, is_suspicious};
use crate::text_changes;

/// Compares two observations of one tool and replays recorded calls against its arguments.
#[must_use]
pub fn compare(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    options: &Options,
    calls: &[Value],
) -> Drift {
    compare_in_server(old, new, options, calls, &BTreeSet::new())
}

/// Compares two observations of one tool, given the names of the server's other tools. Text that starts
/// to name one of them is a change of trust.
#[must_use]
pub fn compare_in_server(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    options: &Options,
    calls: &[Value],
    tools: &BTreeSet<&str>,
) -> Drift {
    let mut drift = Drift {
        tool: new.name.to_owned(),
        changes: Vec::new(),
        input: None,
        output: None,
        results: None,
    };
    let (before, after) = (old.definition, new.definition);
    let same = is_identical(before, after) || before == after;
    if same && old.layout == new.layout && calls.is_empty() {
        return drift;
    }
    let options = &options.start();
    let maker = ChangeBuilder { tool: new.name };
    let (before, changes) = schema_facet(old, new, Facet::Input, options, calls, &maker);
    drift.input = before;
    drift.changes.extend(changes);
    let (before, changes) = schema_facet(old, new, Facet::Output, options, &[], &maker);
    drift.output = before;
    drift.changes.extend(changes);
    drift.changes.extend(compare_annotations(old, new, &maker));
    drift.changes.extend(other_facets(old, new, &maker));
    let writes = !(is_read_only(old) && is_read_only(new));
    for change in &mut drift.changes {
        if let Some(CallEffect::Default { writes: known, .. }) = &mut change.evidence.effect {
            *known = writes;
        }
    }
    text_changes::classify(&mut drift, (old, new), &maker, tools);
    classify_caution(&mut drift.changes);
    mark_call_contract(&mut drift.changes);
    mark_same_route(&mut drift.changes, old, new);
    attach_findings(&mut drift, old, new, &maker);
    for change in &mut drift.changes {
        // Findings about the text itself matter more than findings about added words, so they come
        // first.
        let rank = |it: &TextFinding| it.detector == Detector::Introduced;
        change.evidence.reasons.sort_by_key(rank);
    }
    drift.changes.sort_by(|a, b| {
        b.class
            .cmp(&a.class)
            .then_with(|| a.pointer.cmp(&b.pointer))
    });
    drift
}

fn schema_facet(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    facet: Facet,
    options: &Options,
    calls: &[Value],
    maker: &ChangeBuilder<'_>,
) -> (Option<SchemaDrift>, Vec<Change>) {
    let place = new.layout.place(facet).or(old.layout.place(facet));
    let place = place.cloned().unwrap_or_default();
    let (before, after) = (old.facet(facet), new.facet(facet));
    if before == after && calls.is_empty() {
        return (None, Vec::new());
    }
    let direction = if facet == Facet::Input {
        SchemaDirection::Input
    } else {
        SchemaDirection::Output
    };
    let anything = Value::Bool(true);
    let (drift, changes) = schema::compare(
        before.unwrap_or(&anything),
        after.unwrap_or(&anything),
        direction,
        options,
        calls,
    );
    if before == after {
        return (Some(drift), Vec::new());
    }
    if facet == Facet::Output && before.is_none() {
        let difference = Difference {
            pointer: place,
            before,
            after,
        };
        let message = "the tool now declares a schema for its results".to_owned();
        let change = maker.change(
            "contract-appeared",
            facet,
            ChangeClass::Structural,
            &difference,
            message,
        );
        return (Some(drift), vec![change]);
    }
    let changes = changes.into_iter().map(|mut change| {
        // A missing schema accepts everything, but the definition contains no value to show.
        if change.pointer == Pointer::root() {
            change.before = before.cloned();
            change.after = after.cloned();
            change.kind = match (before, after) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Removed,
                _ => change.kind,
            };
        }
        let pointer = place.join(&change.pointer);
        Change {
            id: ChangeId::of(
                maker.tool,
                change.rule,
                &pointer,
                change.before.as_ref(),
                change.after.as_ref(),
            ),
            tool: Some(maker.tool.to_owned()),
            rule: change.rule,
            pointer,
            kind: change.kind,
            class: change.class,
            before: change.before,
            after: change.after,
            message: change.message,
            evidence: DefinitionEvidence {
                judgement: change.judgement,
                rename: change.rename,
                effect: change.effect,
                ..DefinitionEvidence::of(facet)
            },
        }
    });
    (Some(drift), changes.collect())
}

/// The member that a change is about; indexes into lists are skipped.
fn last_name(pointer: &Pointer) -> String {
    let names = pointer.segments();
    let names = names.filter(|name| !name.bytes().all(|it| it.is_ascii_digit()));
    names.last().unwrap_or_default()
}

/// Members that hold a schema in some format.
const SCHEMA_MEMBERS: &[&str] = &[
    "inputSchema",
    "input_schema",
    "inputs",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "args_schema",
    "outputSchema",
    "output_schema",
    "outputs",
    "response",
    "responseJsonSchema",
    "response_json_schema",
    "returns",
];

/// The member of a definition that holds a schema besides the one that is compared: a place belongs to
/// another facet otherwise.
fn second_schema(pointer: &Pointer) -> Option<String> {
    let mut segments = pointer.segments();
    let first = segments.next()?;
    let name = match first.as_str() {
        "function" | "toolSpec" | "extensions/raw" => segments.next()?,
        _ => first,
    };
    SCHEMA_MEMBERS.contains(&name.as_str()).then_some(name)
}

/// Whether a place is in such a schema, and not text that a model reads.
fn is_second_schema(pointer: &Pointer) -> bool {
    let is_prose = |name: String| PROSE.contains(&name.as_str());
    second_schema(pointer).is_some() && !pointer.segments().last().is_some_and(is_prose)
}

/// Whether a place is the identifier of a skill of an agent card.
fn is_skill_id(pointer: &Pointer) -> bool {
    pointer
        .segments()
        .eq(["extensions/a2a-skill".to_owned(), "id".to_owned()])
}

fn other_facets(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    maker: &ChangeBuilder<'_>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for difference in differences(old.definition, new.definition) {
        let (before, after) = (
            old.layout.implied(&difference.pointer),
            new.layout.implied(&difference.pointer),
        );
        let difference = Difference {
            before: difference.before.or(before),
            after: difference.after.or(after),
            ..difference
        };
        let facet = new.layout.facet(&difference.pointer);
        let (rule, class) = match facet {
            Facet::Input | Facet::Output | Facet::Annotations | Facet::Result => continue,
            // A caller that uses the old name is refused.
            Facet::Name => ("name", ChangeClass::Breaking),
            Facet::Title => ("title", ChangeClass::Behavioural),
            Facet::Description => ("description", ChangeClass::Behavioural),
            Facet::Meta => ("meta", ChangeClass::Behavioural),
            Facet::Icons => ("icons", ChangeClass::Behavioural),
            // A facet's place may be inside a member that differs as a whole.
            Facet::Other if route_change(&difference.pointer).is_some() => {
                ("route", ChangeClass::Trust)
            }
            Facet::Other if is_skill_id(&difference.pointer) => ("name", ChangeClass::Breaking),
            Facet::Other if is_second_schema(&difference.pointer) => {
                ("second-schema", ChangeClass::Unknown)
            }
            Facet::Other => ("member", ChangeClass::Behavioural),
        };
        let inside = |outer: &Pointer, inner: &Pointer| {
            let rest = inner.as_str().strip_prefix(outer.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let holds_facet = Facet::ALL.iter().any(|facet| {
            let place = new.layout.place(*facet);
            place.is_some_and(|place| inside(&difference.pointer, place))
        });
        if holds_facet
            && facet == Facet::Other
            && difference.before.is_some()
            && difference.after.is_some()
        {
            continue;
        }
        let what = difference.pointer.segments().next().unwrap_or_default();
        let did = match (difference.before, difference.after) {
            (None, _) => "was added",
            (_, None) => "was removed",
            _ => "was changed",
        };
        let message = match route_change(&difference.pointer).filter(|_| facet == Facet::Other) {
            Some(means) => format!("{means}: `{}` {did}", last_name(&difference.pointer)),
            None if rule == "second-schema" => {
                let name = second_schema(&difference.pointer).unwrap_or_else(|| what.clone());
                let is_whole = last_name(&difference.pointer) == name;
                let did = if is_whole { did } else { "was changed" };
                format!(
                    "`{name}` {did}: a schema that `watch` does not compare, and that another reader may use"
                )
            }
            None if rule == "name" && facet == Facet::Other => {
                "the id of the skill was changed: callers use it".to_owned()
            }
            None => format!("`{what}` {did}"),
        };
        let mut change = maker.change(rule, facet, class, &difference, message);
        // One of the two left out what the other says.
        if difference.before == difference.after {
            change.class = ChangeClass::Info;
            change.message = format!("`{what}` says what leaving it out means");
        }
        changes.push(change);
    }
    changes
}

/// Attaches text findings that the old definition did not have to the change that introduced them. The
/// report prints each of them, so each turns the change into one of trust.
fn attach_findings(
    drift: &mut Drift,
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    maker: &ChangeBuilder<'_>,
) {
    let (before, after) = (text::scan(old.definition), text::scan(new.definition));
    for finding in text::new_findings(&before, &after) {
        let at = finding.pointer.as_str();
        // No model reads these, so words that honest tools use too say nothing there.
        let unread = matches!(
            new.layout.facet(&finding.pointer),
            Facet::Meta | Facet::Icons
        );
        if unread && !is_suspicious(finding) {
            continue;
        }
        let drifted = !drift.changes.is_empty();
        let host = drift.changes.iter_mut().filter(|change| {
            let rest = at.strip_prefix(change.pointer.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                || change
                    .evidence
                    .rename
                    .as_ref()
                    .is_some_and(|rename| at.contains(&rename.to))
        });
        let host = host.max_by_key(|change| change.pointer.as_str().len());
        match host {
            Some(host) => {
                host.class = host.class.max(ChangeClass::Trust);
                host.evidence.reasons.push(finding.clone());
            }
            None if drifted => {
                let difference = Difference {
                    pointer: finding.pointer.clone(),
                    before: None,
                    after: finding.pointer.find(new.definition),
                };
                let facet = new.layout.facet(&finding.pointer);
                let message = finding.message.clone();
                let class = ChangeClass::Trust;
                let mut change = maker.change("text", facet, class, &difference, message);
                change.evidence.reasons.push(finding.clone());
                drift.changes.push(change);
            }
            None => {}
        }
    }
}
