//! Compares the pins of a contract with a snapshot, as tooldrift does.

use toolwarden_model::Severity;
use toolwarden_trials::tooldrift::{ToolCallShape, TooldriftSnapshot, diff};
use toolwarden_trials::{ContractChange, PinnedContract, PinnedToolContract, Snapshot};

use super::difference_rows::{self, DifferenceRow};

/// The rows of tooldrift, from the snapshot to what is pinned. What is not pinned is not compared,
/// and what only we can tell is added.
pub(super) fn pin_rows(
    taken: &Snapshot,
    expected: &PinnedContract,
    changes: &[ContractChange],
) -> Vec<DifferenceRow> {
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
    let mut rows = difference_rows::rows_from_tooldrift(&diff(&one, &held), Severity::Warning);
    for change in changes.iter().filter(|it| it.severity > Severity::Info) {
        let is_told =
            |row: &DifferenceRow| row.tool == change.tool && row.field == change.rule.to_string();
        if !rows.iter().any(is_told) {
            let told = difference_rows::rows_from_changes(std::slice::from_ref(change));
            rows.extend(told.into_iter().map(DifferenceRow::swap_sides));
        }
    }
    rows
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
