use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::json::Pointer;

/// One difference between a tool's contract and its emitted form.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Where in the contract.
    pub path: Pointer,
    /// The value before, if any.
    pub before: Option<Value>,
    /// The value after, if any.
    pub after: Option<Value>,
    /// Why.
    pub reason: Cow<'static, str>,
    /// What it means.
    pub kind: EditKind,
}

/// What an edit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// The same meaning in another form.
    Change,
    /// Something is lost.
    Loss(LossKind),
}

/// The kind of a loss: metadata or meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// The same calls are valid; only metadata is lost.
    Metadata,
    /// The set of valid calls changes.
    Semantic,
}

impl LossKind {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Semantic => "semantic",
        }
    }
}

impl Edit {
    pub(crate) fn change(
        path: Pointer,
        before: Option<Value>,
        after: Option<Value>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            path,
            before,
            after,
            reason: reason.into(),
            kind: EditKind::Change,
        }
    }

    pub(crate) fn loss(
        path: Pointer,
        before: Value,
        severity: LossKind,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            path,
            before: Some(before),
            after: None,
            reason: reason.into(),
            kind: EditKind::Loss(severity),
        }
    }

    /// Applies the edit to a document. Returns whether the document matched the edit's `before`.
    pub fn apply(&self, document: &mut Value) -> bool {
        if self.path.find(document) != self.before.as_ref() {
            return false;
        }
        let mut segments: Vec<String> = self.path.segments().collect();
        let Some(last) = segments.pop() else {
            return false;
        };
        let parent = Pointer::of(segments.iter().map(String::as_str));
        let Some(parent) = document.pointer_mut(parent.as_str()) else {
            return false;
        };
        match (parent, &self.after) {
            (Value::Object(members), Some(value)) => {
                members.insert(last, value.clone());
            }
            (Value::Object(members), None) => {
                members.shift_remove(&last);
            }
            (Value::Array(items), after) => {
                let Some(index) = last
                    .parse::<usize>()
                    .ok()
                    .filter(|index| *index < items.len())
                else {
                    return false;
                };
                match after {
                    Some(value) => {
                        if let Some(item) = items.get_mut(index) {
                            *item = value.clone();
                        }
                    }
                    None => {
                        items.remove(index);
                    }
                }
            }
            _ => return false,
        }
        true
    }
}
