use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::Draft;
use toolwarden_model::json::{Object, Pointer};

use super::Dialect;
use super::facts::DialectFacts;
use super::lint::is_branch;
use super::rules;
use super::violation::{Remedy, SchemaContext, Violation};
use crate::edit::{Edit, EditKind, LossKind};
use crate::schema::{convert, subschemas};

/// How many remedies one schema may need before it is left as it is.
const MAX_REMEDIES: usize = 200;
/// How many edits one tool may need.
const MAX_EDITS: usize = 20_000;

/// Whether a rewrite may lose something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteMode {
    /// Apply only edits after which the same calls are valid.
    KeepMeaning,
    /// Also apply edits that lose something, if the dialect requires them.
    AllowLoss,
}

/// Rewrites a schema to fit a dialect; `definition_pointer` is its place in the canonical form.
///
/// The edits, applied one after the other, turn the old schema into the new one.
pub fn conform(
    schema: &mut Object,
    place: &Pointer,
    dialect: Dialect,
    demand: RewriteMode,
) -> Vec<Edit> {
    conform_to_facts(schema, place, dialect.facts(), demand)
}

/// Rewrites a schema to fit a target with these facts, as [`conform`] does.
pub fn conform_to_facts(
    schema: &mut Object,
    place: &Pointer,
    facts: &DialectFacts,
    demand: RewriteMode,
) -> Vec<Edit> {
    let edits = remove_draft(schema, place, facts);
    let root = schema.clone();
    let mut rewriter = Rewriter {
        facts,
        root: &root,
        mode: demand,
        edits,
    };
    let mut value = Value::Object(std::mem::take(schema));
    rewriter.rewrite(&mut value, place, true, false);
    rewriter.drop_unused_definitions(&mut value, place);
    if let Value::Object(rewritten) = value {
        *schema = rewritten;
    }
    rewriter.edits
}

/// Removes `$schema` where the dialect refuses it. Without it a document is read as draft 2020-12, so
/// keywords of an older draft are converted to that draft first.
fn remove_draft(schema: &mut Object, place: &Pointer, facts: &DialectFacts) -> Vec<Edit> {
    if facts.accepts("$schema") || Draft::declared(schema).is_none() {
        return Vec::new();
    }
    let mut edits = convert(schema, place, Draft::Draft2020);
    if let Some(uri) = schema.shift_remove("$schema") {
        edits.push(Edit::loss(
            place.child("$schema"),
            uri,
            LossKind::Metadata,
            "`$schema` is not accepted",
        ));
    }
    edits
}

struct Rewriter<'s> {
    facts: &'s DialectFacts,
    root: &'s Object,
    mode: RewriteMode,
    edits: Vec<Edit>,
}

impl Rewriter<'_> {
    fn rewrite(&mut self, schema: &mut Value, place: &Pointer, is_root: bool, in_union: bool) {
        for _ in 0..MAX_REMEDIES {
            let Some((remedy, reason)) = self.next_remedy(schema, is_root, in_union) else {
                break;
            };
            let before = self.edits.len();
            for step in remedy.edits {
                let edit = step.apply(schema, place, remedy.kind, reason.clone());
                self.edits.extend(edit);
            }
            if self.edits.len() == before {
                break;
            }
        }
        let Value::Object(members) = &*schema else {
            return;
        };
        let children: Vec<(Pointer, bool)> = subschemas(members, &Pointer::root())
            .into_iter()
            .map(|(at, _)| (at.clone(), is_branch(&at)))
            .collect();
        for (at, in_union) in children {
            if self.edits.len() > MAX_EDITS {
                return;
            }
            if let Some(child) = schema.pointer_mut(at.as_str()) {
                self.rewrite(child, &place.join(&at), false, in_union);
            }
        }
    }

    fn next_remedy(
        &self,
        schema: &Value,
        is_root: bool,
        in_union: bool,
    ) -> Option<(Remedy, Cow<'static, str>)> {
        let violations = match schema {
            Value::Object(schema) => rules::violations(SchemaContext {
                facts: self.facts,
                schema,
                root: self.root,
                is_root,
                in_union,
            }),
            other => rules::boolean_schema(self.facts, other)
                .into_iter()
                .collect(),
        };
        violations.into_iter().find_map(
            |Violation {
                 remedy, message, ..
             }| {
                remedy
                    .filter(|remedy| self.allows(remedy.kind))
                    .map(|remedy| (remedy, message))
            },
        )
    }

    fn allows(&self, kind: EditKind) -> bool {
        self.mode == RewriteMode::AllowLoss || kind != EditKind::Loss(LossKind::Semantic)
    }

    /// Drops definitions that inlining has left without a reference.
    fn drop_unused_definitions(&mut self, schema: &mut Value, place: &Pointer) {
        let inlined = self.edits.iter().any(|edit| {
            edit.before
                .as_ref()
                .is_some_and(|before| before.get("$ref").is_some())
        });
        if !inlined || rules::mentions_reference(schema) {
            return;
        }
        for key in ["$defs", "definitions"] {
            let step = super::violation::SchemaEdit::remove(key);
            let reason = "nothing refers to it any more".into();
            self.edits
                .extend(step.apply(schema, place, EditKind::Change, reason));
        }
    }
}
