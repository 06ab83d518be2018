//! Drift of what a tool returns, in the same terms as drift of what it says.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::change::{Change, ChangeId, Class, Kind};
use crate::compare::Drift;
use crate::layout::Facet;
use crate::shape::{Certainty, ShapeChange, ShapeDrift, What};

impl Drift {
    /// The drift of a tool's results: how their shape changed, and what else was found.
    #[must_use]
    pub fn of_results(tool: &str, compared: Option<ShapeDrift>, mut changes: Vec<Change>) -> Self {
        let shape = compared.iter().flat_map(|it| &it.changes);
        changes.extend(shape.map(|it| change(tool, it)));
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

    /// Drift of a definition of which only a hash of the toolwatch program is known.
    #[must_use]
    pub fn since_import(tool: &str) -> Self {
        let message = "the definition is not the one that was imported; what changed cannot be told from its hash";
        let change = made(
            tool,
            "imported",
            Facet::Other,
            Class::Unknown,
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

    /// Adds what the results of the same tool say.
    pub fn add(&mut self, results: Self) {
        self.changes.extend(results.changes);
        self.changes
            .sort_by_key(|change| std::cmp::Reverse(change.class));
        self.results = results.results.or(self.results.take());
    }

    /// Takes every change for unknown that seems harmless: nobody knows what the definition means.
    pub fn doubt(&mut self) {
        for change in &mut self.changes {
            change.class = change.class.max(Class::Unknown);
        }
    }

    /// Leaves out changes, and what was said about the schemas if no change of them is left.
    pub fn leave_out(&mut self, is_out: impl Fn(ChangeId) -> bool) {
        self.changes.retain(|change| !is_out(change.id));
        let left = |facet| self.changes.iter().any(|change| change.facet == facet);
        if !left(Facet::Input) {
            self.input = None;
        }
        if !left(Facet::Output) {
            self.output = None;
        }
    }
}

/// The change for results that are not what the tool's output schema promises.
#[must_use]
pub fn broken_promise(
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
        "results break what the output schema promises: {rejected} of {of} do, first `{keyword}` at {at}"
    );
    made(
        tool,
        "broken-promise",
        Facet::Result,
        Class::Breaking,
        place,
        message,
    )
}

/// The change for a definition that is in another format: what only one of the formats can say was not
/// compared.
#[must_use]
pub fn reformatted(tool: &str, from: &str, to: &str) -> Change {
    let message = format!(
        "the definition is in the format {to}, and was in {from}: what only one of them can say is not compared"
    );
    made(
        tool,
        "format",
        Facet::Other,
        Class::Unknown,
        Pointer::root(),
        message,
    )
}

/// The change for results of which only a hash of the toolwatch program is known.
#[must_use]
pub fn unlike_import(tool: &str) -> Change {
    let message = "the keys and types of the results are not those that were imported; what changed cannot be told from their hash";
    made(
        tool,
        "imported-results",
        Facet::Result,
        Class::Unknown,
        Pointer::root(),
        message.to_owned(),
    )
}

fn change(tool: &str, found: &ShapeChange) -> Change {
    let place = format!("/{}{}", found.channel.as_str(), found.pointer);
    let (rule, class) = meaning(found);
    let mut message = found.message.clone();
    if let Certainty::Significant { p, .. } = found.certainty {
        message.push_str(&format!(" (p = {p:.1e})"));
    }
    let mut change = made(
        tool,
        rule,
        Facet::Result,
        class,
        Pointer::from(place.as_str()),
        message,
    );
    // What it is belongs to its name; how often it was seen does not.
    let what = Value::from(found.what.to_string());
    change.id = ChangeId::of(tool, rule, &change.pointer, None, Some(&what));
    change.kind = match found.what {
        What::NewType(_) | What::NewField | What::NewFormat(_) | What::NewValue => Kind::Added,
        What::GoneType(_) | What::Missing => Kind::Removed,
        _ => Kind::Changed,
    };
    change
}

/// The rule and the class of a change of results: whoever reads them breaks on what never came, or
/// no longer comes.
fn meaning(found: &ShapeChange) -> (&'static str, Class) {
    let always = found.baseline.of > 0 && found.baseline.seen == found.baseline.of;
    let mostly = found.window.share() >= 0.5;
    match found.what {
        What::NewType(_) => ("result-type", Class::Breaking),
        What::Missing => ("result-missing", Class::Breaking),
        What::Presence if always => ("result-missing", Class::Breaking),
        What::NewFormat(_) if mostly => ("result-format", Class::Breaking),
        What::Replaced => ("result-replaced", Class::Breaking),
        What::NewField => ("result-member", Class::Widened),
        What::NewValue => ("result-value", Class::Widened),
        What::GoneType(_) | What::Types(_) | What::Fractions => {
            ("result-types", Class::Behavioural)
        }
        What::Presence => ("result-presence", Class::Behavioural),
        What::NewFormat(_) | What::Format(_) => ("result-format", Class::Behavioural),
        What::Values => ("result-values", Class::Behavioural),
        What::Range => ("result-range", Class::Behavioural),
        What::Length => ("result-length", Class::Behavioural),
        What::Errors => ("result-errors", Class::Behavioural),
        What::Channel => ("result-part", Class::Behavioural),
    }
}

fn made(
    tool: &str,
    rule: &'static str,
    facet: Facet,
    class: Class,
    pointer: Pointer,
    message: String,
) -> Change {
    Change {
        id: ChangeId::of(tool, rule, &pointer, None, None),
        rule,
        pointer,
        facet,
        kind: Kind::Changed,
        class,
        judgement: None,
        before: None,
        after: None,
        reasons: Vec::new(),
        rename: None,
        effect: None,
        message,
    }
}
