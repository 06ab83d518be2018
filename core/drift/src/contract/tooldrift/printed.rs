//! The fields of tooldrift that have one value a tool, as they are printed.

use super::diff::{keys, truth};
use super::shape::ToolCallShape;
use crate::contract::change::Severity;
use crate::contract::pinned::PinnedTool;

/// One such field.
pub(in crate::contract) struct Printed {
    pub(in crate::contract) name: &'static str,
    pub(in crate::contract) severity: Severity,
    pub(in crate::contract) seen: fn(&ToolCallShape) -> String,
    pub(in crate::contract) pinned: fn(&PinnedTool) -> Option<String>,
}

/// All of them, in the order they are told.
pub(in crate::contract) const FIELDS: [Printed; 6] = [
    Printed {
        name: "arg_keys",
        severity: Severity::Breaking,
        seen: |it| keys(&it.arg_keys),
        pinned: |it| it.arg_keys.as_deref().map(keys),
    },
    Printed {
        name: "emitted",
        severity: Severity::Breaking,
        seen: |it| truth(it.emitted),
        pinned: |it| it.emitted.map(truth),
    },
    Printed {
        name: "arguments_encoding",
        severity: Severity::Breaking,
        seen: |it| it.arguments_encoding.clone(),
        pinned: |it| it.arguments_encoding.clone(),
    },
    Printed {
        name: "parallel_arity",
        severity: Severity::Warning,
        seen: |it| it.parallel_arity.to_string(),
        pinned: |it| it.parallel_arity.map(|it| it.to_string()),
    },
    Printed {
        name: "tool_call_id_format",
        severity: Severity::Warning,
        seen: |it| it.tool_call_id_format.clone(),
        pinned: |it| it.tool_call_id_format.clone(),
    },
    Printed {
        name: "finish_reason",
        severity: Severity::Warning,
        seen: |it| it.finish_reason.clone(),
        pinned: |it| it.finish_reason.clone(),
    },
];
