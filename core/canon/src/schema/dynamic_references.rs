use serde_json::Value;
use toolwarden_model::Draft;
use toolwarden_model::json::{Object, Pointer};

use super::walk::places;
use crate::edit::{Edit, LossKind};

/// A reference whose target depends on the path that led to it, as one draft writes it.
struct DynamicReference {
    draft: Draft,
    reference: &'static str,
    anchor: &'static str,
}

const DYNAMIC_REFERENCES: &[DynamicReference] = &[
    DynamicReference {
        draft: Draft::Draft2019,
        reference: "$recursiveRef",
        anchor: "$recursiveAnchor",
    },
    DynamicReference {
        draft: Draft::Draft2020,
        reference: "$dynamicRef",
        anchor: "$dynamicAnchor",
    },
];

/// Writes the dynamic references of one draft as plain references, because the other draft has them in
/// another form. In a document that is one schema resource, every path leads to the same target; in any
/// other, the reference is lost.
pub(super) fn convert_dynamic(
    root: &mut Value,
    place: &Pointer,
    from: Draft,
    to: Draft,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    let forms = DYNAMIC_REFERENCES.iter();
    for form in forms.filter(|form| form.draft == from && form.draft != to) {
        let places = places(root);
        let is_one_resource = places.iter().all(|at| {
            let is_root = *at == Pointer::root();
            is_root || at.find(root).is_none_or(|it| it.get("$id").is_none())
        });
        for at in places {
            let Some(Value::Object(schema)) = at.find(root) else {
                continue;
            };
            let steps = rewrite(schema, &at, form, is_one_resource);
            for edit in steps {
                if edit.apply(root) {
                    let path = place.join(&edit.path);
                    edits.push(Edit { path, ..edit });
                }
            }
        }
    }
    edits
}

fn rewrite(
    schema: &Object,
    at: &Pointer,
    form: &DynamicReference,
    is_one_resource: bool,
) -> Vec<Edit> {
    const REASON: &str = "the reference always leads to the same schema";
    let mut edits = Vec::new();
    if let Some(reference) = schema.get(form.reference) {
        let path = at.child(form.reference);
        let before = reference.clone();
        if is_one_resource && !schema.contains_key("$ref") {
            let after = Some(before.clone());
            edits.push(Edit::change(path, Some(before), None, REASON));
            edits.push(Edit::change(at.child("$ref"), None, after, REASON));
        } else {
            let reason = format!("the draft has no `{}`", form.reference);
            edits.push(Edit::loss(path, before, LossKind::Semantic, reason));
        }
    }
    if let Some(anchor) = schema.get(form.anchor) {
        let path = at.child(form.anchor);
        edits.push(Edit::change(path, Some(anchor.clone()), None, REASON));
        if anchor.is_string() && !schema.contains_key("$anchor") {
            let after = Some(anchor.clone());
            edits.push(Edit::change(at.child("$anchor"), None, after, REASON));
        }
    }
    edits
}
