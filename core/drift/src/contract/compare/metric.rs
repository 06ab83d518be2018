use std::collections::BTreeSet;
use std::fmt;

use toolwarden_model::reply::{ArgumentsClass, Wire};

use super::identity;
use crate::contract::mark::Mark;
use crate::contract::snapshot::{CaseContract, Snapshot};

/// A share of trials that is compared: the larger, the better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Trials that call the tool, of those whose case asks for it or leaves it open.
    Emitted {
        /// The tool.
        tool: String,
    },
    /// Trials whose calls of the tool all fit its schema, of those that call it.
    SchemaValid {
        /// The tool.
        tool: String,
    },
    /// Trials without an argument the schema does not name, of those that call the tool.
    NoExtraKeys {
        /// The tool.
        tool: String,
    },
    /// Trials without arguments of this class, of those that call the tool.
    NotEncodedAs {
        /// The tool.
        tool: String,
        /// The class.
        class: ArgumentsClass,
    },
    /// Trials that call no tool that was not offered.
    DeclaredOnly,
    /// Trials without markup that came through as text.
    NoLeak,
    /// Trials that do what their case expects.
    Expectation,
    /// The same for one case of several.
    CaseExpectation {
        /// The case.
        case: String,
    },
    /// Trials with the exact arguments, of those whose case asks for them.
    ExactArguments,
    /// Trials without one thing that is wrong, of those that could show it.
    Without {
        /// What is wrong.
        mark: Mark,
    },
}

impl Metric {
    /// The tool it is about.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Emitted { tool }
            | Self::SchemaValid { tool }
            | Self::NoExtraKeys { tool }
            | Self::NotEncodedAs { tool, .. } => Some(tool),
            Self::DeclaredOnly
            | Self::NoLeak
            | Self::Expectation
            | Self::CaseExpectation { .. }
            | Self::ExactArguments => None,
            Self::Without { mark } => match mark {
                Mark::Fault { tool, .. }
                | Mark::ExtraKey { tool, .. }
                | Mark::UndeclaredTool(tool)
                | Mark::Forbidden(tool) => Some(tool),
                _ => None,
            },
        }
    }

    /// Whether what it counts is wrong in itself, so that a model that always does it has another
    /// contract than one that never did, however few the trials.
    pub(super) const fn is_structural(&self) -> bool {
        match self {
            Self::SchemaValid { .. }
            | Self::NoExtraKeys { .. }
            | Self::NotEncodedAs { .. }
            | Self::DeclaredOnly
            | Self::NoLeak => true,
            Self::Emitted { .. }
            | Self::Expectation
            | Self::CaseExpectation { .. }
            | Self::ExactArguments => false,
            // What a model chooses to call may be chance.
            Self::Without { mark } => !matches!(mark, Mark::Forbidden(_)),
        }
    }

    /// Whether what it counts breaks a caller, so that it is told even if it is seen once.
    pub(super) const fn is_grave(&self) -> bool {
        self.is_structural() || matches!(self, Self::Without { .. })
    }

    /// Whether too few trials for it leave the whole comparison open. What is true of one case among
    /// many is told only if it is established; the rate over all of them speaks for the rest.
    pub(super) const fn is_needed(&self) -> bool {
        !matches!(self, Self::CaseExpectation { .. })
    }

    /// Whether a trial counts, and whether it is a good one.
    fn judge(&self, name: &str, case: &CaseContract, marks: &BTreeSet<Mark>) -> Option<bool> {
        let has = |mark: Mark| marks.contains(&mark);
        let of_calls =
            |tool: &String, bad: Mark| has(Mark::Called(tool.clone())).then(|| !has(bad));
        match self {
            Self::Emitted { tool } => case.asks_for(tool).then(|| has(Mark::Called(tool.clone()))),
            Self::SchemaValid { tool } => of_calls(tool, Mark::Invalid(tool.clone())),
            Self::NoExtraKeys { tool } => of_calls(tool, Mark::Extra(tool.clone())),
            Self::NotEncodedAs { tool, class } => {
                of_calls(tool, Mark::Encoded(*class, tool.clone()))
            }
            Self::DeclaredOnly => Some(!has(Mark::Undeclared)),
            Self::NoLeak => Some(!has(Mark::Leaked)),
            Self::Expectation => Some(!has(Mark::Missed)),
            Self::CaseExpectation { case } => (case == name).then(|| !has(Mark::Missed)),
            Self::ExactArguments => case.exact_asked().then(|| !has(Mark::Inexact)),
            Self::Without { mark } => match mark {
                Mark::Fault { tool, .. } | Mark::ExtraKey { tool, .. } => {
                    of_calls(tool, mark.clone())
                }
                Mark::Forbidden(tool) => case.forbids(tool).then(|| !has(mark.clone())),
                _ => Some(!has(mark.clone())),
            },
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emitted { tool } => write!(f, "emitted:{tool}"),
            Self::SchemaValid { tool } => write!(f, "schema_valid:{tool}"),
            Self::NoExtraKeys { tool } => write!(f, "no_extra_keys:{tool}"),
            Self::NotEncodedAs { tool, class } => {
                write!(f, "not_encoded_as:{}:{tool}", class.as_str())
            }
            Self::DeclaredOnly => f.write_str("declared_only"),
            Self::NoLeak => f.write_str("no_leak"),
            Self::Expectation => f.write_str("expectation"),
            Self::CaseExpectation { case } => write!(f, "expectation:{case}"),
            Self::ExactArguments => f.write_str("exact_arguments"),
            Self::Without { mark } => write!(f, "without:{mark}"),
        }
    }
}

/// Every share that two snapshots can be compared by.
pub(super) fn metrics(old: &Snapshot, new: &Snapshot) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::DeclaredOnly,
        Metric::NoLeak,
        Metric::Expectation,
        Metric::ExactArguments,
    ];
    if new.cases.len() > 1 {
        let cases = new.cases.keys().cloned();
        metrics.extend(cases.map(|case| Metric::CaseExpectation { case }));
    }
    let encodings = Encodings::of(old, new);
    for tool in new.tools.keys() {
        metrics.extend([
            Metric::Emitted { tool: tool.clone() },
            Metric::SchemaValid { tool: tool.clone() },
            Metric::NoExtraKeys { tool: tool.clone() },
        ]);
        let classes = encodings.breaking(tool, old, new).into_iter();
        metrics.extend(classes.map(|class| Metric::NotEncodedAs {
            tool: tool.clone(),
            class,
        }));
    }
    metrics.extend(identity::metrics(old, new));
    metrics.sort();
    metrics
}

/// How the classes of both sides are told in the same words.
///
/// Wires differ in whether arguments are a string or an object. Between two such wires, what is the
/// custom of each is the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encodings {
    old_swaps: bool,
    new_swaps: bool,
    /// The class that is the custom, in common words.
    custom: ArgumentsClass,
}

impl Encodings {
    pub(super) fn of(old: &Snapshot, new: &Snapshot) -> Self {
        let objects = |wire: Wire| match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses => false,
            Wire::Anthropic | Wire::Gemini => true,
        };
        let differ = objects(old.wire) != objects(new.wire);
        Self {
            old_swaps: differ && objects(old.wire),
            new_swaps: differ && objects(new.wire),
            custom: if objects(old.wire) && !differ {
                ArgumentsClass::Object
            } else {
                ArgumentsClass::JsonObjectString
            },
        }
    }

    pub(super) fn is_swapped(self) -> bool {
        self.old_swaps || self.new_swaps
    }

    /// The marks of a trial of one side, with classes in common words.
    fn common(self, marks: &[Mark], is_new: bool) -> BTreeSet<Mark> {
        let swaps = if is_new {
            self.new_swaps
        } else {
            self.old_swaps
        };
        let common = marks.iter().map(|mark| match mark {
            Mark::Encoded(class, tool) if swaps => Mark::Encoded(swapped(*class), tool.clone()),
            other => other.clone(),
        });
        common.collect()
    }

    /// The classes of which more would break a caller: those that cannot be read, and of the two
    /// that can, the one that is not the custom. The custom itself breaks a caller that never got it
    /// and got the other.
    fn breaking(self, tool: &str, old: &Snapshot, new: &Snapshot) -> Vec<ArgumentsClass> {
        let seen = |snapshot: &Snapshot, swaps: bool, class: ArgumentsClass| {
            let class = if swaps { swapped(class) } else { class };
            let encodings = snapshot.tools.get(tool).map(|it| &it.encodings);
            encodings.is_some_and(|it| it.contains_key(class.as_str()))
        };
        let mut classes = ArgumentsClass::ALL.to_vec();
        classes.retain(|class| {
            let was = |class: ArgumentsClass| seen(old, self.old_swaps, class);
            let never_called = old.tools.get(tool).is_none_or(|it| it.calls == 0);
            let breaks = match class {
                ArgumentsClass::Object | ArgumentsClass::JsonObjectString => {
                    let other = was(swapped(*class));
                    let uncustomary = *class != self.custom;
                    other && (uncustomary || !was(*class)) || never_called && uncustomary
                }
                _ => true,
            };
            breaks && seen(new, self.new_swaps, *class)
        });
        classes
    }
}

fn swapped(class: ArgumentsClass) -> ArgumentsClass {
    match class {
        ArgumentsClass::JsonObjectString => ArgumentsClass::Object,
        ArgumentsClass::Object => ArgumentsClass::JsonObjectString,
        other => other,
    }
}

/// The trials of one case on both sides, those that showed the same taken together.
pub(super) struct Stratum {
    /// The name of the case.
    pub(super) case: String,
    pub(super) rows: Vec<Row>,
}

/// Trials that showed the same.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) old: u64,
    pub(super) new: u64,
    /// For each metric, whether such a trial counts, and whether it is a good one.
    pub(super) verdicts: Vec<Option<bool>>,
}

/// The trials of both sides by case, for cases both have.
pub(super) fn strata(old: &Snapshot, new: &Snapshot, metrics: &[Metric]) -> Vec<Stratum> {
    let encodings = Encodings::of(old, new);
    let cases = new.cases.iter().filter_map(|(name, case)| {
        let before = old.cases.get(name)?;
        let mut rows: std::collections::BTreeMap<BTreeSet<Mark>, (u64, u64)> =
            std::collections::BTreeMap::new();
        for outcome in &before.outcomes {
            rows.entry(encodings.common(&outcome.marks, false))
                .or_default()
                .0 += outcome.trials;
        }
        for outcome in &case.outcomes {
            rows.entry(encodings.common(&outcome.marks, true))
                .or_default()
                .1 += outcome.trials;
        }
        let rows = rows.into_iter().map(|(marks, (old, new))| {
            let verdicts = metrics.iter().map(|it| it.judge(name, case, &marks));
            Row {
                old,
                new,
                verdicts: verdicts.collect(),
            }
        });
        let mut rows: Vec<Row> = rows.collect();
        for metric in 0..metrics.len() {
            count_silence(&mut rows, metric);
        }
        Some(Stratum {
            case: name.clone(),
            rows,
        })
    });
    cases.collect()
}

/// Where no trial of the old side could show something and those of the new side do, all trials of
/// the case count: the old side never did it.
fn count_silence(rows: &mut [Row], metric: usize) {
    let counts = |row: &Row| row.verdicts.get(metric).copied().flatten().is_some();
    let old = rows.iter().any(|row| row.old > 0 && counts(row));
    let new = rows.iter().any(|row| row.new > 0 && counts(row));
    if old || !new {
        return;
    }
    for row in rows {
        if let Some(verdict) = row.verdicts.get_mut(metric) {
            verdict.get_or_insert(true);
        }
    }
}
