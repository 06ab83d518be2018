//! The tooldrift fields that have one value per tool, as printed.

use toolwarden_model::Severity;

use super::PinnedToolContract;
use crate::tooldrift::{ToolCallShape, format_keys, python_bool};
use crate::trial_rule::TrialRule;

/// One printed field.
pub(super) struct PrintedField {
    pub(super) rule: TrialRule,
    pub(super) severity: Severity,
    pub(super) observed: fn(&ToolCallShape) -> String,
    pub(super) pinned: fn(&PinnedToolContract) -> Option<String>,
}

/// All fields, in the order in which tooldrift prints them.
pub(super) const FIELDS: [PrintedField; 6] = [
    PrintedField {
        rule: TrialRule::ArgKeys,
        severity: Severity::Breaking,
        observed: |it| format_keys(&it.arg_keys),
        pinned: |it| it.arg_keys.as_deref().map(format_keys),
    },
    PrintedField {
        rule: TrialRule::Emitted,
        severity: Severity::Breaking,
        observed: |it| python_bool(it.emitted),
        pinned: |it| it.emitted.map(python_bool),
    },
    PrintedField {
        rule: TrialRule::ArgumentsEncoding,
        severity: Severity::Breaking,
        observed: |it| it.arguments_encoding.clone(),
        pinned: |it| it.arguments_encoding.clone(),
    },
    PrintedField {
        rule: TrialRule::ParallelArity,
        severity: Severity::Warning,
        observed: |it| it.parallel_arity.to_string(),
        pinned: |it| it.parallel_arity.map(|it| it.to_string()),
    },
    PrintedField {
        rule: TrialRule::ToolCallIdFormat,
        severity: Severity::Warning,
        observed: |it| it.tool_call_id_format.clone(),
        pinned: |it| it.tool_call_id_format.clone(),
    },
    PrintedField {
        rule: TrialRule::FinishReason,
        severity: Severity::Warning,
        observed: |it| it.finish_reason.clone(),
        pinned: |it| it.finish_reason.clone(),
    },
];
