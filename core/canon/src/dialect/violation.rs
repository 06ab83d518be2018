use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::facts::DialectFacts;
use super::lint::DialectLevel;
use crate::edit::{Edit, EditKind, LossKind};

/// One schema of a tool, with what the rules need to check it.
#[derive(Clone, Copy)]
pub(super) struct SchemaContext<'s> {
    pub(super) facts: &'s DialectFacts,
    pub(super) schema: &'s Object,
    /// The whole schema, for references.
    pub(super) root: &'s Object,
    pub(super) is_root: bool,
    /// Whether the schema is a direct branch of a union.
    pub(super) in_union: bool,
}

/// Something a dialect does not accept.
#[derive(Debug)]
pub(super) struct Violation {
    /// The rule's word in reports.
    pub(super) rule: &'static str,
    pub(super) level: DialectLevel,
    /// The place, relative to the schema.
    pub(super) at: Pointer,
    pub(super) message: Cow<'static, str>,
    pub(super) remedy: Option<Remedy>,
}

/// A way to fix a violation.
#[derive(Debug)]
pub(super) struct Remedy {
    pub(super) kind: EditKind,
    pub(super) edits: Vec<SchemaEdit>,
}

/// One change to a schema: the value at a place is replaced or removed.
#[derive(Debug)]
pub(super) struct SchemaEdit {
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
            level: DialectLevel::Rejected,
            at,
            message: message.into(),
            remedy: None,
        }
    }

    /// A violation whose message says how the target handles `what`.
    pub(super) fn with_level(
        level: DialectLevel,
        rule: &'static str,
        at: Pointer,
        what: &str,
    ) -> Self {
        Self {
            level,
            ..Self::rejected(rule, at, level.describe(what))
        }
    }

    /// Adds a remedy after which the same calls are valid.
    pub(super) fn with_equivalent_remedy(self, steps: Vec<SchemaEdit>) -> Self {
        self.with_remedy(EditKind::Change, steps)
    }

    /// Adds a remedy that drops only metadata.
    pub(super) fn with_metadata_remedy(self, steps: Vec<SchemaEdit>) -> Self {
        self.with_remedy(EditKind::Loss(LossKind::Metadata), steps)
    }

    /// Adds a remedy that changes which calls are valid.
    pub(super) fn with_semantic_remedy(self, steps: Vec<SchemaEdit>) -> Self {
        self.with_remedy(EditKind::Loss(LossKind::Semantic), steps)
    }

    /// A keyword that the target merely ignores does no harm, so it stays.
    fn with_remedy(self, kind: EditKind, steps: Vec<SchemaEdit>) -> Self {
        let remedy = match self.level {
            DialectLevel::Rejected => Some(Remedy { kind, edits: steps }),
            DialectLevel::Ignored => None,
        };
        Self { remedy, ..self }
    }
}

impl SchemaEdit {
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

    /// Applies the change and returns the edit that records it.
    pub(super) fn apply(
        self,
        schema: &mut Value,
        place: &Pointer,
        kind: EditKind,
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
