//! Two snapshots of the same suite.

mod bootstrap;
mod describe;
mod habits;
mod identity;
mod metric;
mod shuffle;

use std::collections::BTreeSet;

use thiserror::Error;

pub use metric::Metric;

use self::metric::{Row, Stratum, metrics, strata};
use super::change::{ContractChange, Severity, sort};
use super::rate::Rate;
use super::snapshot::{Snapshot, TrialCounts};
use super::statistics::{Confidence, Interval, difference};

/// The part of the error that shuffles may take; the structural rule errs by itself.
const KEPT: f64 = 0.94;

/// How two snapshots are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How far a share may drop without being missed.
    pub allowed_drop: f64,
    /// How sure statements are to be.
    pub confidence: Confidence,
    /// What a pass takes.
    pub evidence: Evidence,
    /// Where chance starts.
    pub seed: u64,
    /// How often sides are shuffled and cases are drawn.
    pub resamples: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowed_drop: 0.1,
            confidence: Confidence::P95,
            evidence: Evidence::Seen,
            seed: 0x7077_1006,
            resamples: 10_000,
        }
    }
}

/// What a pass takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// No drop was seen, or one is shown to be within what is allowed.
    #[default]
    Seen,
    /// Every drop beyond what is allowed is ruled out, which takes many trials.
    Proven,
}

/// Why two snapshots cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomparable {
    /// They are of other suites.
    #[error("the snapshots are of different suites: `{old}` and `{new}`{}", if old == new { ", which is no longer the same" } else { "" })]
    Suite {
        /// That of the old one.
        old: String,
        /// That of the new one.
        new: String,
    },
    /// Tools have other definitions.
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

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The new model can take the place of the old one, as far as the trials show.
    Pass,
    /// The trials do not tell.
    Inconclusive,
    /// It cannot.
    Fail,
}

impl Verdict {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// What differs between two snapshots, and what that comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What it comes to.
    pub verdict: Verdict,
    /// The differences, by tool, the gravest first.
    pub changes: Vec<ContractChange>,
    /// The shares that were compared.
    pub metrics: Vec<MetricComparison>,
    /// The tools without a difference that breaks or warns, and with nothing left open.
    pub equivalent_tools: Vec<String>,
    /// The cases that were measured on one side only, or on none.
    pub unmeasured_cases: Vec<String>,
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
    /// Between what that lies.
    pub interval: Interval,
    /// How likely a drop as far beyond chance is in any share, if both sides are the same.
    pub p: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Whether the new side always does what the old one never did, and must not.
    pub structural: bool,
    /// The cases in which the new side does what breaks a caller and the old side never did.
    pub first_seen_in: Vec<String>,
}

/// Compares two snapshots of the same suite. The rules are those of the [module](super).
///
/// # Errors
/// The suites or the definitions of tools are not the same.
pub fn compare(
    old: &Snapshot,
    new: &Snapshot,
    options: &Options,
) -> Result<Comparison, Incomparable> {
    comparable(old, new)?;
    let metrics = compared(old, new, options);
    let mut changes = describe::changes(old, new, &metrics);
    habits::changes(old, new, &mut changes);
    let hollow = is_hollow(old) || is_hollow(new);
    if hollow {
        changes.push(unknown_tools(old, new));
    }
    sort(&mut changes);
    let cases: BTreeSet<&String> = old.cases.keys().chain(new.cases.keys()).collect();
    let measured = |it: &Snapshot, name: &str| it.cases.get(name).is_some_and(|it| it.measured > 0);
    let unmeasured = cases
        .into_iter()
        .filter(|name| !measured(old, name) || !measured(new, name));
    let unmeasured_cases: Vec<String> = unmeasured.cloned().collect();
    let open = |it: &&MetricComparison| it.verdict == Verdict::Inconclusive;
    let is_open = metrics.iter().any(|it| open(&it) && it.metric.is_needed());
    let breaking = changes.iter().any(|it| it.severity == Severity::Breaking)
        || metrics.iter().any(|it| it.verdict == Verdict::Fail);
    let verdict = if !old.is_measured() || !new.is_measured() {
        Verdict::Inconclusive
    } else if breaking {
        Verdict::Fail
    } else if is_open || hollow || !unmeasured_cases.is_empty() {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    let differs = |tool: &str| {
        let mut grave = changes.iter().filter(|it| it.severity > Severity::Info);
        let mut open = metrics.iter().filter(open);
        grave.any(|it| it.tool.as_deref() == Some(tool))
            || open.any(|it| it.metric.tool() == Some(tool))
    };
    let measured = old.is_measured() && new.is_measured();
    let equivalent = new.tools.keys().filter(|tool| measured && !differs(tool));
    Ok(Comparison {
        verdict,
        equivalent_tools: equivalent.cloned().collect(),
        changes,
        metrics,
        unmeasured_cases,
        old_trials: old.trials.clone(),
        new_trials: new.trials.clone(),
    })
}

/// Whether a snapshot says nothing of a tool of its suite.
fn is_hollow(snapshot: &Snapshot) -> bool {
    let tools = &snapshot.tools;
    let known = |name: &String| tools.contains_key(name);
    tools.is_empty() || !snapshot.tool_hashes.keys().all(known)
}

fn unknown_tools(old: &Snapshot, new: &Snapshot) -> ContractChange {
    let known = |it: &Snapshot| {
        let tools = it.tool_hashes.keys();
        let known = tools.clone().filter(|name| it.tools.contains_key(*name));
        format!("{} of {} tool(s)", known.count(), tools.count())
    };
    ContractChange {
        tool: None,
        field: "tools".to_owned(),
        pointer: "/tools".to_owned(),
        severity: Severity::Warning,
        before: known(old),
        after: known(new),
        note: "a snapshot says nothing of tools of its suite".to_owned(),
        rates: None,
    }
}

fn comparable(old: &Snapshot, new: &Snapshot) -> Result<(), Incomparable> {
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

fn compared(old: &Snapshot, new: &Snapshot, options: &Options) -> Vec<MetricComparison> {
    let metrics = metrics(old, new);
    let strata = strata(old, new, &metrics);
    let chances = shuffle::adjusted(&strata, metrics.len(), options.resamples, options.seed);
    let rated = metrics.into_iter().zip(chances).enumerate();
    let judged = rated.filter_map(|(at, (metric, p))| {
        let cases: Vec<(&str, Rate, Rate)> = strata.iter().map(|it| rates(it, at)).collect();
        judged(metric, p, &cases, options)
    });
    judged.collect()
}

/// The good trials of a case on both sides.
fn rates(stratum: &Stratum, metric: usize) -> (&str, Rate, Rate) {
    let (mut old, mut new) = (Rate::default(), Rate::default());
    for Row {
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

fn judged(
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
        bootstrap::over_cases(&pairs, options.confidence, options.resamples, options.seed)
    {
        interval = interval.hull(other);
    }
    let structural = metric.is_structural() && old.is_always() && new.is_never();
    let is_within = |interval: Interval| interval.lower > -options.allowed_drop;
    let within = is_within(interval);
    let first_seen = metric.is_grave() && old.is_always();
    let seen = cases
        .iter()
        .filter(|(_, _, new)| first_seen && new.hits < new.of);
    // Cases in which it is not seen must not make one in which it is look harmless.
    let harmless = seen.clone().all(|(_, old, new)| {
        let alone = difference(&[(*old, *new)], options.confidence);
        alone.is_some_and(|(_, interval)| is_within(interval))
    });
    let first_seen_in: Vec<String> = seen.map(|(name, ..)| (*name).to_owned()).collect();
    let established = p <= options.confidence.error() * KEPT;
    let unseen =
        estimate >= -1e-9 && first_seen_in.is_empty() && options.evidence == Evidence::Seen;
    let verdict = if structural || established && !within {
        Verdict::Fail
    } else if within && harmless || unseen {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
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
    })
}
