//! The differences of two snapshots as lines: the seven fields of tooldrift where they tell, and what
//! else was found.

use std::collections::BTreeSet;

use toolwarden_model::Severity;
use toolwarden_trials::tooldrift::{FieldDelta, SnapshotDelta};
use toolwarden_trials::{ContractChange, TrialRule};

/// One difference.
#[derive(Clone, Debug)]
pub(super) struct DifferenceRow {
    /// The tool, unless it is about replies as wholes.
    pub(super) tool: Option<String>,
    pub(super) field: String,
    /// Where in the arguments or in the snapshot.
    pub(super) pointer: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) severity: Severity,
    pub(super) note: String,
}

impl DifferenceRow {
    /// The same, seen from the other side.
    pub(super) fn swap_sides(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
            ..self
        }
    }
}

/// As tooldrift tells them. How grave a tool is that only one side has, is up to the caller.
pub(super) fn rows_from_tooldrift(delta: &SnapshotDelta, only_in: Severity) -> Vec<DifferenceRow> {
    let mut rows = Vec::new();
    for tool in &delta.tools {
        if let Some(side) = tool.only_in {
            rows.push(DifferenceRow {
                tool: Some(tool.tool.clone()),
                field: "only_in".to_owned(),
                pointer: String::new(),
                before: String::new(),
                after: side.as_str().to_owned(),
                severity: only_in,
                note: "the tool appears on one side only".to_owned(),
            });
        }
        rows.extend(tool.fields.iter().map(|field| DifferenceRow {
            tool: Some(tool.tool.clone()),
            field: field.field.clone(),
            pointer: String::new(),
            before: field.old.clone(),
            after: field.new.clone(),
            severity: field.severity,
            note: field.note.clone(),
        }));
    }
    rows
}

/// As we tell them.
pub(super) fn rows_from_changes(changes: &[ContractChange]) -> Vec<DifferenceRow> {
    changes.iter().map(row).collect()
}

/// As we tell them, with every field of tooldrift that differs. How grave a field is, is up to what
/// was found about it: an optional argument that is there or not is nothing to fear.
pub(super) fn merge_rows(delta: &SnapshotDelta, changes: &[ContractChange]) -> Vec<DifferenceRow> {
    let mut told = BTreeSet::new();
    let mut rows = Vec::new();
    for tool in &delta.tools {
        for field in &tool.fields {
            let about: Vec<usize> = changes
                .iter()
                .enumerate()
                .filter(|(_, it)| is_about(it, &tool.tool, field))
                .map(|(at, _)| at)
                .collect();
            let gravest = about.iter().filter_map(|at| changes.get(*at));
            let gravest = gravest.max_by_key(|it| it.severity);
            rows.push(DifferenceRow {
                tool: Some(tool.tool.clone()),
                field: field.field.clone(),
                pointer: match gravest {
                    // A difference in a reply has no pointer into the arguments of a tool.
                    Some(change) if change.tool.is_some() => change.pointer.clone(),
                    _ => String::new(),
                },
                before: field.old.clone(),
                after: field.new.clone(),
                severity: gravest.map_or(Severity::Info, |it| it.severity),
                note: gravest.map_or_else(|| field.note.clone(), |it| it.note.clone()),
            });
            told.extend(about);
        }
    }
    let others = changes.iter().enumerate();
    rows.extend(
        others
            .filter(|(at, _)| !told.contains(at))
            .map(|(_, it)| row(it)),
    );
    rows
}

fn row(change: &ContractChange) -> DifferenceRow {
    DifferenceRow {
        tool: change.tool.clone(),
        field: change.rule.to_string(),
        pointer: change.pointer.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
        severity: change.severity,
        note: change.note.clone(),
    }
}

/// Whether a change is what makes a field of tooldrift differ.
fn is_about(change: &ContractChange, tool: &str, field: &FieldDelta) -> bool {
    if change.tool.as_deref().is_some_and(|it| it != tool) {
        return false;
    }
    let top = change.pointer.strip_prefix('/');
    let top = top.and_then(|it| it.split('/').next()).unwrap_or_default();
    match field.field.as_str() {
        "finish_reason" => change.rule == TrialRule::FinishReason,
        "tool_call_id_format" => change.tool.is_some() && change.rule == TrialRule::IdClass,
        "arg_keys" => {
            let keys =
                |text: &str| -> BTreeSet<String> { text.split(", ").map(str::to_owned).collect() };
            let (old, new) = (keys(&field.old), keys(&field.new));
            change.tool.is_some() && old.symmetric_difference(&new).any(|it| it == top)
        }
        name => match name.strip_prefix("arg_nesting:") {
            Some(key) => change.tool.is_some() && key == top,
            None => change.tool.is_some() && change.rule.as_str() == name,
        },
    }
}
