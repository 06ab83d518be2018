use std::collections::BTreeSet;

use toolwarden_model::Severity;

use super::snapshot::{ToolCallShape, TooldriftSnapshot};

/// What differs between two snapshots, tool by tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDelta {
    /// `provider/model_id` of the old one.
    pub old_label: String,
    /// `provider/model_id` of the new one.
    pub new_label: String,
    /// The suite.
    pub suite: String,
    /// Every tool of either snapshot, sorted, including those without differences.
    pub tools: Vec<ToolDelta>,
}

/// What differs for one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDelta {
    /// The tool.
    pub tool: String,
    /// The side it is on, if it is on only one.
    pub only_in: Option<SnapshotSide>,
    /// The fields that differ, in tooldrift's order.
    pub fields: Vec<FieldDelta>,
}

/// One of two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotSide {
    /// The old snapshot.
    Old,
    /// The new snapshot.
    New,
}

impl SnapshotSide {
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
    /// The old value, as printed.
    pub old: String,
    /// The new value, as printed.
    pub new: String,
    /// The severity that tooldrift assigns to it.
    pub severity: Severity,
    /// The possible effect on a caller.
    pub note: String,
}

impl SnapshotDelta {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_equivalent(&self) -> bool {
        self.tools.iter().all(ToolDelta::is_equivalent)
    }

    /// Whether a breaking field differs. A tool on only one side is drift, but does not count here.
    #[must_use]
    pub fn has_breaking(&self) -> bool {
        let mut fields = self.tools.iter().flat_map(|tool| &tool.fields);
        fields.any(|field| field.severity == Severity::Breaking)
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
pub fn diff(old: &TooldriftSnapshot, new: &TooldriftSnapshot) -> SnapshotDelta {
    let label = |it: &TooldriftSnapshot| format!("{}/{}", it.provider, it.model_id);
    let names: BTreeSet<&String> = old.tools.keys().chain(new.tools.keys()).collect();
    let tools = names.into_iter().map(|tool| {
        let (only_in, fields) = match (old.tools.get(tool), new.tools.get(tool)) {
            (Some(old), Some(new)) => (None, differing_fields(old, new)),
            (Some(_), None) => (Some(SnapshotSide::Old), Vec::new()),
            (None, _) => (Some(SnapshotSide::New), Vec::new()),
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

/// The fields of two shapes that differ, in the order in which tooldrift prints them.
pub(crate) fn differing_fields(old: &ToolCallShape, new: &ToolCallShape) -> Vec<FieldDelta> {
    use Severity::{Breaking, Warning};
    let mut found = Vec::new();
    // Two different lists may print alike, so the lists themselves are compared.
    if old.arg_keys != new.arg_keys {
        found.push(FieldDelta {
            field: "arg_keys".to_owned(),
            old: format_keys(&old.arg_keys),
            new: format_keys(&new.arg_keys),
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
        python_bool(old.emitted),
        python_bool(new.emitted),
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

/// The keys as printed.
pub(crate) fn format_keys(keys: &[String]) -> String {
    if keys.is_empty() {
        return "—".to_owned();
    }
    keys.join(", ")
}

/// A boolean as Python prints it.
pub(crate) fn python_bool(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}
