//! Members that say how a tool is called, or what it returns, in a form that no schema expresses.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::change::{Change, ChangeClass};
use crate::definition_text::PROSE;
use crate::facet::Facet;

/// Members that describe arguments.
const ARGUMENTS: &[&str] = &[
    "args",
    "args_schema",
    "arguments",
    "fn_schema",
    "format",
    "grammar",
    "input",
    "inputModes",
    "inputParameters",
    "inputSchema",
    "input_parameters",
    "input_schema",
    "inputs",
    "parameter_definitions",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "params",
    "params_json_schema",
    "schema",
    "signature",
];

/// Members that describe results.
const RESULTS: &[&str] = &[
    "output",
    "outputModes",
    "outputSchema",
    "output_schema",
    "output_type",
    "outputs",
    "response",
    "responseJsonSchema",
    "response_json_schema",
    "return",
    "return_parameter",
    "return_type",
    "returns",
];

/// Members that hold the parts of a definition.
const WRAPPERS: &[&str] = &["custom", "definition", "function", "toolSpec", "tool"];

/// Marks the changes of such members as unknown: whether old calls are still accepted cannot be decided.
pub(crate) fn mark_call_contract(changes: &mut [Change]) {
    let others = changes
        .iter_mut()
        .filter(|it| it.evidence.facet == Facet::Other);
    // Prose beside them is text like any other.
    let is_prose = |it: &Change| {
        let last = it.pointer.segments().last().unwrap_or_default();
        it.class == ChangeClass::Text && PROSE.contains(&last.as_str())
    };
    for change in others.filter(|it| it.class < ChangeClass::Unknown && !is_prose(it)) {
        // A member that was added or removed as a whole may hold such members.
        let held = || {
            let sides = [&change.before, &change.after].into_iter().flatten();
            let mut members = sides.filter_map(described_member);
            is_holder(&change.pointer).then(|| members.next()).flatten()
        };
        if let Some((member, what)) = described_part(&change.pointer).or_else(held) {
            change.class = ChangeClass::Unknown;
            change.message.push_str(&format!(
                ": `{member}` describes {what}, and is not a schema that can be compared"
            ));
        }
    }
}

/// The member at or above a place that describes arguments or results.
fn described_part(at: &Pointer) -> Option<(String, &'static str)> {
    let member = at.segments().find(|it| !is_wrapper(it))?;
    let what = described_by(&member)?;
    Some((member, what))
}

/// A member inside a holder of members that describes arguments or results.
fn described_member(holder: &Value) -> Option<(String, &'static str)> {
    let members = holder.as_object()?;
    let direct = members
        .keys()
        .find_map(|key| Some((key.clone(), described_by(key)?)));
    direct.or_else(|| {
        let mut inner = WRAPPERS.iter().filter_map(|key| members.get(*key));
        inner.find_map(described_member)
    })
}

/// Whether a place holds nothing but the members of a definition.
fn is_holder(at: &Pointer) -> bool {
    at.segments().next().is_some() && at.segments().all(|it| is_wrapper(&it))
}

fn is_wrapper(segment: &str) -> bool {
    segment.starts_with("extensions/") || WRAPPERS.contains(&segment)
}

fn described_by(member: &str) -> Option<&'static str> {
    if ARGUMENTS.contains(&member) {
        Some("the arguments")
    } else if RESULTS.contains(&member) {
        Some("the results")
    } else {
        None
    }
}
