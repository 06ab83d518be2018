use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Pointer, type_name};

use super::{SchemaFault, SchemaFaultRule, fault};
use crate::prepare::{Resources, SchemaLocation};

/// The most references followed from one to the next.
const MAX_CHAIN: usize = 64;

/// What is wrong with a reference written at a place.
pub(super) fn check_reference(
    reference: &str,
    keyword: &str,
    at: &Pointer,
    resources: &Resources<'_>,
) -> Option<SchemaFault> {
    let place = at.child(keyword);
    let Some((found, target)) = resources.resolve(&SchemaLocation::here(at.clone()), reference)
    else {
        let (message, fix) = unresolved(reference, resources.root());
        return Some(fault(SchemaFaultRule::Reference, place, message, fix));
    };
    if !target.is_object() && !target.is_boolean() {
        let message = format!(
            "the reference `{reference}` leads to {}, not to a schema",
            type_name(target)
        );
        let fix = "refer to a schema, such as one in `$defs`";
        return Some(fault(SchemaFaultRule::Reference, place, message, fix));
    }
    is_cycle(found, target, resources).then(|| {
        let message = format!("the reference `{reference}` leads back to itself");
        let fix = "let one of the schemas say something besides the reference";
        fault(SchemaFaultRule::Reference, place, message, fix)
    })
}

fn unresolved(reference: &str, root: &Value) -> (String, String) {
    if !reference.starts_with('#') {
        let message = format!(
            "the reference `{reference}` leads out of the document, and nothing is fetched"
        );
        let fix = "copy the schema into `$defs` and refer to `#/$defs/NAME`".to_owned();
        return (message, fix);
    }
    let message = format!("the reference `{reference}` leads to nothing");
    let mut known: Vec<String> = Vec::new();
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(key).and_then(Value::as_object) {
            let place = Pointer::of([key]);
            known.extend(
                definitions
                    .keys()
                    .map(|name| format!("#{}", place.child(name))),
            );
        }
    }
    let hint = did_you_mean(reference, known.iter().map(String::as_str));
    let fix = match (hint.strip_prefix(", "), known.as_slice()) {
        (Some(hint), _) => hint.to_owned(),
        (None, []) => "add the definition under `$defs`, or remove the reference".to_owned(),
        (None, known) => {
            let some: Vec<&str> = known.iter().take(5).map(String::as_str).collect();
            format!("refer to one that exists, such as {}", some.join(", "))
        }
    };
    (message, fix)
}

/// Whether a chain of schemas that consist only of a reference is cyclic.
pub(super) fn is_cycle<'s>(
    mut place: SchemaLocation,
    mut target: &'s Value,
    resources: &Resources<'s>,
) -> bool {
    let start = place.clone();
    for _ in 0..MAX_CHAIN {
        let Some(members) = target.as_object().filter(|members| members.len() == 1) else {
            return false;
        };
        let Some(next) = members.get("$ref").and_then(Value::as_str) else {
            return false;
        };
        let Some((there, found)) = resources.resolve(&place, next) else {
            return false;
        };
        if there == start {
            return true;
        }
        (place, target) = (there, found);
    }
    false
}
