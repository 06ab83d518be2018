use std::fmt;

use serde_json::Value;
use toolwarden_model::json::{Pointer, to_canonical_string};
use toolwarden_model::{Fingerprint, Severity};
use toolwarden_schema::{SchemaVerdict, Unknown, Witness};

use crate::facet::Facet;
use crate::rename::Rename;
use crate::text::TextFinding;
use crate::text_changes;

/// One difference between two observations, and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Identifies the same change of the same tool across observations.
    pub id: ChangeId,
    /// The rule that reported it.
    pub rule: &'static str,
    /// Its place in the definition.
    pub pointer: Pointer,
    /// The part of the definition it belongs to.
    pub facet: Facet,
    /// What happened there.
    pub kind: ChangeKind,
    /// What it means.
    pub class: ChangeClass,
    /// What the schema change means on its own, apart from the other changes.
    pub judgement: Option<Judgement>,
    /// The value before.
    pub before: Option<Value>,
    /// The value after.
    pub after: Option<Value>,
    /// Text findings that this change introduced.
    pub reasons: Vec<TextFinding>,
    /// The property or tool that was renamed.
    pub rename: Option<Rename>,
    /// The effect on a call that is still accepted.
    pub effect: Option<CallEffect>,
    /// One sentence for the reader.
    pub message: String,
}

impl Change {
    /// Whether the change, or text that it introduces, is of this class.
    #[must_use]
    pub fn has_class(&self, class: ChangeClass) -> bool {
        self.class == class || (class == ChangeClass::Trust && !self.reasons.is_empty())
    }

    /// The text before and after, if the change is of text that a model reads.
    #[must_use]
    pub fn texts(&self) -> Option<(String, String)> {
        text_changes::texts(self)
    }

    /// Whether a call that leaves out an optional argument now does something that should be approved
    /// first: the argument is a switch, or the tool changes things.
    #[must_use]
    pub const fn is_unsafe_default(&self) -> bool {
        matches!(
            self.effect,
            Some(CallEffect::Default {
                replaced: true,
                switch,
                writes,
                ..
            }) if switch || writes
        )
    }
}

/// The effect on a call that is still accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEffect {
    /// The tool no longer reads a part of the call.
    Ignored {
        /// A call that both versions accept and that loses part of its meaning.
        call: Value,
        /// The part of the call that is ignored.
        pointer: Pointer,
    },
    /// A call that leaves the argument out is completed differently.
    Default {
        /// Such a call, completed with the old and with the new default, if one was found.
        calls: Option<(Value, Value)>,
        /// Whether there was a default before that no longer holds.
        replaced: bool,
        /// Whether the argument is a boolean or one of a few values.
        switch: bool,
        /// Whether the tool may change things: one of the versions does not call itself read-only.
        writes: bool,
    },
}

/// What happened at a place in the definition.
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

/// What a schema change means on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The same values are accepted.
    Equivalent,
    /// Everything is still accepted. Holds a newly accepted value, if one was found.
    Compatible(Option<Value>),
    /// This value was accepted and is now rejected.
    Breaking(Witness),
    /// The comparison could not decide.
    Unknown(Unknown),
}

impl Judgement {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Compatible(_) => "compatible",
            Self::Breaking(_) => "breaking",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl From<SchemaVerdict> for Judgement {
    fn from(verdict: SchemaVerdict) -> Self {
        match verdict {
            SchemaVerdict::Equivalent(_) => Self::Equivalent,
            SchemaVerdict::Compatible { gained, .. } => Self::Compatible(gained),
            SchemaVerdict::Breaking(witness) => Self::Breaking(witness),
            SchemaVerdict::Unknown(unknown) => Self::Unknown(unknown),
        }
    }
}

/// The kinds of drift in the toolwatch document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolwatchChangeType {
    /// The definition changed.
    Schema,
    /// What the tool returns changed.
    Response,
    /// Both did.
    Behavior,
}

impl ToolwatchChangeType {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Schema, Self::Response, Self::Behavior];

    /// The word of the toolwatch document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema_change",
            Self::Response => "response_change",
            Self::Behavior => "behavior_change",
        }
    }
}

/// The words for a [`Severity`] in the toolwatch document, which alerts and settings share. Only what
/// reads or writes these words uses this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolwatchSeverity {
    /// No action needed.
    Low,
    /// Review it.
    Medium,
    /// Act on it.
    High,
}

impl ToolwatchSeverity {
    /// Every word, from least to most severe.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The severity that the word stands for.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Low => Severity::Info,
            Self::Medium => Severity::Warning,
            Self::High => Severity::Breaking,
        }
    }

    /// The word of the toolwatch document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl From<Severity> for ToolwatchSeverity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Low,
            Severity::Warning => Self::Medium,
            Severity::Breaking => Self::High,
        }
    }
}

/// Identifies one change of one tool. It depends only on the tool, the place and both values, so an
/// approval stays valid as long as the change stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId([u8; 6]);

impl ChangeId {
    pub(crate) fn of(
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
