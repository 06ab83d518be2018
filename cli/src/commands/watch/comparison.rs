//! Drift with everything a report of it needs.

use std::collections::BTreeMap;

use toolwarden_drift::{Change, ChangeClass, ListDrift, Options, ToolDrift};
use toolwarden_schema::{Callers, FormatMode};
use toolwarden_settings::ComparisonTimeouts;

use clap::ValueEnum as _;

use crate::args::{CallerPolicy, CompareArgs, FailOn};
use crate::error::CliError;
use crate::input::SourceLocation;

/// What became of the tools of one server, and what of it fails.
pub(super) struct ServerComparison<'c> {
    pub(super) options: Options,
    pub(super) fail_on: &'c [FailOn],
    /// Where tools stand, by name.
    pub(super) locations: &'c BTreeMap<String, SourceLocation>,
    /// Every tool that was checked.
    pub(super) subjects: Vec<String>,
    /// The server, where tools of several servers may be reported together.
    pub(super) server: Option<&'c str>,
    pub(super) drift: &'c ListDrift,
}

impl ServerComparison<'_> {
    /// Where a tool stands now, or stood where there is none any more.
    pub(super) fn location(&self, tool: &ToolDrift) -> Option<&SourceLocation> {
        self.locations.get(tool.tool())
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
    pub(super) fn has_failures(&self) -> bool {
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

/// What a comparison of two versions fails on where nothing is said: it has no pins, so a tool that
/// appeared and plain changes of text are only listed.
pub(super) const DIFF_FAILS_ON: [FailOn; 5] = [
    FailOn::Breaking,
    FailOn::Trust,
    FailOn::Unknown,
    FailOn::Ignored,
    FailOn::Default,
];

/// What fails: what is said or else the default, without what is allowed.
///
/// Words that contradict each other are refused: whichever of them won, the other would be ignored
/// without a word.
pub(super) fn effective_fail_on(
    said: &[FailOn],
    default: &[FailOn],
    allowed: &[FailOn],
) -> Result<Vec<FailOn>, CliError> {
    let contradiction = |one: String, other: String| CliError::Contradiction { one, other };
    let fail_on = |word: FailOn| format!("--fail-on {}", word_of(word));
    let allow = |word: FailOn| format!("--allow {}", word_of(word));
    if said.contains(&FailOn::None)
        && let Some(other) = said.iter().find(|word| **word != FailOn::None)
    {
        return Err(contradiction(fail_on(FailOn::None), fail_on(*other)));
    }
    if let Some(word) = allowed
        .iter()
        .find(|word| matches!(word, FailOn::Any | FailOn::None))
    {
        return Err(CliError::AllowsNoClass {
            word: word_of(*word),
        });
    }
    if let Some(both) = allowed.iter().find(|word| said.contains(word)) {
        return Err(contradiction(fail_on(*both), allow(*both)));
    }
    if said.contains(&FailOn::None)
        && let Some(needless) = allowed.first()
    {
        return Err(contradiction(fail_on(FailOn::None), allow(*needless)));
    }
    let wanted = if said.is_empty() { default } else { said };
    if allowed.is_empty() {
        return Ok(wanted.to_vec());
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
    Ok(kept.collect())
}

/// The word of the command line.
fn word_of(word: FailOn) -> String {
    let value = word.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The classes that have a word.
const CLASSES: [(FailOn, ChangeClass); 11] = [
    (FailOn::Breaking, ChangeClass::Breaking),
    (FailOn::Trust, ChangeClass::Trust),
    (FailOn::Unknown, ChangeClass::Unknown),
    (FailOn::Ignored, ChangeClass::Ignored),
    (FailOn::Added, ChangeClass::Added),
    (FailOn::Text, ChangeClass::Text),
    (FailOn::Behavioural, ChangeClass::Behavioural),
    (FailOn::Widened, ChangeClass::Widened),
    (FailOn::Structural, ChangeClass::Structural),
    (FailOn::Info, ChangeClass::Info),
    (FailOn::Equivalent, ChangeClass::Equivalent),
];

/// Whether what happened to a tool fails.
pub(super) fn fails(fail_on: &[FailOn], tool: &ToolDrift) -> bool {
    if fail_on.contains(&FailOn::None) {
        return false;
    }
    let mut classes = CLASSES.iter();
    let by_class = classes.any(|(word, class)| fail_on.contains(word) && tool.has_class(*class));
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
        || classes.any(|(word, class)| fail_on.contains(word) && change.has_class(*class))
        || (fail_on.contains(&FailOn::Default) && change.evidence.is_unsafe_default())
}

impl CompareArgs {
    pub(super) fn options(&self) -> Options {
        Options {
            callers: match self.policy {
                CallerPolicy::Declared => Callers::Declared,
                CallerPolicy::Open => Callers::Open,
            },
            formats: if self.assert_formats {
                FormatMode::Assert
            } else {
                FormatMode::Annotate
            },
            budget: ComparisonTimeouts::INTERACTIVE.budget(),
        }
    }
}
