use std::borrow::Cow;

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Evidence, HintsEvidence, Tool};

/// One difference between a tool and what was made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Where in the canonical form.
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

/// The canonical form as edits see it: what the tool says, without what was left out, without
/// inferred hints, and without where it came from.
#[must_use]
pub fn contract_document(tool: &Tool) -> Value {
    let mut members = Object::new();
    let mut put = |key: &str, value: Value, present: bool| {
        if present {
            members.insert(key.to_owned(), value);
        }
    };
    put("name", json!(tool.name), !tool.absent.name);
    put(
        "version",
        json!(tool.version),
        tool.version != Tool::DEFAULT_VERSION,
    );
    put(
        "description",
        json!(tool.description),
        !tool.absent.description,
    );
    put("title", json!(tool.title), tool.title.is_some());
    put(
        "capabilities",
        json!(tool.hints),
        tool.evidence == HintsEvidence::all(Evidence::Explicit),
    );
    put(
        "inputs",
        Value::Object(tool.inputs.clone()),
        !tool.absent.inputs,
    );
    put(
        "outputs",
        Value::Object(tool.outputs.clone()),
        !tool.outputs.is_empty(),
    );
    put("security", json!(tool.security), tool.security.is_some());
    put(
        "annotations",
        json!(tool.annotations),
        tool.annotations.is_some(),
    );
    put("strict", json!(tool.strict), tool.strict.is_some());
    put("examples", json!(tool.examples), !tool.examples.is_empty());
    let mut extensions = Object::new();
    for (format, keys) in &tool.extensions {
        extensions.insert(format.id().to_owned(), Value::Object(keys.clone()));
    }
    put(
        "extensions",
        Value::Object(extensions),
        !tool.extensions.is_empty(),
    );
    Value::Object(members)
}
