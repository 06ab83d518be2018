//! A comparison as Markdown: a table of changes, each with the value that proves it.

use serde_json::Value;
use toolwarden_drift::{Change, ChangeClass, Drift, ToolDrift};
use toolwarden_model::json::{Pointer, to_canonical_string};

use super::comparison::ServerComparison;
use super::findings::witness;
use crate::report::markdown::escape_cell;

/// The most characters of a value in a cell.
const MAX_CELL: usize = 160;

/// The table for one or several servers, with the name of each where there are several.
pub(super) fn render(comparisons: &[(Option<&str>, &ServerComparison<'_>)]) -> String {
    let mut text = String::new();
    for (server, comparison) in comparisons {
        if let Some(server) = server {
            text.push_str(&format!("### {}\n\n", escape_cell(server)));
        }
        text.push_str(&summary(comparison));
        let mut rows = String::new();
        let mut tools: Vec<&ToolDrift> = comparison.drift.tools.iter().collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.class()));
        for tool in tools {
            rows.push_str(&tool_section(comparison, tool));
        }
        if !rows.is_empty() {
            text.push_str("\n| tool | class | change | before | after | witness | place |\n");
            text.push_str("|---|---|---|---|---|---|---|\n");
            text.push_str(&rows);
        }
        text.push_str(&unmeasured(comparison));
    }
    text
}

/// A server that could not be asked.
pub(super) fn unanswered_row(server: &str, why: &str) -> String {
    format!(
        "\n**not checked**: {}: {}\n",
        escape_cell(server),
        escape_cell(why)
    )
}

/// Results that could not be compared.
pub(super) fn not_measured(message: &str) -> String {
    format!("\n**not measured**: {}\n", escape_cell(message))
}

/// Tools that were pinned instead of compared.
pub(super) fn first_pinned(message: &str) -> String {
    format!("\n**not compared**: {}\n", escape_cell(message))
}

/// A server of the lock file that was not checked.
pub(super) fn unchecked_row(server: &str, tools: usize, lock: &str) -> String {
    let tools = match tools {
        1 => "1 tool".to_owned(),
        several => format!("{several} tools"),
    };
    format!(
        "\n**not checked**: server {} of {} was not checked ({tools})\n",
        escape_cell(server),
        escape_cell(lock)
    )
}

fn summary(comparison: &ServerComparison<'_>) -> String {
    let drift = comparison.drift;
    let counts = ChangeClass::ALL.into_iter().rev().filter_map(|class| {
        let tools = drift.tools.iter();
        let count = tools.filter(|tool| tool.class() == class).count();
        (count > 0).then(|| format!("{count} {}", class.as_str()))
    });
    let counts: Vec<String> = counts.collect();
    let unchanged = drift.unchanged;
    if counts.is_empty() {
        return format!("**no drift**: {unchanged} unchanged\n");
    }
    let verdict = if comparison.has_failures() {
        "failed"
    } else {
        "passed"
    };
    let counts = counts.join(", ");
    format!("**{verdict}**: {counts}; {unchanged} unchanged\n")
}

fn unmeasured(comparison: &ServerComparison<'_>) -> String {
    let results = comparison.drift.results.iter();
    let lines = results.filter_map(|(tool, said)| {
        let limit = said.too_few()?.to_string();
        let (tool, limit) = (escape_cell(tool), escape_cell(&limit));
        Some(format!("\n**results not measured**: {tool}: {limit}\n"))
    });
    lines.collect()
}

fn tool_section(comparison: &ServerComparison<'_>, tool: &ToolDrift) -> String {
    let whole = |change: &str, witness: &str| {
        row(
            comparison,
            tool,
            &TableRow {
                class: tool.class(),
                change,
                before: None,
                after: None,
                witness,
                at: &Pointer::root(),
            },
        )
    };
    match tool {
        ToolDrift::Added { findings, .. } => {
            let reasons = findings.iter().map(|it| it.message.as_str());
            let reasons: Vec<&str> = reasons.collect();
            whole("the tool is new", &reasons.join("; "))
        }
        ToolDrift::Removed { .. } => whole("the tool is gone", "every call of it fails"),
        ToolDrift::Renamed { rename, drift } => {
            let renamed = format!("`{}` was renamed to `{}`", rename.from, rename.to);
            let renamed = whole(&renamed, "every call under the old name fails");
            renamed + &changes(comparison, tool, drift)
        }
        ToolDrift::Changed(drift) => changes(comparison, tool, drift),
    }
}

fn changes(comparison: &ServerComparison<'_>, tool: &ToolDrift, drift: &Drift) -> String {
    let rows = drift.changes.iter().map(|change| {
        let proof = proof(change);
        row(
            comparison,
            tool,
            &TableRow {
                class: change.class,
                change: &change.message,
                before: change.before.as_ref(),
                after: change.after.as_ref(),
                witness: &proof,
                at: &change.pointer,
            },
        )
    });
    rows.collect()
}

/// What proves the change, what callers send instead, and what the text of it has.
fn proof(change: &Change) -> String {
    let rename = change.evidence.rename.as_ref();
    let adapter = rename.and_then(|rename| rename.adapter.as_ref());
    let adapter = adapter.map(|adapter| format!("send instead: {adapter}"));
    let reasons = change
        .evidence
        .reasons
        .iter()
        .map(|reason| reason.message.clone());
    let parts: Vec<String> = witness(change)
        .into_iter()
        .chain(adapter)
        .chain(reasons)
        .collect();
    parts.join("; ")
}

struct TableRow<'r> {
    class: ChangeClass,
    change: &'r str,
    before: Option<&'r Value>,
    after: Option<&'r Value>,
    witness: &'r str,
    at: &'r Pointer,
}

fn row(comparison: &ServerComparison<'_>, tool: &ToolDrift, row: &TableRow<'_>) -> String {
    let place = comparison.location(tool).map(|place| {
        let position = place.positions(std::iter::once(row.at));
        let line = position.first().map_or(1, |position| position.line);
        format!("{}:{line}", place.file)
    });
    let place = place.unwrap_or_default();
    let value = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => truncate(text),
        Some(value) => truncate(&to_canonical_string(value)),
    };
    let cells = [
        tool.tool(),
        row.class.as_str(),
        row.change,
        &value(row.before),
        &value(row.after),
        row.witness,
        &place,
    ];
    let cells: Vec<String> = cells.iter().map(|text| escape_cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn truncate(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_CELL).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
