//! Comparisons as JSON.

use serde_json::{Value, json};
use toolwarden_trials::tooldrift::SnapshotDelta;
use toolwarden_trials::{Interval, MetricComparison, Rate, Snapshot, verdict_word};

use super::comparison::{ComparisonRules, ProbeComparison};
use super::snapshot::all_measured;

/// Our own document.
pub(super) fn native_document(compared: &[ProbeComparison], taken: &[Snapshot]) -> String {
    let measured: Vec<Value> = taken
        .iter()
        .map(|it| {
            json!({
                "provider": it.provider,
                "model_id": it.model_id,
                "planned": it.trials.planned,
                "measured": it.trials.measured,
                "failures": it.trials.failures,
            })
        })
        .collect();
    let document = json!({
        "schema": "toolwarden/probe/comparison/v1",
        "comparisons": compared.iter().map(comparison).collect::<Vec<_>>(),
        "measured": measured,
    });
    format!("{document:#}\n")
}

/// One comparison.
pub(super) fn comparison(compared: &ProbeComparison) -> Value {
    let changes: Vec<Value> = compared
        .changes
        .iter()
        .map(|change| {
            json!({
                "id": change.id.to_string(),
                "tool": change.tool,
                "field": change.evidence.rule.to_string(),
                "pointer": change.pointer.as_str(),
                "severity": change.severity().as_str(),
                "before": change.before_text(),
                "after": change.after_text(),
                "note": change.message,
            })
        })
        .collect();
    let (by, metrics) = match &compared.rules {
        ComparisonRules::Trials(comparison) => {
            ("trials", comparison.metrics.iter().map(metric).collect())
        }
        ComparisonRules::Tooldrift(_) => ("tooldrift", Vec::new()),
        ComparisonRules::Pinned => ("pinned", Vec::new()),
    };
    json!({
        "old": compared.old,
        "new": compared.new,
        "suite": compared.suite,
        "by": by,
        "verdict": verdict_word(compared.verdict),
        "more_trials": compared.more_trials(),
        "changes": changes,
        "metrics": metrics,
    })
}

fn metric(compared: &MetricComparison) -> Value {
    let rate = |it: Rate| json!({"k": it.hits, "n": it.of});
    let Interval { lower, upper } = compared.interval;
    json!({
        "metric": compared.metric.to_string(),
        "old": rate(compared.old),
        "new": rate(compared.new),
        "difference": compared.difference,
        "interval": [lower, upper],
        "p": compared.p,
        "verdict": verdict_word(compared.verdict),
    })
}

/// The document of tooldrift: one comparison alone, several in a list. Nothing is equivalent while
/// something could not be measured.
pub(super) fn tooldrift_document(compared: &[ProbeComparison], taken: &[Snapshot]) -> String {
    let measured = !compared.is_empty() && taken.iter().all(all_measured);
    let deltas: Vec<Value> = compared.iter().map(delta).collect();
    let document = match deltas.as_slice() {
        [one] => one.clone(),
        _ => json!({
            "diffs": deltas,
            "equivalent": measured && compared.iter().all(|it| it.changes.is_empty()),
        }),
    };
    format!("{document:#}\n")
}

fn delta(compared: &ProbeComparison) -> Value {
    let tools: Vec<Value> = match &compared.rules {
        ComparisonRules::Tooldrift(delta) => tool_deltas(delta),
        ComparisonRules::Trials(_) | ComparisonRules::Pinned => compared
            .tools
            .iter()
            .map(|tool| changes_delta(compared, tool))
            .collect(),
    };
    json!({
        "old_label": compared.old,
        "new_label": compared.new,
        "suite": compared.suite,
        "tools": tools,
    })
}

fn tool_deltas(delta: &SnapshotDelta) -> Vec<Value> {
    let tools = delta.tools.iter().map(|tool| {
        let fields: Vec<Value> = tool
            .fields
            .iter()
            .map(|it| {
                json!({
                    "field": it.field,
                    "old": it.old,
                    "new": it.new,
                    "severity": it.severity.as_str(),
                    "note": it.note,
                })
            })
            .collect();
        let only_in = tool.only_in.map(|it| it.as_str());
        json!({"tool": tool.tool, "only_in": only_in, "fields": fields})
    });
    tools.collect()
}

fn changes_delta(compared: &ProbeComparison, tool: &str) -> Value {
    let changes = compared.changes.iter();
    let fields: Vec<Value> = changes
        .filter(|change| change.tool.as_deref() == Some(tool))
        .map(|change| {
            json!({
                "field": change.evidence.rule.to_string(),
                "old": change.before_text(),
                "new": change.after_text(),
                "severity": change.severity().as_str(),
                "note": change.message,
            })
        })
        .collect();
    json!({"tool": tool, "only_in": null, "fields": fields})
}
