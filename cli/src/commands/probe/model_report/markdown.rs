//! The page as Markdown.

use toolwarden_model::Severity;

use super::html::{case_text, facts, title};
use super::page::{ModelReport, ToolCell, count, milliseconds, money, percent, rate_text, tokens};
use crate::report::markdown::escape_cell;
use crate::style::escape_controls;

pub(super) fn markdown(report: &ModelReport) -> String {
    let mut out = format!(
        "# Which models can run {}?\n\nTool calls of {} on {} tools, measured and compared. Made {}.\n\n",
        escape_cell(&report.suite),
        count(report.models.len(), "model"),
        report.tools.len(),
        escape_cell(&report.made_at)
    );
    out.push_str("| model | decision | why |\n|---|---|---|\n");
    for model in &report.models {
        let role = if model.is_baseline {
            " (in use now)"
        } else {
            ""
        };
        out.push_str(&format!(
            "| {}{role} | {} **{}** | {} |\n",
            escape_cell(&model.label),
            model.decision.sign(),
            title(model.decision),
            escape_cell(&model.reason)
        ));
    }
    let labels: Vec<String> = report
        .models
        .iter()
        .map(|it| escape_cell(&it.label))
        .collect();
    let rule = "---|".repeat(labels.len());
    out.push_str(&format!(
        "\n## Tool by tool\n\n| tool | {} |\n|---|{rule}\n",
        labels.join(" | ")
    ));
    for (at, tool) in report.tools.iter().enumerate() {
        let cells = report
            .models
            .iter()
            .map(|it| it.tools.get(at).map(cell).unwrap_or_default());
        let cells: Vec<String> = cells.collect();
        out.push_str(&format!(
            "| {} | {} |\n",
            escape_cell(tool),
            cells.join(" | ")
        ));
    }
    let replies = report.models.iter().map(|it| {
        let (sign, word) = (it.replies.sign(), it.replies.as_str());
        format!(
            "{sign} {word}; {} of {} trials measured",
            it.measured, it.planned
        )
    });
    let replies: Vec<String> = replies.collect();
    out.push_str(&format!(
        "| *replies as a whole* | {} |\n",
        replies.join(" | ")
    ));
    out.push_str(&breakage(report));
    out.push_str(
        "\n## Time, tokens and price\n\n| model | median | 95 % within | tokens in | tokens out | 1000 replies cost |\n|---|---|---|---|---|---|\n",
    );
    for model in &report.models {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            escape_cell(&model.label),
            milliseconds(model.p50_ms),
            milliseconds(model.p95_ms),
            tokens(model.input_tokens),
            tokens(model.output_tokens),
            escape_cell(&money(model.cost.as_ref()))
        ));
    }
    out.push_str(&format!(
        "\nList prices of {}, from {}; check them with the vendor.\n\n## Case by case\n\n| case | {} |\n|---|{rule}\n",
        escape_cell(&report.prices_as_of),
        escape_cell(&report.prices_source),
        labels.join(" | ")
    ));
    let names: std::collections::BTreeSet<&String> = report
        .models
        .iter()
        .flat_map(|it| it.cases.iter().map(|case| &case.name))
        .collect();
    for name in names {
        let cells = report
            .models
            .iter()
            .map(|model| case_text(model.cases.iter().find(|it| it.name == *name)));
        let cells: Vec<String> = cells.collect();
        out.push_str(&format!(
            "| {} | {} |\n",
            escape_cell(name),
            cells.join(" | ")
        ));
    }
    out.push_str("\n## How this was made\n\n");
    out.push_str(&fenced(&report.command));
    out.push_str(&format!(
        "\nEvery model after the first is compared with the first; a drop of up to {} is allowed.\n\n",
        percent(report.allowed_drop)
    ));
    for model in &report.models {
        out.push_str(&format!(
            "- {}: {}\n",
            escape_cell(&model.label),
            escape_cell(&facts(model))
        ));
    }
    out
}

fn cell(cell: &ToolCell) -> String {
    let called = match cell.called.of {
        0 => "never asked for".to_owned(),
        _ => format!("called in {}", rate_text(cell.called)),
    };
    let valid = match cell.valid.of {
        0 => "no calls to check".to_owned(),
        _ => format!("valid in {}", rate_text(cell.valid)),
    };
    format!(
        "{} **{}**; {called}; {valid}",
        cell.decision.sign(),
        cell.decision.as_str()
    )
}

fn breakage(report: &ModelReport) -> String {
    let mut out = String::from("\n## What breaks\n\n");
    let mut is_empty = true;
    for model in &report.models {
        for finding in &model.findings {
            is_empty = false;
            let tool = finding.tool.as_deref().unwrap_or("replies");
            let severity = match finding.severity {
                Severity::Breaking => "**breaking**",
                Severity::Warning => "warning",
                Severity::Info => "info",
            };
            out.push_str(&format!(
                "- {severity} {} · {} · {} {}: {} → {} (against {}): {}\n",
                escape_cell(&model.label),
                escape_cell(tool),
                escape_cell(&finding.field),
                escape_cell(&finding.pointer),
                escape_cell(&finding.before),
                escape_cell(&finding.after),
                escape_cell(&finding.against),
                escape_cell(&finding.note)
            ));
            let breaking = finding.severity == Severity::Breaking;
            if let Some(evidence) = finding.evidence.as_ref().filter(|_| breaking) {
                let lines = fenced(&evidence.text);
                let lines: Vec<String> = lines.lines().map(|it| format!("  {it}")).collect();
                out.push_str(&format!("{}\n", lines.join("\n")));
            }
        }
        if model.more_findings > 0 {
            let label = escape_cell(&model.label);
            out.push_str(&format!("- {label}: and {} more\n", model.more_findings));
        }
    }
    if is_empty {
        out.push_str("Nothing that was measured breaks callers or warns.\n");
    }
    out
}

/// A block of code. Its fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines: Vec<String> = text.split('\n').map(escape_controls).collect();
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}
