//! Drift with everything a report of it needs.

use std::collections::BTreeMap;

use toolwarden_drift::{Change, Class, ListDrift, Options, ToolDrift};
use toolwarden_schema::{Callers, Formats};
use toolwarden_warden::ComparisonTime;

use clap::ValueEnum as _;

use crate::args::{CallerPolicy, CompareArgs, FailOn};
use crate::input::KeptPlace;

/// What became of the tools of one server, and what of it fails.
pub(super) struct Comparison<'c> {
    pub(super) options: Options,
    pub(super) fail_on: &'c [FailOn],
    /// Where tools stand, by name.
    pub(super) places: &'c BTreeMap<String, KeptPlace>,
    /// Every tool that was looked at.
    pub(super) subjects: Vec<String>,
    pub(super) drift: &'c ListDrift,
}

impl Comparison<'_> {
    /// Where a tool stands now, or stood where there is none any more.
    pub(super) fn place(&self, tool: &ToolDrift) -> Option<&KeptPlace> {
        self.places.get(tool.tool())
    }

    /// Whether what happened to a tool is what the caller wants to fail on.
    pub(super) fn fails(&self, tool: &ToolDrift) -> bool {
        fails(self.fail_on, tool)
    }

    /// Whether one change is what the caller wants to fail on.
    pub(super) fn fails_change(&self, change: &Change) -> bool {
        fails_change(self.fail_on, change)
    }

    /// Whether anything fails.
    pub(super) fn failed(&self) -> bool {
        self.drift.tools.iter().any(|tool| self.fails(tool))
    }
}

/// What a check fails on where nothing is said: everything that should not reach callers or models
/// before a person approved it.
pub(super) const CHECK_FAILS_ON: [FailOn; 7] = [
    FailOn::Breaking,
    FailOn::Trust,
    FailOn::Unknown,
    FailOn::Ignored,
    FailOn::Added,
    FailOn::Text,
    FailOn::Default,
];

/// What fails: what is said or else the default, without what is allowed.
pub(super) fn failing(said: &[FailOn], default: &[FailOn], allowed: &[FailOn]) -> Vec<FailOn> {
    let wanted = if said.is_empty() { default } else { said };
    if allowed.is_empty() {
        return wanted.to_vec();
    }
    let every: Vec<FailOn> = if wanted.contains(&FailOn::Any) {
        let words = FailOn::value_variants().iter().copied();
        words
            .filter(|word| !matches!(word, FailOn::Any | FailOn::None))
            .collect()
    } else {
        wanted.to_vec()
    };
    let kept = every.into_iter().filter(|word| !allowed.contains(word));
    kept.collect()
}

/// The classes that have a word.
const CLASSES: [(FailOn, Class); 11] = [
    (FailOn::Breaking, Class::Breaking),
    (FailOn::Trust, Class::Trust),
    (FailOn::Unknown, Class::Unknown),
    (FailOn::Ignored, Class::Ignored),
    (FailOn::Added, Class::Added),
    (FailOn::Text, Class::Text),
    (FailOn::Behavioural, Class::Behavioural),
    (FailOn::Widened, Class::Widened),
    (FailOn::Structural, Class::Structural),
    (FailOn::Info, Class::Info),
    (FailOn::Equivalent, Class::Equivalent),
];

/// Whether what happened to a tool fails.
pub(super) fn fails(fail_on: &[FailOn], tool: &ToolDrift) -> bool {
    if fail_on.contains(&FailOn::None) {
        return false;
    }
    let mut classes = CLASSES.iter();
    let by_class = classes.any(|(word, class)| fail_on.contains(word) && tool.is(*class));
    let by_change = match tool {
        ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. } => {
            drift.changes.iter().any(|it| fails_change(fail_on, it))
        }
        ToolDrift::Added { .. } | ToolDrift::Removed { .. } => false,
    };
    fail_on.contains(&FailOn::Any) || by_class || by_change
}

fn fails_change(fail_on: &[FailOn], change: &Change) -> bool {
    if fail_on.contains(&FailOn::None) {
        return false;
    }
    let mut classes = CLASSES.iter();
    fail_on.contains(&FailOn::Any)
        || classes.any(|(word, class)| fail_on.contains(word) && change.is(*class))
        || (fail_on.contains(&FailOn::Default) && change.is_unsafe_default())
}

impl CompareArgs {
    pub(super) fn options(&self) -> Options {
        Options {
            callers: match self.policy {
                CallerPolicy::Declared => Callers::Declared,
                CallerPolicy::Open => Callers::Open,
            },
            formats: if self.assert_formats {
                Formats::Assert
            } else {
                Formats::Annotate
            },
            budget: ComparisonTime::ATTENDED.budget(),
        }
    }
}
