use std::fmt;

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::{Pointer, to_canonical_string};
use toolwarden_schema::{Unknown, Verdict, Witness};

use crate::layout::Facet;
use crate::rename::Rename;
use crate::text::{Finding, is_suspicious};
use crate::wording;

/// One difference between two observations, and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The same for the same change of the same tool, whenever it is seen.
    pub id: ChangeId,
    /// The rule that named it.
    pub rule: &'static str,
    /// Where it stands in the definition.
    pub pointer: Pointer,
    /// The part of the definition it belongs to.
    pub facet: Facet,
    /// What happened there.
    pub kind: Kind,
    /// What it means.
    pub class: Class,
    /// What the change of the schema means by itself.
    pub judgement: Option<Judgement>,
    /// The value before.
    pub before: Option<Value>,
    /// The value after.
    pub after: Option<Value>,
    /// Text findings that came with it.
    pub reasons: Vec<Finding>,
    /// The property or tool that goes by another name now.
    pub rename: Option<Rename>,
    /// What becomes of a call that is still accepted.
    pub effect: Option<Effect>,
    /// What a reader should know, in a sentence.
    pub message: String,
}

impl Change {
    /// Whether it is of a class, or carries text that is.
    #[must_use]
    pub fn is(&self, class: Class) -> bool {
        let suspicious = || self.reasons.iter().any(is_suspicious);
        self.class == class || (class == Class::Trust && suspicious())
    }

    /// The text before and after, if it is a change of text that a model reads.
    #[must_use]
    pub fn texts(&self) -> Option<(String, String)> {
        wording::texts(self)
    }

    /// Whether a call that leaves out an optional argument now does something that should be approved
    /// first: the argument is a switch, or the tool changes things.
    #[must_use]
    pub const fn is_unsafe_default(&self) -> bool {
        matches!(
            self.effect,
            Some(Effect::Default {
                replaced: true,
                switch,
                writes,
                ..
            }) if switch || writes
        )
    }
}

/// What becomes of a call that is still accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The tool no longer reads a part of the call.
    Ignored {
        /// A call that both versions accept, and that loses its meaning.
        call: Value,
        /// The part of the call that is ignored.
        pointer: Pointer,
    },
    /// A call that leaves the argument out is completed differently.
    Default {
        /// Such a call as it was completed before and as it is now, where one was found.
        calls: Option<(Value, Value)>,
        /// Whether there was a default before that no longer holds.
        replaced: bool,
        /// Whether the argument is a boolean or one of a few values.
        switch: bool,
        /// Whether the tool may change things: one of the versions does not call itself read-only.
        writes: bool,
    },
}

/// What happened at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// There was nothing before.
    Added,
    /// There is nothing now.
    Removed,
    /// There is something else now.
    Changed,
    /// It goes by another name now.
    Renamed,
}

impl Kind {
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

/// What a change means, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing: the same contract in other words.
    Equivalent,
    /// Something is said that changes nothing: annotations that appear, generated titles, spacing.
    Info,
    /// More is accepted than before.
    Widened,
    /// A promise about results appeared.
    Structural,
    /// The same contract, but a call may have another effect: defaults, the order of values.
    Behavioural,
    /// Text that a model reads changed.
    Text,
    /// A tool that the pinned list did not have.
    Added,
    /// An argument is still accepted and no longer read.
    Ignored,
    /// It was not established what it means; it may break.
    Unknown,
    /// Less caution is asked for, or the text turned against its reader.
    Trust,
    /// Something that worked is rejected now.
    Breaking,
}

impl Class {
    /// Every class, the least grave first.
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

    /// How grave drift of this class is, in the words of the toolwatch document.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Equivalent | Self::Info => Severity::Low,
            Self::Structural | Self::Widened | Self::Behavioural | Self::Text | Self::Added => {
                Severity::Medium
            }
            Self::Ignored | Self::Unknown | Self::Trust | Self::Breaking => Severity::High,
        }
    }
}

/// What the change of a schema means by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The same values are accepted.
    Equivalent,
    /// Everything is still accepted; with a value that is new, where one was found.
    Compatible(Option<Value>),
    /// This value was accepted and is rejected now.
    Breaking(Witness),
    /// Nothing was established.
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

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Equivalent(_) => Self::Equivalent,
            Verdict::Compatible { gained, .. } => Self::Compatible(gained),
            Verdict::Breaking(witness) => Self::Breaking(witness),
            Verdict::Unknown(unknown) => Self::Unknown(unknown),
        }
    }
}

/// What kind of drift the toolwatch document knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    /// The definition changed.
    Schema,
    /// What the tool returns changed.
    Response,
    /// Both did.
    Behavior,
}

impl ChangeType {
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

/// How grave drift is, in the words of the toolwatch document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing to do.
    Low,
    /// Worth a look.
    Medium,
    /// Act.
    High,
}

impl Severity {
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

/// Names one change of one tool. It depends on the tool, the place and both values, on nothing
/// else, so that an approval of a change holds for as long as the change is the same.
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
