use std::collections::BTreeSet;
use std::fmt;

use toolwarden_model::reply::{ArgumentsClass, WireApi};

use super::fault_metrics;
use crate::snapshot::{CaseContract, Snapshot};
use crate::trial_mark::TrialMark;

/// A share of trials that is compared; larger is better.
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
    /// Trials without leaked markup.
    NoLeak,
    /// Trials that meet their case's expectation.
    Expectation,
    /// The same for one case of several.
    CaseExpectation {
        /// The case.
        case: String,
    },
    /// Trials with the exact arguments, of those whose case asks for them.
    ExactArguments,
    /// Trials without one fault, of those that could show it.
    Without {
        /// The fault.
        mark: TrialMark,
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
                TrialMark::Fault { tool, .. }
                | TrialMark::ExtraKey { tool, .. }
                | TrialMark::UndeclaredTool(tool)
                | TrialMark::Forbidden(tool) => Some(tool),
                _ => None,
            },
        }
    }

    /// Whether the metric counts a structural fault: a model that always shows it has a different
    /// contract from one that never did, however few the trials.
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
            // Which tool a model chooses to call may be chance.
            Self::Without { mark } => !matches!(mark, TrialMark::Forbidden(_)),
        }
    }

    /// Whether the counted fault breaks a caller, so that a single occurrence is reported.
    pub(super) const fn breaks_callers(&self) -> bool {
        self.is_structural() || matches!(self, Self::Without { .. })
    }

    /// Whether the counted fault has zero tolerance: a call of a tool that was not offered or that the
    /// case forbids, arguments that are unreadable or violate the schema, a leaked or broken call. A
    /// caller acts on each of them, so one occurrence is drift if there was none before, and no allowed
    /// drop covers an increase.
    pub(super) const fn is_zero_tolerance(&self) -> bool {
        match self {
            Self::SchemaValid { .. } | Self::DeclaredOnly | Self::NoLeak => true,
            Self::Without { mark } => is_zero_tolerance(mark),
            // Callers read an object or a string with one, and nothing else.
            Self::NotEncodedAs { class, .. } => !matches!(
                class,
                ArgumentsClass::Object | ArgumentsClass::JsonObjectString
            ),
            Self::Emitted { .. }
            | Self::NoExtraKeys { .. }
            | Self::Expectation
            | Self::CaseExpectation { .. }
            | Self::ExactArguments => false,
        }
    }

    /// Whether too few trials for this metric make the whole comparison inconclusive. A difference in
    /// one case among many is reported only if it is established; the rate over all cases covers the
    /// rest.
    pub(super) const fn is_needed(&self) -> bool {
        !matches!(self, Self::CaseExpectation { .. })
    }

    /// Whether a trial counts, and whether it is a good one.
    fn evaluate(
        &self,
        name: &str,
        case: &CaseContract,
        marks: &BTreeSet<TrialMark>,
    ) -> Option<bool> {
        let has = |mark: TrialMark| marks.contains(&mark);
        let of_calls =
            |tool: &String, bad: TrialMark| has(TrialMark::Called(tool.clone())).then(|| !has(bad));
        match self {
            Self::Emitted { tool } => case
                .constrains_tool(tool)
                .then(|| has(TrialMark::Called(tool.clone()))),
            Self::SchemaValid { tool } => of_calls(tool, TrialMark::Invalid(tool.clone())),
            Self::NoExtraKeys { tool } => of_calls(tool, TrialMark::Extra(tool.clone())),
            Self::NotEncodedAs { tool, class } => {
                of_calls(tool, TrialMark::Encoded(*class, tool.clone()))
            }
            Self::DeclaredOnly => Some(!has(TrialMark::Undeclared)),
            Self::NoLeak => Some(!has(TrialMark::Leaked)),
            Self::Expectation => Some(!has(TrialMark::Missed)),
            Self::CaseExpectation { case } => (case == name).then(|| !has(TrialMark::Missed)),
            Self::ExactArguments => case
                .expects_exact_arguments()
                .then(|| !has(TrialMark::Inexact)),
            Self::Without { mark } => match mark {
                TrialMark::Fault { tool, .. } | TrialMark::ExtraKey { tool, .. } => {
                    of_calls(tool, mark.clone())
                }
                TrialMark::Forbidden(tool) => case.forbids(tool).then(|| !has(mark.clone())),
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

/// Whether one occurrence of a fault is too many.
pub(super) const fn is_zero_tolerance(mark: &TrialMark) -> bool {
    matches!(
        mark,
        TrialMark::Fault { .. }
            | TrialMark::UndeclaredTool(_)
            | TrialMark::Forbidden(_)
            | TrialMark::LeakOf { .. }
            | TrialMark::Broken(_)
    )
}

/// Every share by which two snapshots can be compared.
pub(super) struct Metrics {
    /// Those that are tested together. Their choice does not depend on which side shows what.
    pub(super) tested: Vec<Metric>,
    /// Faults with zero tolerance that only the new side shows and that are too many to be tested.
    pub(super) appeared: Vec<Metric>,
}

pub(super) fn metrics(old: &Snapshot, new: &Snapshot) -> Metrics {
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
    let faults = fault_metrics::fault_metrics(old, new);
    metrics.extend(faults.most_frequent);
    metrics.sort();
    Metrics {
        tested: metrics,
        appeared: faults.appeared,
    }
}

/// Maps the argument classes of both sides to common terms.
///
/// Wire APIs differ in whether arguments are a string or an object. Between two such APIs, the usual
/// class of one counts as equal to the usual class of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encodings {
    old_swaps: bool,
    new_swaps: bool,
    /// The usual class, in common terms.
    custom: ArgumentsClass,
}

impl Encodings {
    pub(super) fn of(old: &Snapshot, new: &Snapshot) -> Self {
        let objects = |wire: WireApi| match wire {
            WireApi::OpenaiChat | WireApi::OpenaiResponses => false,
            WireApi::Anthropic | WireApi::Gemini => true,
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

    /// The marks of a trial of one side, with classes in common terms.
    fn common(self, marks: &[TrialMark], is_new: bool) -> BTreeSet<TrialMark> {
        let swaps = if is_new {
            self.new_swaps
        } else {
            self.old_swaps
        };
        let common = marks.iter().map(|mark| match mark {
            TrialMark::Encoded(class, tool) if swaps => {
                TrialMark::Encoded(swapped(*class), tool.clone())
            }
            other => other.clone(),
        });
        common.collect()
    }

    /// The classes whose increase would break a caller: the unreadable ones and, of the two readable
    /// ones, the unusual one. The usual class breaks a caller that only ever received the other.
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

/// The trials of one case on both sides, grouped by equal marks.
pub(super) struct Stratum {
    /// The name of the case.
    pub(super) case: String,
    pub(super) rows: Vec<OutcomeRow>,
}

/// Trials with equal marks.
#[derive(Clone, Debug)]
pub(super) struct OutcomeRow {
    pub(super) old: u64,
    pub(super) new: u64,
    /// For each metric, whether these trials count, and whether they are good.
    pub(super) verdicts: Vec<Option<bool>>,
}

/// The trials of both sides by case, for cases that both sides have.
pub(super) fn strata(old: &Snapshot, new: &Snapshot, metrics: &[Metric]) -> Vec<Stratum> {
    let encodings = Encodings::of(old, new);
    let cases = new.cases.iter().filter_map(|(name, case)| {
        let before = old.cases.get(name)?;
        let mut rows: std::collections::BTreeMap<BTreeSet<TrialMark>, (u64, u64)> =
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
            let verdicts = metrics.iter().map(|it| it.evaluate(name, case, &marks));
            OutcomeRow {
                old,
                new,
                verdicts: verdicts.collect(),
            }
        });
        let mut rows: Vec<OutcomeRow> = rows.collect();
        for metric in 0..metrics.len() {
            count_missing_as_good(&mut rows, metric);
        }
        Some(Stratum {
            case: name.clone(),
            rows,
        })
    });
    cases.collect()
}

/// If no trial of the old side could show a fault and trials of the new side do, all trials of the case
/// count: the old side never showed it.
fn count_missing_as_good(rows: &mut [OutcomeRow], metric: usize) {
    let counts = |row: &OutcomeRow| row.verdicts.get(metric).copied().flatten().is_some();
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
