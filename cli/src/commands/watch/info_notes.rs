//! Tools of which one line says everything: what changed has no effect.

use std::collections::BTreeMap;
use std::fmt;

use toolwarden_drift::{Change, ChangeClass, ToolDrift};

use crate::style::escape_controls;

/// The rule of first annotations.
const PUBLISHED: &str = "annotations-published";
/// The rule of changes that state the same route in other words.
const SAME_ROUTE: &str = "same-route";

/// What all changes of a tool are, in the order of the report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InfoNote {
    Published,
    SameRoute,
    /// One side leaves out what the other says; the message names the member.
    Implied(String),
    SameText,
}

impl InfoNote {
    /// The line that says all about a tool. A tool with changes of several kinds has none, and is shown
    /// in full.
    fn of_tool(tool: &ToolDrift) -> Option<Self> {
        let ToolDrift::Changed(drift) = tool else {
            return None;
        };
        if tool.class() != ChangeClass::Info {
            return None;
        }
        let mut notes = drift.changes.iter().map(Self::of_change);
        let first = notes.next().unwrap_or(Self::SameText);
        notes.all(|it| it == first).then_some(first)
    }

    fn of_change(change: &Change) -> Self {
        let is_implied = change.before.is_some() && change.before == change.after;
        match change.rule {
            PUBLISHED => Self::Published,
            SAME_ROUTE => Self::SameRoute,
            "member" if is_implied => Self::Implied(change.message.clone()),
            _ => Self::SameText,
        }
    }
}

impl fmt::Display for InfoNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Published => f.write_str("annotations are published now, and were not"),
            Self::SameRoute => f.write_str("calls go the same way, in other words"),
            Self::Implied(message) => f.write_str(&escape_controls(message)),
            Self::SameText => {
                f.write_str("only spacing, place or generated titles of text changed")
            }
        }
    }
}

/// The tools that share a note, and the tools that have to be shown one by one.
pub(super) fn partition_notes(
    tools: Vec<&ToolDrift>,
) -> (BTreeMap<InfoNote, Vec<&ToolDrift>>, Vec<&ToolDrift>) {
    let mut noted: BTreeMap<InfoNote, Vec<&ToolDrift>> = BTreeMap::new();
    let mut others = Vec::new();
    for tool in tools {
        match InfoNote::of_tool(tool) {
            Some(note) => noted.entry(note).or_default().push(tool),
            None => others.push(tool),
        }
    }
    (noted, others)
}
