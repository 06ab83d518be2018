use std::fmt;

use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::json::{Pointer, to_canonical_string};
use crate::severity::Severity;

/// One difference between a baseline and what was observed: of a definition, of results, or of the way
/// a model calls tools. Every report and every alert is made of these.
///
/// `E` is what the comparison that found it knows beyond that: a witness, findings in text, rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<E> {
    /// Identifies the same change of the same tool across observations.
    pub id: ChangeId,
    /// The tool it is about, if it is about one.
    pub tool: Option<String>,
    /// The rule that reported it.
    pub rule: &'static str,
    /// Its place in the definition, the result, the arguments or the snapshot.
    pub pointer: Pointer,
    /// What happened there.
    pub kind: ChangeKind,
    /// What it means.
    pub class: ChangeClass,
    /// The value before.
    pub before: Option<Value>,
    /// The value after.
    pub after: Option<Value>,
    /// One sentence for the reader.
    pub message: String,
    /// What only this kind of comparison knows.
    pub evidence: E,
}

impl<E> Change<E> {
    /// How severe it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.class.severity()
    }

    /// The common record alone.
    #[must_use]
    pub fn without_evidence(self) -> Change<()> {
        Change {
            id: self.id,
            tool: self.tool,
            rule: self.rule,
            pointer: self.pointer,
            kind: self.kind,
            class: self.class,
            before: self.before,
            after: self.after,
            message: self.message,
            evidence: (),
        }
    }

    /// The value before as text, empty if there was none.
    #[must_use]
    pub fn before_text(&self) -> String {
        value_text(self.before.as_ref())
    }

    /// The value after as text, empty if there is none.
    #[must_use]
    pub fn after_text(&self) -> String {
        value_text(self.after.as_ref())
    }
}

impl<E: ChangeEvidence> Change<E> {
    /// Whether the change, or something that it introduces, is of this class.
    #[must_use]
    pub fn has_class(&self, class: ChangeClass) -> bool {
        self.class == class || self.evidence.introduces(class)
    }
}

/// What one kind of comparison knows of a change beyond the common record.
pub trait ChangeEvidence {
    /// Whether the evidence belongs to a class besides that of the change itself.
    fn introduces(&self, class: ChangeClass) -> bool;
}

fn value_text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => to_canonical_string(value),
    }
}

/// A one-line summary of changes: the first message, and how many more there are.
#[must_use]
pub fn summarize_changes<E>(changes: &[Change<E>]) -> String {
    let first = changes.first().map(|change| change.message.clone());
    let more = match changes.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    first.unwrap_or_default() + &more
}

/// What happened at the place of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// There was nothing before.
    Added,
    /// There is nothing now.
    Removed,
    /// There is something else now.
    Changed,
    /// It was renamed.
    Renamed,
}

impl ChangeKind {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Renamed => "renamed",
        }
    }
}

/// What a change means, ordered from least to most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeClass {
    /// No effect: the same contract in other words.
    Equivalent,
    /// A statement without effect: new annotations, generated titles, spacing.
    Info,
    /// More is accepted than before.
    Widened,
    /// The tool now promises a schema for its results.
    Structural,
    /// The same contract, but a call may have another effect: defaults, the order of values.
    Behavioural,
    /// Text that a model reads changed.
    Text,
    /// A tool that is not in the pinned list.
    Added,
    /// An argument is still accepted but no longer read.
    Ignored,
    /// The effect could not be determined; the change may break callers.
    Unknown,
    /// A hint asks for less caution, or the text now works against its reader.
    Trust,
    /// Something that worked is now rejected.
    Breaking,
}

impl ChangeClass {
    /// Every class, from least to most severe.
    pub const ALL: [Self; 11] = [
        Self::Equivalent,
        Self::Info,
        Self::Widened,
        Self::Structural,
        Self::Behavioural,
        Self::Text,
        Self::Added,
        Self::Ignored,
        Self::Unknown,
        Self::Trust,
        Self::Breaking,
    ];

    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Info => "info",
            Self::Structural => "structural",
            Self::Widened => "widened",
            Self::Behavioural => "behavioural",
            Self::Text => "text",
            Self::Added => "added",
            Self::Ignored => "ignored",
            Self::Unknown => "unknown",
            Self::Trust => "trust",
            Self::Breaking => "breaking",
        }
    }

    /// The severity of this class.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Equivalent | Self::Info => Severity::Info,
            Self::Structural | Self::Widened | Self::Behavioural | Self::Text | Self::Added => {
                Severity::Warning
            }
            Self::Ignored | Self::Unknown | Self::Trust | Self::Breaking => Severity::Breaking,
        }
    }
}

/// The class of a change of which only the severity is known.
impl From<Severity> for ChangeClass {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warning => Self::Behavioural,
            Severity::Breaking => Self::Breaking,
        }
    }
}

/// Identifies one change of one tool. It depends only on the tool, the place and both values, so an
/// approval stays valid as long as the change stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId([u8; 6]);

impl ChangeId {
    /// The id of a change. What may differ from one observation to the next, such as a count, must not
    /// be among its parts.
    #[must_use]
    pub fn of(
        tool: &str,
        rule: &str,
        pointer: &Pointer,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Self {
        let digest = |value: Option<&Value>| value.map_or_else(String::new, to_canonical_string);
        let (before, after) = (digest(before), digest(after));
        let parts = [tool, rule, pointer.as_str(), &before, &after];
        let [a, b, c, d, e, f, ..] = *Fingerprint::tagged("toolwarden/change/v1", parts).as_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
