//! Changes of `contentSchema`: the schema of what a text contains once it is decoded.
//!
//! No validator checks the content of a text by its schema, but the tool that reads the text does. Content
//! that was valid and is not valid any more may therefore break a caller.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, to_canonical_string};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};
use toolwarden_schema::{SchemaPair, SchemaVerdict, ValueDomain};

use super::surface::{Declared, SchemaDeclarations};
use super::{SchemaChange, SchemaComparison, SchemaDirection};
use crate::change::{ChangeClass, ChangeKind};

/// The deepest nesting of content in content that is compared.
const MAX_DEPTH: usize = 4;

/// Keywords of a document that the content of one of its texts may refer to.
const SHARED: [&str; 3] = ["$schema", "$defs", "definitions"];

impl SchemaComparison<'_> {
    /// What a change inside a `contentSchema` means, and why; `None` for any other place.
    pub(super) fn content_change(&self, pointer: &Pointer) -> Option<(ChangeClass, String)> {
        let place = content_place(pointer)?;
        let document = |root: &Value| content_document(root, place.find(root).into_iter());
        let (old, new) = (document(self.old), document(self.new));
        Some(self.judge_content(&old, &new, 0))
    }

    /// Adds the changes of content that a reference or a combination brings.
    pub(super) fn changed_content(&self, changes: &mut Vec<SchemaChange>) {
        if ![self.old, self.new].into_iter().any(has_content) {
            return;
        }
        let (old, new) = (
            SchemaDeclarations::of(self.old),
            SchemaDeclarations::of(self.new),
        );
        let is_same_member = |keyword: &str| self.old.get(keyword) == self.new.get(keyword);
        let same_dialect = is_same_member("$schema");
        let same_shared = SHARED.into_iter().all(is_same_member);
        for (path, was) in old.places() {
            let Some(is) = new.at(path) else {
                continue;
            };
            let (before, after) = (contents(was), contents(is));
            let is_told = |(at, _): &(Pointer, &Value)| {
                let mut changes = changes.iter();
                changes.any(|change| content_place(&change.pointer).as_ref() == Some(at))
            };
            let Some((at, _)) = after.first().or(before.first()) else {
                continue;
            };
            if before.iter().chain(&after).any(is_told) {
                continue;
            }
            let values = |side: &[(Pointer, &Value)]| -> Vec<Value> {
                side.iter().map(|(_, schema)| (*schema).clone()).collect()
            };
            let (was, is) = (values(&before), values(&after));
            let is_same = is_same_list(&was, &is);
            // The same schemas accept something else if what they refer to changed.
            if is_same && (same_shared || (same_dialect && !was.iter().any(has_reference))) {
                continue;
            }
            let (class, why) = self.judge_content(
                &content_document(self.old, was.iter()),
                &content_document(self.new, is.iter()),
                0,
            );
            // Definitions that the content does not depend on may have changed.
            if is_same && class == ChangeClass::Equivalent {
                continue;
            }
            changes.push(SchemaChange {
                rule: "contentSchema",
                pointer: at.clone(),
                kind: ChangeKind::Changed,
                class,
                judgement: None,
                before: was.into_iter().next(),
                after: is.into_iter().next(),
                rename: None,
                effect: None,
                message: format!("`contentSchema` of a text is another one now{why}"),
            });
        }
    }

    /// Compares the schemas of content, and of the content inside it.
    fn judge_content(&self, old: &Value, new: &Value, depth: usize) -> (ChangeClass, String) {
        let (from, to) = match self.direction {
            SchemaDirection::Input => (old, new),
            SchemaDirection::Output => (new, old),
        };
        let unknown = |why: &str| (ChangeClass::Unknown, format!(": {why}"));
        if depth > MAX_DEPTH {
            return unknown("the content is nested too deeply to compare it");
        }
        let options = self.options;
        let pair = SchemaPair::new(
            from,
            to,
            ValueDomain::Values,
            options.formats,
            options.budget,
        );
        let verdict = pair.map(|mut pair| pair.verdict(options.callers));
        let judged = match verdict {
            Ok(SchemaVerdict::Equivalent(_)) => (ChangeClass::Equivalent, String::new()),
            Ok(SchemaVerdict::Compatible { .. }) => {
                let class = match self.direction {
                    SchemaDirection::Input => ChangeClass::Widened,
                    SchemaDirection::Output => ChangeClass::Behavioural,
                };
                (class, String::new())
            }
            Ok(SchemaVerdict::Breaking(witness)) => {
                let value = &witness.value;
                let why = match self.direction {
                    SchemaDirection::Input => format!(
                        "content that was valid is not valid any more, and the tool may reject it: {value}"
                    ),
                    SchemaDirection::Output => {
                        format!("content may come that could not come before: {value}")
                    }
                };
                unknown(&why)
            }
            Ok(SchemaVerdict::Unknown(why)) | Err(why) => unknown(why.reason.text()),
        };
        self.inner_content(old, new, depth).max(judged)
    }

    /// Compares the content of texts inside content.
    fn inner_content(&self, old: &Value, new: &Value, depth: usize) -> (ChangeClass, String) {
        let mut worst = (ChangeClass::Equivalent, String::new());
        if ![old, new].into_iter().any(has_content) {
            return worst;
        }
        let (before, after) = (SchemaDeclarations::of(old), SchemaDeclarations::of(new));
        for (path, was) in before.places() {
            let Some(is) = after.at(path) else {
                continue;
            };
            let values = |said: &Declared<'_>, root: &Value| {
                let found = contents(said);
                content_document(root, found.iter().map(|(_, schema)| *schema))
            };
            let (was, is) = (values(was, old), values(is, new));
            if was != is {
                worst = worst.max(self.judge_content(&was, &is, depth + 1));
            }
        }
        worst
    }
}

/// A document with the schema of some content alone. No content is described by a schema that accepts
/// everything.
fn content_document<'v>(root: &Value, schemas: impl Iterator<Item = &'v Value>) -> Value {
    let mut document = Object::new();
    for keyword in SHARED {
        if let Some(value) = root.get(keyword) {
            document.insert(keyword.to_owned(), value.clone());
        }
    }
    let schemas: Vec<Value> = schemas.cloned().collect();
    if !schemas.is_empty() {
        document.insert("allOf".to_owned(), json!(schemas));
    }
    Value::Object(document)
}

/// Whether two lists have the same schemas equally often, in any order.
fn is_same_list(some: &[Value], others: &[Value]) -> bool {
    let sorted = |list: &[Value]| {
        let mut written: Vec<String> = list.iter().map(to_canonical_string).collect();
        written.sort();
        written
    };
    sorted(some) == sorted(others)
}

/// The schemas of the content of a text, with their pointers.
fn contents<'s>(said: &Declared<'s>) -> Vec<(Pointer, &'s Value)> {
    let schemas = said.schemas.iter();
    let found = schemas.filter_map(|(at, schema)| {
        let content = schema.get("contentSchema")?;
        Some((at.child("contentSchema"), content))
    });
    found.collect()
}

/// The place of the outermost `contentSchema` around a place.
fn content_place(pointer: &Pointer) -> Option<Pointer> {
    let segments: Vec<String> = pointer.segments().collect();
    let mut rest = segments.iter().peekable();
    let mut at = Pointer::root();
    while let Some(keyword) = rest.next() {
        at.push(keyword);
        if keyword == "contentSchema" {
            return Some(at);
        }
        match subschema_form(keyword)? {
            SubschemaForm::Map | SubschemaForm::List => at.push(rest.next()?),
            SubschemaForm::OneOrList => {
                let is_index = |it: &&&String| it.bytes().all(|byte| byte.is_ascii_digit());
                if let Some(index) = rest.peek().filter(is_index) {
                    at.push(index);
                    rest.next();
                }
            }
            SubschemaForm::One => {}
        }
    }
    None
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| key == "contentSchema" || has_content(member)),
        Value::Array(items) => items.iter().any(has_content),
        _ => false,
    }
}

/// Whether a schema refers to another one.
fn has_reference(value: &Value) -> bool {
    let is_reference = |key: &str| matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef");
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| is_reference(key) || has_reference(member)),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}
