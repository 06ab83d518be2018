//! Drift of a tool's results, in the same terms as drift of its definition.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::change::{Change, ChangeClass, ChangeId, ChangeKind, DefinitionEvidence};
use crate::definition_drift::Drift;
use crate::facet::Facet;
use crate::routes::SAME_ROUTE;
use crate::shape::{Certainty, Channel, ShapeChange, ShapeChangeKind, ShapeDrift};

impl Drift {
    /// The drift of a tool's results: how their shape changed, and any other findings.
    #[must_use]
    pub fn of_results(tool: &str, compared: Option<ShapeDrift>, mut changes: Vec<Change>) -> Self {
        if let Some(drift) = &compared {
            let found = drift.changes.iter();
            changes.extend(found.map(|it| change(tool, it, drift.is_exact)));
        }
        changes.sort_by(|a, b| {
            b.class
                .cmp(&a.class)
                .then_with(|| a.pointer.cmp(&b.pointer))
        });
        Self {
            tool: tool.to_owned(),
            changes,
            input: None,
            output: None,
            results: compared,
        }
    }

    /// Drift of a definition of which only the toolwatch hash is known.
    #[must_use]
    pub fn from_toolwatch_hash(tool: &str) -> Self {
        let message =
            "the definition differs from the imported one; its hash does not show what changed";
        let change = new_change(
            tool,
            "imported",
            Facet::Other,
            ChangeClass::Unknown,
            Pointer::root(),
            message.to_owned(),
        );
        Self {
            tool: tool.to_owned(),
            changes: vec![change],
            input: None,
            output: None,
            results: None,
        }
    }

    /// Adds the drift of the same tool's results.
    pub fn add(&mut self, results: Self) {
        self.changes.extend(results.changes);
        self.changes
            .sort_by_key(|change| std::cmp::Reverse(change.class));
        self.results = results.results.or(self.results.take());
    }

    /// Marks every harmless-looking change as unknown, because the meaning of the definition cannot be
    /// determined.
    pub fn mark_unknown(&mut self) {
        let stated_again = |change: &&mut Change| change.rule == SAME_ROUTE;
        for change in self.changes.iter_mut().filter(|it| !stated_again(it)) {
            change.class = change.class.max(ChangeClass::Unknown);
        }
    }

    /// Removes changes, and the summary of a schema if none of its changes remain.
    pub fn remove_changes(&mut self, is_out: impl Fn(ChangeId) -> bool) {
        self.changes.retain(|change| !is_out(change.id));
        let left = |facet| {
            self.changes
                .iter()
                .any(|change| change.evidence.facet == facet)
        };
        if !left(Facet::Input) {
            self.input = None;
        }
        if !left(Facet::Output) {
            self.output = None;
        }
    }
}

/// The change for results that do not match the tool's output schema.
#[must_use]
pub fn output_schema_violation(
    tool: &str,
    schema_pointer: &Pointer,
    value_pointer: &Pointer,
    keyword: &str,
    (rejected, of): (u64, u64),
) -> Change {
    let at = value_pointer.as_str();
    let at = if at.is_empty() { "the result" } else { at };
    let place = Pointer::of(["outputSchema"]).join(schema_pointer);
    let message = format!(
        "results violate the output schema: {rejected} of {of} do, first `{keyword}` at {at}"
    );
    new_change(
        tool,
        "broken-promise",
        Facet::Result,
        ChangeClass::Breaking,
        place,
        message,
    )
}

/// The change for a definition in another format. Members that only one of the formats can express were
/// not compared.
#[must_use]
pub fn format_change(tool: &str, from: &str, to: &str) -> Change {
    let message = format!(
        "the format of the definition changed from {from} to {to}: members that only one can express are not compared"
    );
    new_change(
        tool,
        "format",
        Facet::Other,
        ChangeClass::Unknown,
        Pointer::root(),
        message,
    )
}

/// The change for results of which only the toolwatch hash is known.
#[must_use]
pub fn toolwatch_hash_mismatch(tool: &str) -> Change {
    let message = "the keys and types of the results differ from the imported ones; their hash does not show what changed";
    new_change(
        tool,
        "imported-results",
        Facet::Result,
        ChangeClass::Unknown,
        Pointer::root(),
        message.to_owned(),
    )
}

/// The change for a tool whose results are pinned as fixtures and that has none now.
#[must_use]
pub fn missing_fixtures(tool: &str, pinned: u64) -> Change {
    let results = if pinned == 1 { "result" } else { "results" };
    new_change(
        tool,
        "result-fixtures",
        Facet::Result,
        ChangeClass::Unknown,
        Pointer::root(),
        format!("the baseline has {pinned} {results} of the tool, and this check has none"),
    )
}

fn change(tool: &str, found: &ShapeChange, is_exact: bool) -> Change {
    let place = format!("/{}{}", found.channel.as_str(), found.pointer);
    let (rule, mut class) = classify(found);
    if is_exact {
        // Such a result could not differ by chance, and what the difference means to its readers is not
        // known.
        class = class.max(ChangeClass::Unknown);
    }
    let mut message = found.message.clone();
    if let Certainty::Significant { p, .. } = found.certainty {
        message.push_str(&format!(" (p = {p:.1e})"));
    }
    let mut change = new_change(
        tool,
        rule,
        Facet::Result,
        class,
        Pointer::from(place.as_str()),
        message,
    );
    // The id depends on the kind of change, not on how often it was seen.
    let what = Value::from(found.what.to_string());
    change.id = ChangeId::of(tool, rule, &change.pointer, None, Some(&what));
    change.kind = match found.what {
        ShapeChangeKind::NewType(_)
        | ShapeChangeKind::NewField
        | ShapeChangeKind::NewFormat(_)
        | ShapeChangeKind::NewValue => ChangeKind::Added,
        ShapeChangeKind::GoneType(_) | ShapeChangeKind::Missing => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    };
    change
}

/// The rule and the class of a change of results. A reader of the results breaks on a value that never
/// came before, or on one that no longer comes.
fn classify(found: &ShapeChange) -> (&'static str, ChangeClass) {
    let always = found.baseline.of > 0 && found.baseline.seen == found.baseline.of;
    let mostly = found.window.share() >= 0.5;
    let fails = mostly && found.baseline.share() < 0.5;
    let certain = found.certainty == Certainty::Certain && found.baseline.seen == 0;
    match found.what {
        ShapeChangeKind::NewType(_) => ("result-type", ChangeClass::Breaking),
        ShapeChangeKind::Missing => ("result-missing", ChangeClass::Breaking),
        ShapeChangeKind::Presence if always => ("result-missing", ChangeClass::Breaking),
        ShapeChangeKind::NewFormat(_) if mostly => ("result-format", ChangeClass::Breaking),
        ShapeChangeKind::Replaced => ("result-replaced", ChangeClass::Breaking),
        ShapeChangeKind::NewField => ("result-member", ChangeClass::Widened),
        // No reader asked for it, so it is not more of what was promised.
        ShapeChangeKind::NewValue => ("result-value", ChangeClass::Behavioural),
        ShapeChangeKind::GoneType(_) | ShapeChangeKind::Types(_) | ShapeChangeKind::Fractions => {
            ("result-types", ChangeClass::Behavioural)
        }
        ShapeChangeKind::Presence => ("result-presence", ChangeClass::Behavioural),
        ShapeChangeKind::NewFormat(_) | ShapeChangeKind::Format(_) => {
            ("result-format", ChangeClass::Behavioural)
        }
        ShapeChangeKind::Values => ("result-values", ChangeClass::Behavioural),
        ShapeChangeKind::Range => ("result-range", ChangeClass::Behavioural),
        ShapeChangeKind::Length => ("result-length", ChangeClass::Behavioural),
        ShapeChangeKind::Errors if fails || certain => ("result-errors", ChangeClass::Breaking),
        ShapeChangeKind::Errors => ("result-errors", ChangeClass::Behavioural),
        ShapeChangeKind::Channel if found.channel == Channel::Empty && fails => {
            ("result-empty", ChangeClass::Breaking)
        }
        ShapeChangeKind::Channel if always && found.window.seen == 0 => {
            ("result-part", ChangeClass::Breaking)
        }
        ShapeChangeKind::Channel => ("result-part", ChangeClass::Behavioural),
        ShapeChangeKind::Emptied => ("result-empty", ChangeClass::Breaking),
        ShapeChangeKind::Flipped => ("result-flipped", ChangeClass::Breaking),
        ShapeChangeKind::ErrorText if fails => ("result-error-text", ChangeClass::Breaking),
        ShapeChangeKind::ErrorText => ("result-error-text", ChangeClass::Behavioural),
        ShapeChangeKind::Content => ("result-content", ChangeClass::Behavioural),
        ShapeChangeKind::Fixtures => ("result-fixtures", ChangeClass::Unknown),
    }
}

fn new_change(
    tool: &str,
    rule: &'static str,
    facet: Facet,
    class: ChangeClass,
    pointer: Pointer,
    message: String,
) -> Change {
    Change {
        id: ChangeId::of(tool, rule, &pointer, None, None),
        tool: Some(tool.to_owned()),
        rule,
        pointer,
        kind: ChangeKind::Changed,
        class,
        before: None,
        after: None,
        message,
        evidence: DefinitionEvidence::of(facet),
    }
}
