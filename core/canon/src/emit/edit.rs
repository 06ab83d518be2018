use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::json::Pointer;

/// One difference between a tool's contract and what was made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Where in the contract.
    pub path: Pointer,
    /// What stood there, if anything.
    pub before: Option<Value>,
    /// What stands there now, if anything.
    pub after: Option<Value>,
    /// Why.
    pub reason: Cow<'static, str>,
    /// What it means.
    pub kind: Kind,
}

/// What an edit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same said in another way.
    Change,
    /// Something is gone.
    Loss(Severity),
}

/// How much a loss matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The same calls are valid; something that informs is gone.
    Metadata,
    /// Other calls are valid than before.
    Semantic,
}

impl Severity {
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
            kind: Kind::Change,
        }
    }

    pub(crate) fn loss(
        path: Pointer,
        before: Value,
        severity: Severity,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            path,
            before: Some(before),
            after: None,
            reason: reason.into(),
            kind: Kind::Loss(severity),
        }
    }

    /// Makes the same difference to a document; tells whether the document was as the edit says.
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
