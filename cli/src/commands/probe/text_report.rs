//! Snapshots and comparisons for a person.

use std::collections::BTreeSet;

use toolwarden_model::{Severity, Verdict};
use toolwarden_trials::{Rate, Snapshot, TrialChange, TrialRule, conformance};

use super::comparison::{ProbeComparison, UnchangedTool};
use crate::args::JudgeArgs;
use crate::style::{self, escape_controls};

pub(super) fn comparisons_text(
    compared: &[ProbeComparison],
    taken: &[Snapshot],
    args: &JudgeArgs,
) -> String {
    if compared.is_empty() {
        return panel(
            style::WARNING,
            "NOT MEASURED — nothing can be compared. Exit 3.",
        );
    }
    let mut told: Vec<String> = compared
        .iter()
        .map(|it| comparison_text(it, args))
        .collect();
    // What could be compared may be equal; that alone must not look like a pass.
    let open = taken
        .iter()
        .filter(|it| it.trials.measured < it.trials.planned);
    told.extend(open.map(|it| {
        let (label, measured, planned) = (it.label(), it.trials.measured, it.trials.planned);
        let label = escape_controls(&label);
        panel(
            style::WARNING,
            &format!(
                "NOT MEASURED — {label}: only {measured} of {planned} trials could be measured."
            ),
        )
    }));
    told.join("\n")
}

fn comparison_text(compared: &ProbeComparison, args: &JudgeArgs) -> String {
    let (good, error, dim) = (style::SUCCESS, style::ERROR, style::DIM);
    let warning = style::WARNING;
    let mut out = format!(
        "ToolDrift {}  →  {}   suite={}\n",
        escape_controls(&compared.old),
        escape_controls(&compared.new),
        escape_controls(&compared.suite)
    );
    let (drifted, same): (Vec<&String>, Vec<&String>) = compared
        .tools
        .iter()
        .partition(|tool| compared.differs(tool));
    for tool in same {
        let name = escape_controls(tool);
        out.push_str(&match compared.status_without_changes(tool) {
            UnchangedTool::Equivalent => format!("  {good}✓{good:#} {name} equivalent\n"),
            UnchangedTool::Inconclusive => format!("  {warning}?{warning:#} {name} inconclusive\n"),
        });
        out.push_str(&lines(&rows_of_tool(compared, Some(tool))));
    }
    for tool in &drifted {
        out.push_str(&drift(compared, tool, args));
    }
    // Tools that were called without being offered are in no list.
    let strange = compared.changes.iter().filter_map(|it| it.tool.as_ref());
    let strange = strange.filter(|it| !compared.tools.contains(it));
    for tool in strange.collect::<BTreeSet<_>>() {
        out.push_str(&format!(
            "  {error}✗{error:#} {} was not offered\n",
            escape_controls(tool)
        ));
        out.push_str(&lines(&rows_of_tool(compared, Some(tool))));
    }
    let replies = rows_of_tool(compared, None);
    if !replies.is_empty() {
        out.push_str(&format!("  {dim}replies{dim:#}\n"));
        out.push_str(&lines(&replies));
    }
    out.push_str(&verdict(compared, drifted.len(), args));
    out
}

fn rows_of_tool<'c>(compared: &'c ProbeComparison, tool: Option<&str>) -> Vec<&'c TrialChange> {
    let rows = compared.changes.iter();
    rows.filter(|row| row.tool.as_deref() == tool).collect()
}

/// A tool that differs, and in what.
fn drift(compared: &ProbeComparison, tool: &str, args: &JudgeArgs) -> String {
    let (error, warning) = (style::ERROR, style::WARNING);
    let rows = rows_of_tool(compared, Some(tool));
    let name = escape_controls(tool);
    if let [row] = rows.as_slice()
        && row.evidence.rule == TrialRule::OnlyIn
    {
        let side = match row.after_text().as_str() {
            "old" => "baseline (old)",
            _ => "candidate (new)",
        };
        return format!(
            "  {error}✗{error:#} {name} only present in {side} — {}.\n",
            row.message
        );
    }
    let mark = if rows
        .iter()
        .any(|row| row.severity() >= args.failing_severity())
    {
        format!("{error}✗{error:#} {name} contract drift")
    } else {
        format!("{warning}!{warning:#} {name} has warnings")
    };
    format!("  {mark}\n{}", lines(&rows))
}

fn verdict(compared: &ProbeComparison, drifted: usize, args: &JudgeArgs) -> String {
    let tools = compared.tools.len();
    let fails = compared.max_severity() >= Some(args.failing_severity());
    let breaking = compared
        .changes
        .iter()
        .filter(|it| it.severity() == Severity::Breaking);
    let broken: BTreeSet<&String> = breaking.filter_map(|it| it.tool.as_ref()).collect();
    let (style, line) = match (compared.max_severity(), compared.verdict) {
        (Some(Severity::Breaking), _) if broken.is_empty() => (
            style::ERROR,
            "FAIL — BREAKING drift in replies. Exit 1.".to_owned(),
        ),
        (Some(Severity::Breaking), _) => (
            style::ERROR,
            format!(
                "FAIL — BREAKING drift in {} of {tools} tool(s). Exit 1.",
                broken.len()
            ),
        ),
        (Some(Severity::Warning), _) if fails => (
            style::ERROR,
            format!("FAIL — drift in {drifted} of {tools} tool(s). Exit 1."),
        ),
        (_, Verdict::NotMeasured) => {
            let more = compared
                .more_trials()
                .map(|more| format!(" About {more} more of each case and side would decide."));
            let more = more.unwrap_or_default();
            let line = "INCONCLUSIVE — too few trials to tell the two apart from chance.";
            (style::WARNING, format!("{line}{more} Exit 3."))
        }
        (Some(Severity::Warning), _) if drifted == 0 => (
            style::SUCCESS,
            "PASS — nothing breaks; there are warnings about replies.".to_owned(),
        ),
        (Some(Severity::Warning), _) => (
            style::SUCCESS,
            format!("PASS — nothing breaks; {drifted} of {tools} tool(s) have warnings."),
        ),
        (_, Verdict::Pass | Verdict::Drift) => (
            style::SUCCESS,
            format!("PASS — tool-call contracts are equivalent across {tools} tool(s)."),
        ),
    };
    panel(style, &line)
}

/// Rows in columns, the notes below what they are about.
fn lines(rows: &[&TrialChange]) -> String {
    let name = |row: &TrialChange| {
        let place = match row.pointer.as_str() {
            "" => String::new(),
            _ if matches!(
                row.evidence.rule,
                TrialRule::ArgNesting(_) | TrialRule::ArgKeys
            ) =>
            {
                String::new()
            }
            pointer => format!(" {pointer}"),
        };
        escape_controls(&format!("{}{place}", row.evidence.rule))
    };
    let width = |texts: Vec<String>| texts.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    let fields = width(rows.iter().map(|row| name(row)).collect());
    let olds = width(
        rows.iter()
            .map(|row| escape_controls(&row.before_text()))
            .collect(),
    );
    let news = width(
        rows.iter()
            .map(|row| escape_controls(&row.after_text()))
            .collect(),
    );
    let mut out = String::new();
    for row in rows {
        let style = match row.severity() {
            Severity::Breaking => style::ERROR,
            Severity::Warning => style::WARNING,
            Severity::Info => style::DIM,
        };
        let (dim, severity) = (style::DIM, row.severity().as_str());
        out.push_str(&format!(
            "      {:<fields$}  {:<olds$}  →  {:<news$}  {style}{severity:<8}{style:#}  {dim}{}{dim:#}\n",
            name(row),
            escape_controls(&row.before_text()),
            escape_controls(&row.after_text()),
            escape_controls(&row.message),
        ));
    }
    out
}

/// A line in a box.
fn panel(style: anstyle::Style, line: &str) -> String {
    let rule = "─".repeat(line.chars().count() + 2);
    format!("╭{rule}╮\n│ {style}{line}{style:#} │\n╰{rule}╯\n")
}

/// One snapshot.
pub(super) fn snapshot_text(taken: &Snapshot) -> String {
    let (place, dim) = (style::LOCATION, style::DIM);
    let mut out = format!(
        "{place}{}{place:#}   suite={}   {} of {} trials measured\n",
        escape_controls(&taken.label()),
        escape_controls(&taken.suite),
        taken.trials.measured,
        taken.trials.planned
    );
    for (name, tool) in &taken.tools {
        let encodings: Vec<&str> = tool.encodings.keys().map(String::as_str).collect();
        let ids: Vec<&str> = tool.id_classes.keys().map(String::as_str).collect();
        out.push_str(&format!(
            "  {}  called in {}, arguments valid in {}\n",
            escape_controls(name),
            tool.emitted,
            valid(tool.schema_valid),
        ));
        let paths: Vec<String> = tool
            .arguments
            .paths
            .iter()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, shape)| {
                let types: Vec<&str> = shape.types.keys().map(String::as_str).collect();
                format!("{} {}", escape_controls(path), types.join("|"))
            })
            .collect();
        if !paths.is_empty() {
            out.push_str(&format!("      {}\n", paths.join(", ")));
        }
        if tool.calls > 0 {
            out.push_str(&format!(
                "      {dim}sent as {}, ids {}{dim:#}\n",
                encodings.join("|"),
                ids.join("|")
            ));
        }
    }
    let finish: Vec<String> = taken
        .replies
        .finish
        .keys()
        .map(|it| escape_controls(it))
        .collect();
    out.push_str(&format!("  finish {}\n", finish.join("|")));
    for wrong in conformance(taken) {
        let tool = wrong.tool.as_deref().unwrap_or("replies");
        let (style, mark) = match wrong.severity() {
            Severity::Breaking => (style::ERROR, '✗'),
            Severity::Warning | Severity::Info => (style::WARNING, '!'),
        };
        out.push_str(&format!(
            "  {style}{mark}{style:#} {} {} {}: {} ({})\n",
            escape_controls(tool),
            wrong.evidence.rule,
            escape_controls(wrong.pointer.as_str()),
            escape_controls(&wrong.message),
            wrong.after_text()
        ));
    }
    out
}

fn valid(rate: Rate) -> String {
    if rate.of == 0 {
        return "no calls".to_owned();
    }
    format!("{rate} calls")
}
