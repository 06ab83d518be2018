use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::facts::Facts;
use super::lint::Level;
use crate::emit::{Edit, Kind, Severity};

/// One schema of a tool, looked at by the rules.
#[derive(Clone, Copy)]
pub(super) struct Node<'s> {
    pub(super) facts: &'s Facts,
    pub(super) schema: &'s Object,
    /// The whole schema, for references.
    pub(super) root: &'s Object,
    pub(super) is_root: bool,
    /// Whether the schema stands directly in a union.
    pub(super) in_union: bool,
}

/// Something a dialect does not accept.
#[derive(Debug)]
pub(super) struct Violation {
    /// The rule's word in reports.
    pub(super) rule: &'static str,
    pub(super) level: Level,
    /// Where, seen from the schema.
    pub(super) at: Pointer,
    pub(super) message: Cow<'static, str>,
    pub(super) remedy: Option<Remedy>,
}

/// A way to mend a violation.
#[derive(Debug)]
pub(super) struct Remedy {
    pub(super) kind: Kind,
    pub(super) steps: Vec<Step>,
}

/// One change to a schema: the value at a place becomes another, or goes.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: Pointer,
    pub(super) after: Option<Value>,
}

impl Violation {
    pub(super) fn rejected(
        rule: &'static str,
        at: Pointer,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            rule,
            level: Level::Rejected,
            at,
            message: message.into(),
            remedy: None,
        }
    }

    /// Something the dialect minds, said as `what` and what becomes of it.
    pub(super) fn minded(level: Level, rule: &'static str, at: Pointer, what: &str) -> Self {
        Self {
            level,
            ..Self::rejected(rule, at, level.said_of(what))
        }
    }

    /// Adds a remedy that keeps what calls are valid.
    pub(super) fn same(self, steps: Vec<Step>) -> Self {
        self.mended(Kind::Change, steps)
    }

    /// Adds a remedy that drops what only informs.
    pub(super) fn informing(self, steps: Vec<Step>) -> Self {
        self.mended(Kind::Loss(Severity::Metadata), steps)
    }

    /// Adds a remedy that changes what calls are valid.
    pub(super) fn other(self, steps: Vec<Step>) -> Self {
        self.mended(Kind::Loss(Severity::Semantic), steps)
    }

    /// What is merely ignored is better than nothing, so it stays.
    fn mended(self, kind: Kind, steps: Vec<Step>) -> Self {
        let remedy = match self.level {
            Level::Rejected => Some(Remedy { kind, steps }),
            Level::Ignored => None,
        };
        Self { remedy, ..self }
    }
}

impl Step {
    pub(super) fn set(key: &str, value: Value) -> Self {
        Self {
            at: Pointer::of([key]),
            after: Some(value),
        }
    }

    pub(super) fn remove(key: &str) -> Self {
        Self {
            at: Pointer::of([key]),
            after: None,
        }
    }

    pub(super) const fn replace(value: Value) -> Self {
        Self {
            at: Pointer::root(),
            after: Some(value),
        }
    }

    /// Makes the change and gives the edit that says so.
    pub(super) fn make(
        self,
        schema: &mut Value,
        place: &Pointer,
        kind: Kind,
        reason: Cow<'static, str>,
    ) -> Option<Edit> {
        let Self { at, after } = self;
        let path = place.join(&at);
        let before = at.find(schema).cloned();
        if before == after {
            return None;
        }
        let edit = Edit {
            path,
            before,
            after,
            reason,
            kind,
        };
        let local = Edit {
            path: at,
            ..edit.clone()
        };
        if local.path == Pointer::root() {
            *schema = local.after?;
        } else if !local.apply(schema) {
            return None;
        }
        Some(edit)
    }
}
