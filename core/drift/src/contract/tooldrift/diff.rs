use std::collections::BTreeSet;

use super::shape::{SnapshotOne, ToolCallShape};

/// What differs between two snapshots, tool by tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDelta {
    /// `provider/model_id` of the old one.
    pub old_label: String,
    /// `provider/model_id` of the new one.
    pub new_label: String,
    /// The suite.
    pub suite: String,
    /// Every tool of either, sorted; those without difference too.
    pub tools: Vec<ToolDelta>,
}

/// What differs for one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDelta {
    /// The tool.
    pub tool: String,
    /// The side it is on, if it is on one only.
    pub only_in: Option<WhichSide>,
    /// The fields that differ, in their order.
    pub fields: Vec<FieldDelta>,
}

/// One of two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichSide {
    /// The one that was.
    Old,
    /// The one that is.
    New,
}

impl WhichSide {
    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDelta {
    /// The field.
    pub field: String,
    /// What it was, as it is printed.
    pub old: String,
    /// What it is, as it is printed.
    pub new: String,
    /// How grave that is.
    pub severity: FieldSeverity,
    /// What it may do to a caller.
    pub note: String,
}

/// How grave tooldrift finds a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSeverity {
    /// Callers break.
    Breaking,
    /// Callers may notice.
    Warning,
}

impl FieldSeverity {
    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Breaking => "breaking",
            Self::Warning => "warning",
        }
    }
}

impl SnapshotDelta {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_equivalent(&self) -> bool {
        self.tools.iter().all(ToolDelta::is_equivalent)
    }

    /// Whether a field differs that breaks callers. A tool on one side only is drift, but not this.
    #[must_use]
    pub fn has_breaking(&self) -> bool {
        let mut fields = self.tools.iter().flat_map(|tool| &tool.fields);
        fields.any(|field| field.severity == FieldSeverity::Breaking)
    }
}

impl ToolDelta {
    /// Whether nothing differs for this tool.
    #[must_use]
    pub const fn is_equivalent(&self) -> bool {
        self.only_in.is_none() && self.fields.is_empty()
    }
}

/// Compares two snapshots as tooldrift does: every difference in a field counts.
#[must_use]
pub fn diff(old: &SnapshotOne, new: &SnapshotOne) -> SnapshotDelta {
    let label = |it: &SnapshotOne| format!("{}/{}", it.provider, it.model_id);
    let names: BTreeSet<&String> = old.tools.keys().chain(new.tools.keys()).collect();
    let tools = names.into_iter().map(|tool| {
        let (only_in, fields) = match (old.tools.get(tool), new.tools.get(tool)) {
            (Some(old), Some(new)) => (None, differing(old, new)),
            (Some(_), None) => (Some(WhichSide::Old), Vec::new()),
            (None, _) => (Some(WhichSide::New), Vec::new()),
        };
        ToolDelta {
            tool: tool.clone(),
            only_in,
            fields,
        }
    });
    let suite = if new.suite.is_empty() {
        &old.suite
    } else {
        &new.suite
    };
    SnapshotDelta {
        old_label: label(old),
        new_label: label(new),
        suite: suite.clone(),
        tools: tools.collect(),
    }
}

/// The fields of two shapes that differ, in the order tooldrift tells them.
pub(in crate::contract) fn differing(old: &ToolCallShape, new: &ToolCallShape) -> Vec<FieldDelta> {
    use FieldSeverity::{Breaking, Warning};
    let mut found = Vec::new();
    // Two lists may be printed alike, so it is the lists that are compared.
    if old.arg_keys != new.arg_keys {
        found.push(FieldDelta {
            field: "arg_keys".to_owned(),
            old: keys(&old.arg_keys),
            new: keys(&new.arg_keys),
            severity: Breaking,
            note: ARG_KEYS.to_owned(),
        });
    }
    let mut put = |field: &str, old: String, new: String, severity, note: &str| {
        if old != new {
            found.push(FieldDelta {
                field: field.to_owned(),
                old,
                new,
                severity,
                note: note.to_owned(),
            });
        }
    };
    let names: BTreeSet<&String> = old
        .arg_nesting
        .keys()
        .chain(new.arg_nesting.keys())
        .collect();
    for name in names {
        let kind = |it: &ToolCallShape| {
            let kind = it.arg_nesting.get(name);
            kind.cloned().unwrap_or_else(|| "absent".to_owned())
        };
        let note = format!("the JSON type of argument '{name}' changed (nesting/shape drift).");
        let field = format!("arg_nesting:{name}");
        put(&field, kind(old), kind(new), Breaking, &note);
    }
    put(
        "emitted",
        truth(old.emitted),
        truth(new.emitted),
        Breaking,
        EMITTED,
    );
    put(
        "arguments_encoding",
        old.arguments_encoding.clone(),
        new.arguments_encoding.clone(),
        Breaking,
        ENCODING,
    );
    put(
        "parallel_arity",
        old.parallel_arity.to_string(),
        new.parallel_arity.to_string(),
        Warning,
        ARITY,
    );
    put(
        "tool_call_id_format",
        old.tool_call_id_format.clone(),
        new.tool_call_id_format.clone(),
        Warning,
        ID_FORMAT,
    );
    put(
        "finish_reason",
        old.finish_reason.clone(),
        new.finish_reason.clone(),
        Warning,
        FINISH,
    );
    found
}

const ARG_KEYS: &str = "the set of top-level argument keys changed (key renamed/dropped/added).";
const EMITTED: &str = "the tool stopped (or started) being emitted for the same prompt.";
const ENCODING: &str = "arguments switched between a JSON string and an inline object — a caller that json.loads() the arguments will break on the swap.";
const ARITY: &str = "the number of parallel calls to this tool changed (loop semantics differ).";
const ID_FORMAT: &str =
    "the tool_call id shape changed; callers keying on the id format may break.";
const FINISH: &str = "the choice finish_reason changed; tool-dispatch gating may differ.";

/// Keys as they are printed.
pub(in crate::contract) fn keys(keys: &[String]) -> String {
    if keys.is_empty() {
        return "—".to_owned();
    }
    keys.join(", ")
}

/// Truth as Python prints it.
pub(in crate::contract) fn truth(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}
