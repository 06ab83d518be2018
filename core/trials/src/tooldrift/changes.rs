//! The differences that tooldrift sees, as changes.

use std::collections::BTreeSet;

use toolwarden_model::Severity;

use super::diff::{FieldDelta, SnapshotDelta};
use crate::change::{ChangeParts, TrialChange};
use crate::trial_rule::TrialRule;

impl SnapshotDelta {
    /// Every difference as a change. The severity of a tool that only one side has is up to the caller.
    #[must_use]
    pub fn changes(&self, only_in: Severity) -> Vec<TrialChange> {
        let mut changes = Vec::new();
        for tool in &self.tools {
            if let Some(side) = tool.only_in {
                let parts = ChangeParts {
                    tool: Some(tool.tool.clone()),
                    rule: TrialRule::OnlyIn,
                    pointer: String::new(),
                    severity: only_in,
                    before: String::new(),
                    after: side.as_str().to_owned(),
                    message: "the tool appears on one side only".to_owned(),
                    rates: None,
                };
                changes.push(parts.into());
            }
            let fields = tool.fields.iter();
            changes.extend(fields.map(|field| field_change(&tool.tool, field, None)));
        }
        changes
    }

    /// Our changes, with every field of tooldrift that differs. Our change about a field decides its
    /// severity: an optional argument that is present or absent breaks nothing.
    #[must_use]
    pub fn merge(&self, changes: &[TrialChange]) -> Vec<TrialChange> {
        let mut covered = BTreeSet::new();
        let mut merged = Vec::new();
        for tool in &self.tools {
            for field in &tool.fields {
                let about: Vec<usize> = changes
                    .iter()
                    .enumerate()
                    .filter(|(_, it)| is_about(it, &tool.tool, field))
                    .map(|(at, _)| at)
                    .collect();
                let ours = about.iter().filter_map(|at| changes.get(*at));
                let worst = ours.max_by_key(|it| it.severity());
                let mut change = field_change(&tool.tool, field, worst);
                if worst.is_none() {
                    change.class = Severity::Info.into();
                }
                merged.push(change);
                covered.extend(about);
            }
        }
        let others = changes.iter().enumerate();
        let others = others.filter(|(at, _)| !covered.contains(at));
        merged.extend(others.map(|(_, it)| it.clone()));
        merged
    }
}

/// The change of one field, with the place, the severity and the message of our own change about it.
fn field_change(tool: &str, field: &FieldDelta, ours: Option<&TrialChange>) -> TrialChange {
    let parts = ChangeParts {
        tool: Some(tool.to_owned()),
        rule: field_rule(&field.field),
        pointer: match ours {
            // A difference in a reply has no pointer into the arguments of a tool.
            Some(change) if change.tool.is_some() => change.pointer.as_str().to_owned(),
            _ => String::new(),
        },
        severity: ours.map_or(field.severity, TrialChange::severity),
        before: field.old.clone(),
        after: field.new.clone(),
        message: ours.map_or_else(|| field.note.clone(), |it| it.message.clone()),
        rates: ours.and_then(|it| it.evidence.rates),
    };
    parts.into()
}

fn field_rule(field: &str) -> TrialRule {
    match field {
        "arg_keys" => TrialRule::ArgKeys,
        "emitted" => TrialRule::Emitted,
        "arguments_encoding" => TrialRule::ArgumentsEncoding,
        "parallel_arity" => TrialRule::ParallelArity,
        "tool_call_id_format" => TrialRule::ToolCallIdFormat,
        "finish_reason" => TrialRule::FinishReason,
        other => match other.strip_prefix("arg_nesting:") {
            Some(argument) => TrialRule::ArgNesting(argument.to_owned()),
            None => TrialRule::Wrong,
        },
    }
}

/// Whether a change is what makes a field of tooldrift differ.
fn is_about(change: &TrialChange, tool: &str, field: &FieldDelta) -> bool {
    if change.tool.as_deref().is_some_and(|it| it != tool) {
        return false;
    }
    let rule = &change.evidence.rule;
    let top = change.pointer.as_str().strip_prefix('/');
    let top = top.and_then(|it| it.split('/').next()).unwrap_or_default();
    match field.field.as_str() {
        "finish_reason" => *rule == TrialRule::FinishReason,
        "tool_call_id_format" => change.tool.is_some() && *rule == TrialRule::IdClass,
        "arg_keys" => {
            let keys =
                |text: &str| -> BTreeSet<String> { text.split(", ").map(str::to_owned).collect() };
            let (old, new) = (keys(&field.old), keys(&field.new));
            change.tool.is_some() && old.symmetric_difference(&new).any(|it| it == top)
        }
        name => match name.strip_prefix("arg_nesting:") {
            Some(key) => change.tool.is_some() && key == top,
            None => change.tool.is_some() && rule.as_str() == name,
        },
    }
}
