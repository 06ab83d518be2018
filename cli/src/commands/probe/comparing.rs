//! What the comparison of two snapshots comes to, whichever rules it follows.

use std::collections::BTreeSet;

use toolwarden_drift::contract::tooldrift::{SnapshotDelta, SnapshotOne, diff};
use toolwarden_drift::contract::{
    AnySnapshot, Comparison, ContractChange, Incomparable, Options, Pinned, Severity, Snapshot,
    Verdict, against_pinned, compare, conformance,
};

use super::rows::{self, Row};
use super::{ProbeError, pinning};
use crate::args::{Compat, FailsFor, JudgeArgs};

/// Two sides and what differs.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) suite: String,
    /// Every tool that was compared.
    pub(super) tools: Vec<String>,
    pub(super) rows: Vec<Row>,
    pub(super) verdict: Verdict,
    pub(super) by: By,
}

/// By which rules.
#[derive(Debug)]
pub(super) enum By {
    /// Ours.
    Trials(Box<Comparison>),
    /// Those of tooldrift.
    Tooldrift(SnapshotDelta),
    /// What a contract pins.
    Pinned,
}

/// Compares two snapshots. Those of tooldrift are compared by its rules, and so is everything where
/// that is asked for.
pub(super) fn snapshots(
    old: &AnySnapshot,
    new: &AnySnapshot,
    args: &JudgeArgs,
) -> Result<Compared, ProbeError> {
    same_suite(old, new)?;
    match (old, new) {
        // Our own know what was asked, so that other questions are refused whichever rules apply.
        (AnySnapshot::Two(old), AnySnapshot::Two(new))
            if args.compat.is_none() || !same_question(old, new) =>
        {
            trials(old, new, args)
        }
        _ => {
            let (Some(one), Some(other)) = (kept(old), kept(new)) else {
                return Err(ProbeError::Mixed {
                    old: label(old),
                    new: label(new),
                });
            };
            Ok(fields(&one, &other, args))
        }
    }
}

/// Compares two of ours.
pub(super) fn trials(
    old: &Snapshot,
    new: &Snapshot,
    args: &JudgeArgs,
) -> Result<Compared, ProbeError> {
    let options = Options {
        allowed_drop: args.allowed_drop,
        ..Options::default()
    };
    let comparison = compare(old, new, &options).map_err(|source| ProbeError::Incomparable {
        old: old.label(),
        new: new.label(),
        source,
    })?;
    let single = old.trials.measured == 1 && new.trials.measured == 1;
    let rows = match (old.to_tooldrift(), new.to_tooldrift()) {
        (Some(one), Some(other)) if single => {
            rows::merged(&diff(&one, &other), &comparison.changes)
        }
        _ => rows::of_changes(&comparison.changes),
    };
    Ok(Compared {
        old: old.label(),
        new: new.label(),
        suite: new.suite.clone(),
        tools: new.tools.keys().cloned().collect(),
        rows,
        verdict: comparison.verdict,
        by: By::Trials(Box::new(comparison)),
    })
}

/// Suites of other names have other cases. Files of tooldrift may lack the name.
fn same_suite(old: &AnySnapshot, new: &AnySnapshot) -> Result<(), ProbeError> {
    let suite = |it: &AnySnapshot| match it {
        AnySnapshot::One(one) => one.suite.clone(),
        AnySnapshot::Two(two) => two.suite.clone(),
    };
    let (one, other) = (suite(old), suite(new));
    if one.is_empty() || other.is_empty() || one == other {
        return Ok(());
    }
    Err(ProbeError::Incomparable {
        old: label(old),
        new: label(new),
        source: Incomparable::Suite {
            old: one,
            new: other,
        },
    })
}

fn same_question(old: &Snapshot, new: &Snapshot) -> bool {
    old.suite_hash == new.suite_hash && old.tool_hashes == new.tool_hashes
}

/// Holds a snapshot to what a contract pins. Tooldrift has what is pinned as the new side.
pub(super) fn pinned(taken: &Snapshot, expected: &Pinned, args: &JudgeArgs) -> Compared {
    let mut changes = against_pinned(taken, expected);
    if args.compat.is_none() {
        let wrong = conformance(taken).into_iter();
        changes.extend(wrong.map(|it| weighed(it, taken)));
    }
    let (pins, label) = ("expected/pinned".to_owned(), taken.label());
    let (old, new, rows) = match args.compat {
        None => (pins, label, rows::of_changes(&changes)),
        Some(Compat::Tooldrift) => (label, pins, pinning::rows(taken, expected, &changes)),
    };
    let breaks = rows.iter().any(|it| it.severity == Severity::Breaking);
    Compared {
        old,
        new,
        suite: taken.suite.clone(),
        tools: shown(taken, expected, &rows),
        rows,
        verdict: match (taken.is_measured(), breaks) {
            (false, _) => Verdict::Inconclusive,
            (true, true) => Verdict::Fail,
            (true, false) => Verdict::Pass,
        },
        by: By::Pinned,
    }
}

/// The tools that are pinned, and those of the suite that there is something to say of.
fn shown(taken: &Snapshot, expected: &Pinned, rows: &[Row]) -> Vec<String> {
    let told = rows.iter().filter_map(|row| row.tool.as_ref());
    let told = told.filter(|tool| taken.tools.contains_key(*tool));
    let shown: BTreeSet<&String> = expected.keys().chain(told).collect();
    shown.into_iter().cloned().collect()
}

/// What is wrong with a model by itself, whatever is pinned. Arguments of tools that are not pinned warn.
/// What nobody offered or forbade, leaked or expected otherwise breaks, if it is so in half of the trials
/// or more: there is no other side to tell chance by.
fn weighed(mut wrong: ContractChange, taken: &Snapshot) -> ContractChange {
    let often = wrong.rates.and_then(|(_, now)| now.share());
    let tool = wrong.tool.as_deref();
    let declared = tool.is_some_and(|tool| taken.tools.contains_key(tool));
    if declared || often.is_some_and(|share| share < 0.5) {
        wrong.severity = Severity::Warning;
    }
    wrong
}

fn fields(old: &SnapshotOne, new: &SnapshotOne, args: &JudgeArgs) -> Compared {
    let delta = diff(old, new);
    Compared {
        old: delta.old_label.clone(),
        new: delta.new_label.clone(),
        suite: delta.suite.clone(),
        tools: delta.tools.iter().map(|it| it.tool.clone()).collect(),
        rows: match args.compat {
            Some(Compat::Tooldrift) => rows::of_tooldrift(&delta, Severity::Warning),
            // Callers do not know a tool that nobody offered, and miss one that is gone.
            None => rows::of_tooldrift(&delta, Severity::Breaking),
        },
        verdict: if delta.is_equivalent() {
            Verdict::Pass
        } else {
            Verdict::Fail
        },
        by: By::Tooldrift(delta),
    }
}

fn kept(snapshot: &AnySnapshot) -> Option<SnapshotOne> {
    match snapshot {
        AnySnapshot::One(one) => Some(one.clone()),
        AnySnapshot::Two(two) => two.to_tooldrift(),
    }
}

fn label(snapshot: &AnySnapshot) -> String {
    match snapshot {
        AnySnapshot::One(one) => format!("{}/{}", one.provider, one.model_id),
        AnySnapshot::Two(two) => two.label(),
    }
}

impl Compared {
    /// How grave the gravest difference is.
    pub(super) fn gravest(&self) -> Option<Severity> {
        self.rows.iter().map(|it| it.severity).max()
    }

    /// Whether a tool differs by more than what is only good to know.
    pub(super) fn differs(&self, tool: &str) -> bool {
        let mut rows = self.rows.iter().filter(|it| it.severity > Severity::Info);
        rows.any(|it| it.tool.as_deref() == Some(tool))
    }
}

impl JudgeArgs {
    /// From where on a difference makes the command fail. Tooldrift fails for any.
    pub(super) fn fails_from(&self) -> Severity {
        let usual = match self.compat {
            Some(Compat::Tooldrift) => FailsFor::Any,
            None => FailsFor::Breaking,
        };
        match self.fail_on.unwrap_or(usual) {
            FailsFor::Breaking => Severity::Breaking,
            FailsFor::Any => Severity::Warning,
        }
    }
}

/// What all comparisons come to.
pub(super) fn verdict(
    compared: &[Compared],
    args: &JudgeArgs,
    measured: bool,
) -> crate::output::Verdict {
    let from = args.fails_from();
    let fails = |it: &Compared| {
        let drift = matches!(&it.by, By::Tooldrift(delta) if !delta.is_equivalent());
        it.gravest() >= Some(from) || drift && from == Severity::Warning
    };
    if compared.iter().any(fails) {
        return crate::output::Verdict::Finding;
    }
    let open = compared
        .iter()
        .any(|it| it.verdict == Verdict::Inconclusive);
    crate::output::Verdict::measured(measured && !open)
}
