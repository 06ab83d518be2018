//! Comparisons in every format.

use toolwarden_drift::contract::{Severity, Snapshot, Verdict};

use super::comparing::Compared;
use super::rows::Row;
use super::{document, screen};
use crate::args::{Compat, JudgeArgs, ReportFormat};
use crate::error::CliError;
use crate::output::print;
use crate::report::{About, Check, Detail, Finding, Level, Report, fingerprint};
use crate::style::visible;

/// Prints comparisons. `place` is the file that a reader would open: what was asked, or what was
/// compared.
pub(super) fn show(
    compared: &[Compared],
    taken: &[Snapshot],
    place: &str,
    args: &JudgeArgs,
) -> Result<(), CliError> {
    let told = match (args.format, args.compat) {
        (ReportFormat::Text, _) => screen::comparisons(compared, taken, args),
        (ReportFormat::Json, Some(Compat::Tooldrift)) => document::tooldrift(compared, taken),
        (ReportFormat::Json, None) => document::ours(compared, taken),
        (format, _) => {
            let mut report = report(compared, taken, args);
            for finding in &mut report.findings {
                place.clone_into(&mut finding.file);
            }
            let report = match format {
                ReportFormat::Sarif => by_rule(report),
                _ => plain(report),
            };
            report.render(format)
        }
    };
    print(&told)
}

/// The same with rules that are named alike whoever is compared, so that alerts can be followed.
fn by_rule(mut report: Report) -> Report {
    for finding in &mut report.findings {
        finding.message = format!("{}: {}", finding.check, finding.message);
        "probe".clone_into(&mut finding.check);
    }
    report
}

/// The same with names that can end no line: what is printed in a workflow is read by it.
fn plain(mut report: Report) -> Report {
    for subject in &mut report.subjects {
        *subject = visible(subject);
    }
    for finding in &mut report.findings {
        for text in [
            &mut finding.tool,
            &mut finding.message,
            &mut finding.pointer,
        ] {
            *text = visible(text);
        }
    }
    report
}

fn report(compared: &[Compared], taken: &[Snapshot], args: &JudgeArgs) -> Report {
    let mut findings = Vec::new();
    let mut checks = Vec::new();
    let mut subjects: Vec<String> = Vec::new();
    for it in compared {
        let check = visible(&format!("{} → {}", it.old, it.new));
        findings.extend(it.rows.iter().map(|row| finding(&check, it, row)));
        if it.verdict == Verdict::Inconclusive {
            findings.push(note(&check, &it.new, "inconclusive", Level::Error, OPEN));
        }
        subjects.extend(it.tools.iter().cloned());
        checks.push(Check {
            name: check,
            basis: None,
            rejected: it.tools.iter().filter(|tool| it.differs(tool)).count(),
            outcome: "drifted",
            tools: it.tools.len(),
            failing: match args.fails_from() {
                Severity::Breaking => &[Level::Error],
                Severity::Warning | Severity::Info => &[Level::Error, Level::Warning],
            },
        });
    }
    for it in taken
        .iter()
        .filter(|it| it.trials.measured < it.trials.planned)
    {
        let (measured, planned) = (it.trials.measured, it.trials.planned);
        let message = format!("only {measured} of {planned} trials could be measured");
        let level = Level::Error;
        findings.push(note(
            "measured",
            &it.label(),
            "not-measured",
            level,
            &message,
        ));
    }
    if findings.iter().any(|it| it.check == "measured") || checks.is_empty() {
        checks.push(Check {
            name: "measured".to_owned(),
            basis: None,
            rejected: findings.iter().filter(|it| it.check == "measured").count(),
            outcome: "not measured",
            tools: taken.len(),
            failing: &[Level::Error],
        });
    }
    subjects.sort();
    subjects.dedup();
    Report {
        schema: "toolwarden/probe/report/v1",
        checks,
        subjects,
        findings,
    }
}

const OPEN: &str = "the trials do not tell whether the two are the same; ask more often";

fn finding(check: &str, compared: &Compared, row: &Row) -> Finding {
    let level = match row.severity {
        Severity::Breaking => Level::Error,
        Severity::Warning => Level::Warning,
        Severity::Info => Level::Note,
    };
    let tool = row.tool.clone().unwrap_or_else(|| compared.new.clone());
    let message = format!(
        "{}: {} → {}; {}",
        row.field, row.before, row.after, row.note
    );
    Finding {
        pointer: row.pointer.clone(),
        ..note(check, &tool, rule(&row.field), level, &message)
    }
}

fn note(check: &str, tool: &str, rule: &'static str, level: Level, message: &str) -> Finding {
    Finding {
        check: check.to_owned(),
        rule,
        level,
        tool: tool.to_owned(),
        message: message.to_owned(),
        file: String::new(),
        line: 1,
        column: 1,
        pointer: String::new(),
        fixable: false,
        detail: Detail {
            about: Some(about(rule)),
            fingerprint: Some(fingerprint([check, rule, tool, message])),
            ..Detail::default()
        },
    }
}

/// What a rule is about.
const fn about(rule: &'static str) -> About {
    About {
        id: rule,
        finds: "Two models call the same tools differently, or it could not be told whether they do.",
        help: "Read the difference; `toolwarden probe diff` shows all of them, and docs/probe.md says what \
               each means.",
    }
}

/// The stable word for what differs, without the name of an argument in it.
fn rule(field: &str) -> &'static str {
    const RULES: [&str; 8] = [
        "arg_keys",
        "arguments_encoding",
        "emitted",
        "parallel_arity",
        "tool_call_id_format",
        "finish_reason",
        "expectation",
        "only_in",
    ];
    if field.starts_with("arg_nesting:") {
        return "arg_nesting";
    }
    let known = RULES.into_iter().find(|it| *it == field);
    known.unwrap_or("contract")
}
