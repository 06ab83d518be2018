//! Compares two snapshots of the same suite.

mod bootstrap;
mod case_trials;
mod describe;
mod exact_test;
mod fault_metrics;
mod metric;
mod minor_changes;
mod permutation_test;
mod sample_size;

use std::collections::BTreeSet;

use thiserror::Error;
use toolwarden_model::{Severity, Verdict};

pub use metric::Metric;

use self::metric::{Metrics, OutcomeRow, Stratum, metrics, strata};
use super::change::{ChangeParts, TrialChange, sort};
use super::defects::rejection_defect;
use super::rate::Rate;
use super::snapshot::{CaseContract, Snapshot, TrialCounts};
use super::statistics::{Confidence, Interval, difference};
use super::suite::CallExpectation;
use super::trial_rule::TrialRule;

/// The part of the error budget for the shuffles; the structural rule has its own error.
const SHUFFLE_ERROR_SHARE: f64 = 0.94;

/// How two snapshots are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The drop of a share that is acceptable.
    pub allowed_drop: f64,
    /// The confidence of statements.
    pub confidence: Confidence,
    /// What a pass requires.
    pub pass_criterion: PassCriterion,
    /// The seed of the random generator.
    pub seed: u64,
    /// The number of shuffles and of resampled sets of cases.
    pub resamples: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowed_drop: 0.1,
            confidence: Confidence::P95,
            pass_criterion: PassCriterion::Seen,
            seed: 0x7077_1006,
            resamples: 10_000,
        }
    }
}

impl Options {
    /// The largest p-value at which a drop is more than chance.
    pub(crate) fn established_p(&self) -> f64 {
        self.confidence.error() * SHUFFLE_ERROR_SHARE
    }
}

/// What a pass requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassCriterion {
    /// No drop was seen, or the drop is proven to be within the allowed drop.
    #[default]
    Seen,
    /// Every drop beyond the allowed drop is ruled out, which requires many trials.
    Proven,
}

/// Why two snapshots cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomparable {
    /// They belong to different suites.
    #[error("the snapshots are of different suites: `{old}` and `{new}`{}", if old == new { ", which changed in between" } else { "" })]
    Suite {
        /// The suite of the old one.
        old: String,
        /// The suite of the new one.
        new: String,
    },
    /// The definitions of tools differ.
    #[error(
        "the definition of {} is not the same in both snapshots",
        listed(tools)
    )]
    Tools {
        /// The tools.
        tools: Vec<String>,
    },
}

fn listed(tools: &[String]) -> String {
    let tools: Vec<String> = tools.iter().map(|it| format!("`{it}`")).collect();
    tools.join(", ")
}

/// The word for a verdict in the reports of probes: `pass`, `inconclusive` or `fail`.
#[must_use]
pub const fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::NotMeasured => "inconclusive",
        Verdict::Drift => "fail",
    }
}

/// The differences between two snapshots, and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotComparison {
    /// Whether the new model can replace the old one, as far as the trials show.
    pub verdict: Verdict,
    /// The differences, by tool, the most severe first.
    pub changes: Vec<TrialChange>,
    /// The shares that were compared.
    pub metrics: Vec<MetricComparison>,
    /// The tools without a breaking or warning difference and without inconclusive shares.
    pub equivalent_tools: Vec<String>,
    /// The cases that were not measured on both sides.
    pub unmeasured_cases: Vec<String>,
    /// About how many more trials of each case and side would decide an inconclusive comparison;
    /// `None` if it is decided, or if more trials alone would not decide it.
    pub more_trials: Option<u64>,
    /// The trials of the old side.
    pub old_trials: TrialCounts,
    /// The trials of the new side.
    pub new_trials: TrialCounts,
}

/// One share on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricComparison {
    /// What it is a share of.
    pub metric: Metric,
    /// The good trials of the old side.
    pub old: Rate,
    /// The good trials of the new side.
    pub new: Rate,
    /// How much larger the new share is, averaged over cases.
    pub difference: f64,
    /// The interval of that difference.
    pub interval: Interval,
    /// The probability of a drop at least as large in any share, if both sides are the same.
    pub p: f64,
    /// The verdict on this share.
    pub verdict: Verdict,
    /// Whether the new side always shows a structural fault that the old side never showed.
    pub structural: bool,
    /// The cases in which the new side shows a caller-breaking fault that the old side never showed.
    pub first_seen_in: Vec<String>,
    /// About how many more trials of each case and side would decide an inconclusive share, if the
    /// rates stay as observed; `None` if the share is decided or no reasonable number would.
    pub more_trials: Option<u64>,
}

/// Compares two snapshots of the same suite. The rules are those of the [module](super).
///
/// # Errors
/// Fails if the suites or the definitions of tools differ.
pub fn compare(
    old: &Snapshot,
    new: &Snapshot,
    options: &Options,
) -> Result<SnapshotComparison, Incomparable> {
    check_comparable(old, new)?;
    let metrics = compare_metrics(old, new, options);
    let mut changes = describe::changes(old, new, &metrics);
    minor_changes::add_minor_changes(old, new, &mut changes);
    let rejected = newly_rejected(old, new);
    let is_rejected = rejected.is_some();
    changes.extend(rejected);
    let hollow = lacks_tool_data(old) || lacks_tool_data(new);
    if hollow {
        changes.push(unknown_tools(old, new));
    }
    let silent = is_silent(new);
    if silent && old.is_measured() && new.is_measured() {
        changes.push(silence(old, new));
    }
    sort(&mut changes);
    let cases: BTreeSet<&String> = old.cases.keys().chain(new.cases.keys()).collect();
    let measured = |it: &Snapshot, name: &str| it.cases.get(name).is_some_and(|it| it.measured > 0);
    let unmeasured = cases
        .into_iter()
        .filter(|name| !measured(old, name) || !measured(new, name));
    let unmeasured_cases: Vec<String> = unmeasured.cloned().collect();
    let open = |it: &&MetricComparison| it.verdict == Verdict::NotMeasured;
    let is_open = metrics.iter().any(|it| open(&it) && it.metric.is_needed());
    // One share that more trials would not decide leaves the whole open.
    let more_trials = metrics
        .iter()
        .filter(|it| open(it) && it.metric.is_needed())
        .map(|it| it.more_trials)
        .try_fold(0, |most, it| Some(it?.max(most)));
    let breaking = changes.iter().any(|it| it.severity() == Severity::Breaking)
        || metrics.iter().any(|it| it.verdict == Verdict::Drift);
    let verdict = if is_rejected && old.is_measured() {
        Verdict::Drift
    } else if !old.is_measured() || !new.is_measured() {
        Verdict::NotMeasured
    } else if breaking {
        Verdict::Drift
    } else if is_open || hollow || silent || !unmeasured_cases.is_empty() {
        Verdict::NotMeasured
    } else {
        Verdict::Pass
    };
    let differs = |tool: &str| {
        let mut grave = changes.iter().filter(|it| it.severity() > Severity::Info);
        let mut open = metrics.iter().filter(open);
        grave.any(|it| it.tool.as_deref() == Some(tool))
            || open.any(|it| it.metric.tool() == Some(tool))
            || silent
    };
    let measured = old.is_measured() && new.is_measured();
    let equivalent = new.tools.keys().filter(|tool| measured && !differs(tool));
    Ok(SnapshotComparison {
        verdict,
        equivalent_tools: equivalent.cloned().collect(),
        changes,
        metrics,
        more_trials: match verdict {
            Verdict::NotMeasured if !hollow && !silent && unmeasured_cases.is_empty() => {
                more_trials
            }
            _ => None,
        },
        unmeasured_cases,
        old_trials: old.trials.clone(),
        new_trials: new.trials.clone(),
    })
}

/// Whether a model called no tool at all, although a case asks for a call or leaves it open. Nothing
/// of how it calls tools was seen, so it equals no other.
fn is_silent(snapshot: &Snapshot) -> bool {
    let asked = |it: &CaseContract| it.measured > 0 && it.expect != CallExpectation::NoCall;
    let called = snapshot.tools.values().any(|it| it.calls > 0) || !snapshot.undeclared.is_empty();
    !called && snapshot.cases.values().any(asked)
}

fn silence(old: &Snapshot, new: &Snapshot) -> TrialChange {
    let called = |it: &Snapshot| {
        let calls = it.tools.values().map(|it| it.calls);
        match calls.fold(0, u64::saturating_add) {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        }
    };
    let parts = ChangeParts {
        tool: None,
        rule: TrialRule::Emitted,
        pointer: "/tools".to_owned(),
        severity: Severity::Warning,
        before: called(old),
        after: called(new),
        message: "the model called no tool, so how it calls tools was not seen".to_owned(),
        rates: None,
    };
    parts.into()
}

/// Whether a snapshot lacks a tool of its suite.
fn lacks_tool_data(snapshot: &Snapshot) -> bool {
    let tools = &snapshot.tools;
    let known = |name: &String| tools.contains_key(name);
    tools.is_empty() || !snapshot.tool_hashes.keys().all(known)
}

/// The change if the new side refuses the tools and the old one never did.
fn newly_rejected(old: &Snapshot, new: &Snapshot) -> Option<TrialChange> {
    let now = rejection_defect(new)?;
    if rejection_defect(old).is_some() {
        return None;
    }
    let before = Rate::new(0, old.trials.planned);
    Some(TrialChange::from(ChangeParts {
        tool: None,
        rule: now.rule,
        pointer: now.pointer,
        severity: Severity::Breaking,
        before: before.to_string(),
        after: now.rate.to_string(),
        message: now.what,
        rates: Some((before, now.rate)),
    }))
}

fn unknown_tools(old: &Snapshot, new: &Snapshot) -> TrialChange {
    let known = |it: &Snapshot| {
        let tools = it.tool_hashes.keys();
        let known = tools.clone().filter(|name| it.tools.contains_key(*name));
        format!("{} of {} tool(s)", known.count(), tools.count())
    };
    let parts = ChangeParts {
        tool: None,
        rule: TrialRule::Tools,
        pointer: "/tools".to_owned(),
        severity: Severity::Warning,
        before: known(old),
        after: known(new),
        message: "a snapshot lacks tools of its suite".to_owned(),
        rates: None,
    };
    parts.into()
}

fn check_comparable(old: &Snapshot, new: &Snapshot) -> Result<(), Incomparable> {
    let names = old.tool_hashes.keys().chain(new.tool_hashes.keys());
    let other = |tool: &&String| old.tool_hashes.get(*tool) != new.tool_hashes.get(*tool);
    let tools: BTreeSet<&String> = names.filter(other).collect();
    if !tools.is_empty() && old.suite == new.suite {
        let tools = tools.into_iter().cloned().collect();
        return Err(Incomparable::Tools { tools });
    }
    // Cases are matched by name, and names are not part of every fingerprint.
    if old.suite != new.suite || old.suite_hash != new.suite_hash || !tools.is_empty() {
        return Err(Incomparable::Suite {
            old: old.suite.clone(),
            new: new.suite.clone(),
        });
    }
    Ok(())
}

fn compare_metrics(old: &Snapshot, new: &Snapshot, options: &Options) -> Vec<MetricComparison> {
    let Metrics { tested, appeared } = metrics(old, new);
    let tests = tested.len();
    let metrics: Vec<Metric> = tested.into_iter().chain(appeared).collect();
    let strata = strata(old, new, &metrics);
    let chances =
        permutation_test::adjusted_p_values(&strata, tests, options.resamples, options.seed);
    let chances = chances.into_iter().chain(std::iter::repeat(1.0));
    let rated = metrics.into_iter().zip(chances).enumerate();
    let judged = rated.filter_map(|(at, (metric, p))| {
        let cases: Vec<(&str, Rate, Rate)> = strata.iter().map(|it| rates(it, at)).collect();
        judge_metric(metric, p, &cases, options)
    });
    judged.collect()
}

/// The good trials of a case on both sides.
fn rates(stratum: &Stratum, metric: usize) -> (&str, Rate, Rate) {
    let (mut old, mut new) = (Rate::default(), Rate::default());
    for OutcomeRow {
        old: before,
        new: now,
        verdicts,
    } in &stratum.rows
    {
        if let Some(good) = verdicts.get(metric).copied().flatten() {
            let of = |trials: u64| Rate::new(if good { trials } else { 0 }, trials);
            old.add(of(*before));
            new.add(of(*now));
        }
    }
    (&stratum.case, old, new)
}

fn judge_metric(
    metric: Metric,
    p: f64,
    cases: &[(&str, Rate, Rate)],
    options: &Options,
) -> Option<MetricComparison> {
    let pairs: Vec<(Rate, Rate)> = cases.iter().map(|(_, old, new)| (*old, *new)).collect();
    let (estimate, mut interval) = difference(&pairs, options.confidence)?;
    let (mut old, mut new) = (Rate::default(), Rate::default());
    for (before, now) in &pairs {
        old.add(*before);
        new.add(*now);
    }
    if let Some(other) =
        bootstrap::bootstrap_cases(&pairs, options.confidence, options.resamples, options.seed)
    {
        interval = interval.hull(other);
    }
    let structural = metric.is_structural() && old.is_always() && new.is_never();
    let is_within = |interval: Interval| interval.lower > -options.allowed_drop;
    let within = is_within(interval);
    let first_seen = metric.breaks_callers() && old.is_always();
    let seen = cases
        .iter()
        .filter(|(_, _, new)| first_seen && new.hits < new.of);
    // Cases that do not show the fault must not make a case that shows it look harmless.
    let harmless = seen.clone().all(|(_, old, new)| {
        let alone = difference(&[(*old, *new)], options.confidence);
        alone.is_some_and(|(_, interval)| is_within(interval))
    });
    let first_seen_in: Vec<String> = seen.map(|(name, ..)| (*name).to_owned()).collect();
    let established = p <= options.established_p();
    // No allowed drop covers a fault with zero tolerance, whether it is new or more frequent.
    let intolerable = metric.is_zero_tolerance();
    let appeared = intolerable && !first_seen_in.is_empty();
    let unseen = estimate >= -1e-9
        && first_seen_in.is_empty()
        && options.pass_criterion == PassCriterion::Seen;
    let verdict = if structural || appeared || established && (intolerable || !within) {
        Verdict::Drift
    } else if within && harmless || unseen {
        Verdict::Pass
    } else {
        Verdict::NotMeasured
    };
    let more_trials = match verdict {
        Verdict::NotMeasured => sample_size::more_trials(&pairs, options),
        Verdict::Pass | Verdict::Drift => None,
    };
    Some(MetricComparison {
        metric,
        old,
        new,
        difference: estimate,
        interval,
        p,
        verdict,
        structural,
        first_seen_in,
        more_trials,
    })
}
