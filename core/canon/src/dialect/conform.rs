use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::Draft;
use toolwarden_model::json::{Object, Pointer};

use super::Dialect;
use super::facts::Facts;
use super::lint::is_branch;
use super::node::{Node, Remedy, Violation};
use super::rules;
use crate::emit::{Edit, Kind, Severity};
use crate::schema::{convert, subschemas};

/// How many remedies one schema may need before it is left as it is.
const MAX_REMEDIES: usize = 200;
/// How many edits one tool may need.
const MAX_EDITS: usize = 20_000;

/// What a rewrite may do to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Only what keeps the same calls valid.
    KeepMeaning,
    /// Also what loses something, if the dialect asks for it.
    WhateverItTakes,
}

/// Rewrites a schema towards a dialect; `place` is where it stands in the canonical form.
///
/// The edits, applied one after the other, turn the old schema into the new one.
pub fn conform(
    schema: &mut Object,
    place: &Pointer,
    dialect: Dialect,
    demand: Demand,
) -> Vec<Edit> {
    conform_by(schema, place, dialect.facts(), demand)
}

/// Rewrites a schema towards a target of which these facts are known, as [`conform`] does.
pub fn conform_by(
    schema: &mut Object,
    place: &Pointer,
    facts: &Facts,
    demand: Demand,
) -> Vec<Edit> {
    let edits = forget_draft(schema, place, facts);
    let root = schema.clone();
    let mut rewriter = Rewriter {
        facts,
        root: &root,
        demand,
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

/// Takes `$schema` off where the dialect refuses it. Without it a document is read as draft 2020-12,
/// so what an older draft says is first said in the words of that one.
fn forget_draft(schema: &mut Object, place: &Pointer, facts: &Facts) -> Vec<Edit> {
    if facts.accepts("$schema") || Draft::declared(schema).is_none() {
        return Vec::new();
    }
    let mut edits = convert(schema, place, Draft::Draft2020);
    if let Some(uri) = schema.shift_remove("$schema") {
        edits.push(Edit::loss(
            place.child("$schema"),
            uri,
            Severity::Metadata,
            "`$schema` is not accepted",
        ));
    }
    edits
}

struct Rewriter<'s> {
    facts: &'s Facts,
    root: &'s Object,
    demand: Demand,
    edits: Vec<Edit>,
}

impl Rewriter<'_> {
    fn rewrite(&mut self, schema: &mut Value, place: &Pointer, is_root: bool, in_union: bool) {
        for _ in 0..MAX_REMEDIES {
            let Some((remedy, reason)) = self.next_remedy(schema, is_root, in_union) else {
                break;
            };
            let before = self.edits.len();
            for step in remedy.steps {
                let edit = step.make(schema, place, remedy.kind, reason.clone());
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
            Value::Object(schema) => rules::violations(Node {
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
                    .filter(|remedy| self.may(remedy.kind))
                    .map(|remedy| (remedy, message))
            },
        )
    }

    fn may(&self, kind: Kind) -> bool {
        self.demand == Demand::WhateverItTakes || kind != Kind::Loss(Severity::Semantic)
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
            let step = super::node::Step::remove(key);
            let reason = "nothing refers to it any more".into();
            self.edits
                .extend(step.make(schema, place, Kind::Change, reason));
        }
    }
}
