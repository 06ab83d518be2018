use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::{ChangeEvidence, Severity};
use toolwarden_schema::{SchemaVerdict, Unknown, Witness};

use crate::facet::Facet;
use crate::rename::Rename;
use crate::text::TextFinding;

pub use toolwarden_model::{ChangeClass, ChangeId, ChangeKind};

/// One difference between two observations of a tool, and what it means.
pub type Change = toolwarden_model::Change<DefinitionEvidence>;

/// What the comparison of definitions and results knows of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionEvidence {
    /// The part of the definition it belongs to.
    pub facet: Facet,
    /// What the schema change means on its own, apart from the other changes.
    pub judgement: Option<Judgement>,
    /// Text findings that this change introduced.
    pub reasons: Vec<TextFinding>,
    /// The property or tool that was renamed.
    pub rename: Option<Rename>,
    /// The effect on a call that is still accepted.
    pub effect: Option<CallEffect>,
}

impl DefinitionEvidence {
    /// The evidence of a change of which only the facet is known.
    pub(crate) const fn of(facet: Facet) -> Self {
        Self {
            facet,
            judgement: None,
            reasons: Vec::new(),
            rename: None,
            effect: None,
        }
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

impl ChangeEvidence for DefinitionEvidence {
    fn introduces(&self, class: ChangeClass) -> bool {
        class == ChangeClass::Trust && !self.reasons.is_empty()
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
