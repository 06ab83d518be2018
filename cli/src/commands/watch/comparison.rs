//! Drift with everything a report of it needs.

use std::collections::BTreeMap;

use toolwarden_drift::{Class, ListDrift, Options, ToolDrift};
use toolwarden_schema::{Callers, Formats};
use toolwarden_warden::ComparisonTime;

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

    /// Whether anything fails.
    pub(super) fn failed(&self) -> bool {
        self.drift.tools.iter().any(|tool| self.fails(tool))
    }
}

fn fails(fail_on: &[FailOn], tool: &ToolDrift) -> bool {
    let wants = |wanted: FailOn| fail_on.contains(&wanted);
    let classes = [
        (FailOn::Breaking, Class::Breaking),
        (FailOn::Widened, Class::Widened),
        (FailOn::Trust, Class::Trust),
        (FailOn::Structural, Class::Structural),
        (FailOn::Behavioural, Class::Behavioural),
        (FailOn::Unknown, Class::Unknown),
    ];
    let is_new = matches!(tool, ToolDrift::Added { .. });
    !wants(FailOn::None)
        && (wants(FailOn::Any)
            || (is_new && wants(FailOn::New))
            || classes
                .iter()
                .any(|(wanted, class)| wants(*wanted) && tool.is(*class)))
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
