use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_schema::{Budget, Callers, Formats};

use crate::annotations::{annotations, is_read_only};
use crate::change::{Change, ChangeId, ChangeType, Class, Effect, Kind, Severity};
use crate::difference::{Difference, differences, is_identical};
use crate::layout::{Facet, Observed};
use crate::schema::{self, Direction, SchemaDrift};
use crate::shape::ShapeDrift;
use crate::text::{self, Detector, Finding, is_suspicious};
use crate::wording;

/// How definitions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What callers may send.
    pub callers: Callers,
    /// Whether `format` decides about a value.
    pub formats: Formats,
    /// What one comparison of schemas may cost.
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            callers: Callers::Declared,
            formats: Formats::Annotate,
            budget: Budget::default(),
        }
    }
}

impl Options {
    /// The options of a comparison of two tools that starts now: its time limit counts from here.
    fn started(&self) -> Self {
        let time = self.budget.time.started();
        Self {
            budget: Budget {
                time,
                ..self.budget
            },
            ..*self
        }
    }
}

/// What changed between two observations of one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The name of the tool.
    pub tool: String,
    /// Every change, the gravest first; none means that nothing drifted.
    pub changes: Vec<Change>,
    /// What the change of the arguments means as a whole.
    pub input: Option<SchemaDrift>,
    /// What the change of the result means as a whole.
    pub output: Option<SchemaDrift>,
    /// How the shape of the results changed, where they were seen.
    pub results: Option<ShapeDrift>,
}

impl Drift {
    /// The gravest class among the changes.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.changes.iter().map(|change| change.class).max()
    }

    /// Whether any change is of a class, or carries text that is.
    #[must_use]
    pub fn is(&self, class: Class) -> bool {
        self.changes.iter().any(|change| change.is(class))
    }

    /// The kind of drift, in the words of the toolwatch document.
    #[must_use]
    pub fn change_type(&self) -> Option<ChangeType> {
        let of_results = |change: &Change| change.facet == Facet::Result;
        let results = self.changes.iter().any(of_results);
        let definition = self.changes.iter().any(|change| !of_results(change));
        match (definition, results) {
            (true, true) => Some(ChangeType::Behavior),
            (true, false) => Some(ChangeType::Schema),
            (false, true) => Some(ChangeType::Response),
            (false, false) => None,
        }
    }

    /// How grave it is, in the words of the toolwatch document.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.class().map(Class::severity)
    }
}

/// Compares two observations of one tool. Recorded calls are replayed against its arguments.
#[must_use]
pub fn compare(
    old: &Observed<'_>,
    new: &Observed<'_>,
    options: &Options,
    calls: &[Value],
) -> Drift {
    compare_among(old, new, options, calls, &BTreeSet::new())
}

/// Compares two observations of one tool beside other tools of its server, of which only the names
/// matter: text that begins to name one of them is a matter of trust.
#[must_use]
pub fn compare_among(
    old: &Observed<'_>,
    new: &Observed<'_>,
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
    let options = &options.started();
    let maker = Maker { tool: new.name };
    let (before, changes) = schema_facet(old, new, Facet::Input, options, calls, &maker);
    drift.input = before;
    drift.changes.extend(changes);
    let (before, changes) = schema_facet(old, new, Facet::Output, options, &[], &maker);
    drift.output = before;
    drift.changes.extend(changes);
    drift.changes.extend(annotations(old, new, &maker));
    drift.changes.extend(other_facets(old, new, &maker));
    let writes = !(is_read_only(old) && is_read_only(new));
    for change in &mut drift.changes {
        if let Some(Effect::Default { writes: known, .. }) = &mut change.effect {
            *known = writes;
        }
    }
    wording::classify(&mut drift, (old, new), &maker, tools);
    attach_findings(&mut drift, old, new, &maker);
    for change in &mut drift.changes {
        // What a text carries says more than what it adds.
        let rank = |it: &Finding| it.detector == Detector::Introduced;
        change.reasons.sort_by_key(rank);
    }
    drift.changes.sort_by(|a, b| {
        b.class
            .cmp(&a.class)
            .then_with(|| a.pointer.cmp(&b.pointer))
    });
    drift
}

/// Makes changes of one tool.
pub(crate) struct Maker<'t> {
    pub(crate) tool: &'t str,
}

impl Maker<'_> {
    pub(crate) fn change(
        &self,
        rule: &'static str,
        facet: Facet,
        class: Class,
        difference: &Difference<'_>,
        message: String,
    ) -> Change {
        let kind = match (difference.before, difference.after) {
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
            _ => Kind::Changed,
        };
        Change {
            id: ChangeId::of(
                self.tool,
                rule,
                &difference.pointer,
                difference.before,
                difference.after,
            ),
            rule,
            pointer: difference.pointer.clone(),
            facet,
            kind,
            class,
            judgement: None,
            before: difference.before.cloned(),
            after: difference.after.cloned(),
            reasons: Vec::new(),
            rename: None,
            effect: None,
            message,
        }
    }
}

fn schema_facet(
    old: &Observed<'_>,
    new: &Observed<'_>,
    facet: Facet,
    options: &Options,
    calls: &[Value],
    maker: &Maker<'_>,
) -> (Option<SchemaDrift>, Vec<Change>) {
    let place = new.layout.place(facet).or(old.layout.place(facet));
    let place = place.cloned().unwrap_or_default();
    let (before, after) = (old.facet(facet), new.facet(facet));
    if before == after && calls.is_empty() {
        return (None, Vec::new());
    }
    let direction = if facet == Facet::Input {
        Direction::Input
    } else {
        Direction::Output
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
        let message = "the tool promises a shape for its results now".to_owned();
        let change = maker.change(
            "contract-appeared",
            facet,
            Class::Structural,
            &difference,
            message,
        );
        return (Some(drift), vec![change]);
    }
    let changes = changes.into_iter().map(|mut change| {
        // Where there is no schema, everything is accepted, but nothing is written.
        if change.pointer == Pointer::root() {
            change.before = before.cloned();
            change.after = after.cloned();
            change.kind = match (before, after) {
                (None, _) => Kind::Added,
                (_, None) => Kind::Removed,
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
            rule: change.rule,
            pointer,
            facet,
            kind: change.kind,
            class: change.class,
            judgement: change.judgement,
            before: change.before,
            after: change.after,
            reasons: Vec::new(),
            rename: change.rename,
            effect: change.effect,
            message: change.message,
        }
    });
    (Some(drift), changes.collect())
}

fn other_facets(old: &Observed<'_>, new: &Observed<'_>, maker: &Maker<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for difference in differences(old.definition, new.definition) {
        let facet = new.layout.facet(&difference.pointer);
        let (rule, class) = match facet {
            Facet::Input | Facet::Output | Facet::Annotations | Facet::Result => continue,
            // Whoever calls it by the name it had is refused.
            Facet::Name => ("name", Class::Breaking),
            Facet::Title => ("title", Class::Behavioural),
            Facet::Description => ("description", Class::Behavioural),
            Facet::Meta => ("meta", Class::Behavioural),
            Facet::Icons => ("icons", Class::Behavioural),
            // A facet's place may lie inside what differs as a whole.
            Facet::Other => ("member", Class::Behavioural),
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
        changes.push(maker.change(rule, facet, class, &difference, format!("`{what}` {did}")));
    }
    changes
}

/// Text findings the old definition did not have become reasons of the change that brought them.
/// What is rare in honest tools makes the change one of trust.
fn attach_findings(drift: &mut Drift, old: &Observed<'_>, new: &Observed<'_>, maker: &Maker<'_>) {
    let (before, after) = (text::scan(old.definition), text::scan(new.definition));
    for finding in text::fresh(&before, &after) {
        let at = finding.pointer.as_str();
        let drifted = !drift.changes.is_empty();
        let host = drift.changes.iter_mut().filter(|change| {
            let rest = at.strip_prefix(change.pointer.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                || change
                    .rename
                    .as_ref()
                    .is_some_and(|rename| at.contains(&rename.to))
        });
        let host = host.max_by_key(|change| change.pointer.as_str().len());
        match host {
            Some(host) => {
                if is_suspicious(finding) && host.class < Class::Trust {
                    host.class = Class::Trust;
                }
                host.reasons.push(finding.clone());
            }
            None if drifted => {
                let difference = Difference {
                    pointer: finding.pointer.clone(),
                    before: None,
                    after: finding.pointer.find(new.definition),
                };
                let facet = new.layout.facet(&finding.pointer);
                let class = if is_suspicious(finding) {
                    Class::Trust
                } else {
                    Class::Info
                };
                let mut change =
                    maker.change("text", facet, class, &difference, finding.message.clone());
                change.reasons.push(finding.clone());
                drift.changes.push(change);
            }
            None => {}
        }
    }
}
