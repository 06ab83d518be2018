//! Comparisons in every format.

use toolwarden_model::{Severity, Verdict};
use toolwarden_trials::{Snapshot, TrialChange, TrialRule};

use super::comparison::ProbeComparison;
use super::{json_document, text_report};
use crate::args::{Compat, JudgeArgs, ReportFormat};
use crate::error::CliError;
use crate::output::print_text;
use crate::report::{
    FindingContext, FindingDetail, FindingLevel, FindingPlace, FindingReport, ReportCheck,
    ReportFinding, RuleInfo, Subject, fingerprint,
};
use crate::style::escape_controls;

/// Prints comparisons. `place` is the file that a reader would open: what was asked, or what was
/// compared.
pub(super) fn print_comparisons(
    compared: &[ProbeComparison],
    taken: &[Snapshot],
    place: &str,
    args: &JudgeArgs,
) -> Result<(), CliError> {
    let told = match (args.format, args.compat) {
        (ReportFormat::Text, _) => text_report::comparisons_text(compared, taken, args),
        (ReportFormat::Json, Some(Compat::Tooldrift)) => {
            json_document::tooldrift_document(compared, taken)
        }
        (ReportFormat::Json, None) => json_document::native_document(compared, taken),
        (format, _) => {
            let mut report = report(compared, taken, args);
            for finding in &mut report.findings {
                place.clone_into(&mut finding.file);
            }
            let report = match format {
                ReportFormat::Sarif => by_rule(report),
                _ => escape_names(report),
            };
            report.render(format)
        }
    };
    print_text(&told)
}

/// The same with rule names that do not depend on the providers compared, so that alerts can be tracked.
fn by_rule(mut report: FindingReport) -> FindingReport {
    for finding in &mut report.findings {
        finding.message = format!("{}: {}", finding.check, finding.message);
        "probe".clone_into(&mut finding.check);
    }
    report
}

/// The same with names that can end no line: what is printed in a workflow is read by it.
fn escape_names(mut report: FindingReport) -> FindingReport {
    for subject in &mut report.subjects {
        subject.name = escape_controls(&subject.name);
    }
    for finding in &mut report.findings {
        for text in [
            &mut finding.tool,
            &mut finding.message,
            &mut finding.pointer,
        ] {
            *text = escape_controls(text);
        }
    }
    report
}

fn report(compared: &[ProbeComparison], taken: &[Snapshot], args: &JudgeArgs) -> FindingReport {
    let mut findings = Vec::new();
    let mut checks = Vec::new();
    let mut subjects: Vec<String> = Vec::new();
    for it in compared {
        let check = escape_controls(&format!("{} → {}", it.old, it.new));
        findings.extend(it.changes.iter().map(|change| finding(&check, it, change)));
        if it.verdict == Verdict::NotMeasured {
            let message = match it.more_trials() {
                Some(more) => format!(
                    "{INCONCLUSIVE}; about {more} more trials of each case and side would decide"
                ),
                None => INCONCLUSIVE.to_owned(),
            };
            findings.push(note_finding(
                &check,
                &it.new,
                "inconclusive",
                FindingLevel::Error,
                &message,
            ));
        }
        subjects.extend(it.tools.iter().cloned());
        checks.push(ReportCheck {
            name: check,
            basis: None,
            rejected: it.tools.iter().filter(|tool| it.differs(tool)).count(),
            outcome: "drifted",
            tools: it.tools.len(),
            failing: match args.failing_severity() {
                Severity::Breaking => &[FindingLevel::Error],
                Severity::Warning | Severity::Info => &[FindingLevel::Error, FindingLevel::Warning],
            },
        });
    }
    for it in taken
        .iter()
        .filter(|it| it.trials.measured < it.trials.planned)
    {
        let (measured, planned) = (it.trials.measured, it.trials.planned);
        let message = format!("only {measured} of {planned} trials could be measured");
        let level = FindingLevel::Error;
        findings.push(note_finding(
            "measured",
            &it.label(),
            "not-measured",
            level,
            &message,
        ));
    }
    if findings.iter().any(|it| it.check == "measured") || checks.is_empty() {
        checks.push(ReportCheck {
            name: "measured".to_owned(),
            basis: None,
            rejected: findings.iter().filter(|it| it.check == "measured").count(),
            outcome: "not measured",
            tools: taken.len(),
            failing: &[FindingLevel::Error],
        });
    }
    subjects.sort();
    subjects.dedup();
    FindingReport {
        schema: "toolwarden/probe/report/v1",
        checks,
        subjects: subjects.iter().map(|name| Subject::of(name)).collect(),
        findings,
    }
}

const INCONCLUSIVE: &str = "the trials do not tell whether the two are the same; ask more often";

fn finding(check: &str, compared: &ProbeComparison, change: &TrialChange) -> ReportFinding {
    let rule = &change.evidence.rule;
    let (before, after) = (change.before_text(), change.after_text());
    let context = FindingContext {
        check: check.to_owned(),
        subject: change.tool.clone().unwrap_or_else(|| compared.new.clone()),
        group: None,
        level: FindingLevel::from(change.severity()),
        message: format!("{rule}: {before} → {after}; {}", change.message),
        place: FindingPlace {
            pointer: change.pointer.as_str().to_owned(),
            ..FindingPlace::default()
        },
        rule_info: rule_info(sarif_rule(rule)),
        // Without the counts, so that the same change stays one alert.
        fingerprint: fingerprint([check, &change.id.to_string()]),
    };
    ReportFinding::from_change(change, context)
}

fn note_finding(
    check: &str,
    tool: &str,
    rule: &'static str,
    level: FindingLevel,
    message: &str,
) -> ReportFinding {
    ReportFinding {
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
        detail: FindingDetail {
            rule_info: Some(rule_info(rule)),
            fingerprint: Some(fingerprint([check, rule, tool, message])),
            ..FindingDetail::default()
        },
    }
}

/// What a rule is about.
const fn rule_info(rule: &'static str) -> RuleInfo {
    RuleInfo {
        id: rule,
        finds: "Two models call the same tools differently, or it could not be told whether they do.",
        help: "Read the difference; `toolwarden probe diff` shows all of them, and docs/probe.md says what \
               each means.",
    }
}

/// The SARIF rule of a change: the fields of tooldrift and expectations have their own, everything else
/// is about the contract as a whole.
const fn sarif_rule(rule: &TrialRule) -> &'static str {
    match rule {
        TrialRule::ArgKeys
        | TrialRule::ArgNesting(_)
        | TrialRule::ArgumentsEncoding
        | TrialRule::Emitted
        | TrialRule::ParallelArity
        | TrialRule::ToolCallIdFormat
        | TrialRule::FinishReason
        | TrialRule::Expectation
        | TrialRule::OnlyIn => rule.as_str(),
        _ => "contract",
    }
}
