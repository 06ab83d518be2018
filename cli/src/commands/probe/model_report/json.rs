//! The page as a JSON document.

use serde_json::{Value, json};
use toolwarden_trials::{Confidence, Interval, Rate, wilson};

use super::page::{Finding, ModelColumn, ModelReport};

pub(super) fn json(report: &ModelReport) -> String {
    let document = json!({
        "schema": "toolwarden/probe/report/v1",
        "suite": report.suite,
        "made_at": report.made_at,
        "command": report.command,
        "decision": report.overall().as_str(),
        "allowed_drop": report.allowed_drop,
        "prices": {"as_of": report.prices_as_of, "source": report.prices_source},
        "models": report.models.iter().map(|it| model(it, &report.tools)).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn model(model: &ModelColumn, names: &[String]) -> Value {
    let tools = names.iter().zip(&model.tools).map(|(name, cell)| {
        json!({
            "tool": name,
            "decision": cell.decision.as_str(),
            "called": rate(cell.called),
            "valid": rate(cell.valid),
            "breaking": cell.breaking,
            "warnings": cell.warnings,
        })
    });
    let cases = model
        .cases
        .iter()
        .map(|it| json!({"case": it.name, "planned": it.planned, "met": rate(it.met)}));
    let cost = model.cost.as_ref();
    json!({
        "model": model.label,
        "at": model.at,
        "wire": model.wire,
        "answered_by": model.answered_by,
        "is_baseline": model.is_baseline,
        "decision": model.decision.as_str(),
        "reason": model.reason,
        "planned": model.planned,
        "measured": model.measured,
        "tools": tools.collect::<Vec<_>>(),
        "replies": model.replies.as_str(),
        "cases": cases.collect::<Vec<_>>(),
        "findings": model.findings.iter().map(finding).collect::<Vec<_>>(),
        "more_findings": model.more_findings,
        "latency_ms": {"p50": model.p50_ms, "p95": model.p95_ms},
        "tokens": {"input": model.input_tokens, "output": model.output_tokens},
        "cost_of_1000_replies": cost.map(|(amount, currency)| json!({"amount": amount, "currency": currency})),
    })
}

fn finding(finding: &Finding) -> Value {
    let evidence = finding.evidence.as_ref().map(|it| {
        json!({
            "case": it.case,
            "mode": it.mode,
            "repetition": it.repetition,
            "status": it.status,
            "text": it.text,
            "is_cut": it.is_cut,
        })
    });
    json!({
        "tool": finding.tool,
        "severity": finding.severity.as_str(),
        "field": finding.field,
        "pointer": finding.pointer,
        "before": finding.before,
        "after": finding.after,
        "note": finding.note,
        "against": finding.against,
        "evidence": evidence,
    })
}

fn rate(rate: Rate) -> Value {
    let Interval { lower, upper } = wilson(rate, Confidence::P95);
    // One trial is not a rate.
    let interval = (rate.of > 1).then(|| json!([lower, upper]));
    json!({"k": rate.hits, "n": rate.of, "interval": interval})
}
