//! Compares the pins of a contract with a snapshot, as tooldrift does.

use toolwarden_model::Severity;
use toolwarden_trials::tooldrift::{ToolCallShape, TooldriftSnapshot, diff};
use toolwarden_trials::{PinnedContract, PinnedToolContract, Snapshot, TrialChange};

/// The changes that tooldrift reports, from the snapshot to the pins, and those that only we report.
/// Fields that are not pinned are not compared.
pub(super) fn pin_changes(
    taken: &Snapshot,
    expected: &PinnedContract,
    ours: &[TrialChange],
) -> Vec<TrialChange> {
    let Some(mut one) = taken.to_tooldrift() else {
        return Vec::new();
    };
    one.tools.retain(|name, _| expected.contains_key(name));
    let held = one.tools.iter().filter_map(|(name, shape)| {
        let pinned = expected.get(name)?;
        Some((name.clone(), expected_shape(shape, pinned)))
    });
    let held = TooldriftSnapshot {
        tools: held.collect(),
        ..one.clone()
    };
    let mut changes = diff(&one, &held).changes(Severity::Warning);
    for ours in ours.iter().filter(|it| it.severity() > Severity::Info) {
        let is_covered =
            |it: &TrialChange| it.tool == ours.tool && it.evidence.rule == ours.evidence.rule;
        if !changes.iter().any(is_covered) {
            // Tooldrift has the pins as the new side.
            changes.push(TrialChange {
                before: ours.after.clone(),
                after: ours.before.clone(),
                ..ours.clone()
            });
        }
    }
    changes
}

/// A shape as it has to be: what is pinned, and for the rest what it is.
fn expected_shape(shape: &ToolCallShape, pinned: &PinnedToolContract) -> ToolCallShape {
    let mut held = shape.clone();
    let PinnedToolContract {
        emitted,
        arg_keys,
        arg_nesting,
        arguments_encoding,
        parallel_arity,
        tool_call_id_format,
        finish_reason,
        id_class: _,
        emit_rate: _,
        schema_valid_rate: _,
    } = pinned.clone();
    held.arg_nesting.extend(arg_nesting.unwrap_or_default());
    held.emitted = emitted.unwrap_or(held.emitted);
    held.arg_keys = arg_keys.unwrap_or(held.arg_keys);
    held.arguments_encoding = arguments_encoding.unwrap_or(held.arguments_encoding);
    held.parallel_arity = parallel_arity.unwrap_or(held.parallel_arity);
    held.tool_call_id_format = tool_call_id_format.unwrap_or(held.tool_call_id_format);
    held.finish_reason = finish_reason.unwrap_or(held.finish_reason);
    held
}
