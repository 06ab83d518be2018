use toolwarden_canon::{
    Demand, Level, RequestLimits, conform_by, definition_pointer, lint_by, native,
};
use toolwarden_model::Format;
use toolwarden_model::json::Pointer;

use super::canonicalize::announce;
use crate::args::{DocumentFormat, LintArgs, LintDialect, ReportFormat};
use crate::commands::talk::{say, warn};
use crate::error::CliError;
use crate::input::{ReadTool, each_tool};
use crate::output::{Documents, Output, Verdict, print};
use crate::report::{self, Basis, Check, Report};
use crate::style;

pub(super) fn run(args: &LintArgs) -> Result<Verdict, CliError> {
    let mut report = Report {
        schema: "toolwarden/canon/lint/v1",
        checks: args.dialects.iter().map(check).collect(),
        subjects: Vec::new(),
        findings: Vec::new(),
    };
    args.dialects.iter().for_each(tell_gaps);
    let mut limits = RequestLimits::default();
    let mut fixed = match args.fix {
        true => Some(Documents::new(
            Output::open(args.output.as_deref())?,
            DocumentFormat::Text,
        )),
        false => None,
    };
    let mut edits = 0;
    each_tool(&args.input, |mut read| {
        warn(&read);
        if let Some(fixed) = &mut fixed {
            edits += fix(&mut read, &args.dialects, args.format == ReportFormat::Text);
            fixed.push(&native(read.found.tool.clone()).value, read.alone)?;
        }
        limits.add(&read.found.tool);
        check_tool(&read, &args.dialects, &mut report);
        Ok(())
    })?;
    if report.subjects.is_empty() {
        return Err(args.input.nothing_found());
    }
    for dialect in &args.dialects {
        for message in exceeded(&limits, dialect) {
            report
                .findings
                .push(request_finding(args, dialect, message));
        }
    }
    let failed = report
        .findings
        .iter()
        .any(|it| it.level == report::Level::Error || args.strict);
    let rendered = report.render(args.format);
    match fixed {
        Some(fixed) => {
            fixed.finish()?;
            if let Some(path) = &args.output {
                announce(&format!("{edits} changes, written to {}", path.display()))?;
            }
            // Standard output may hold the definitions, so the report goes beside it.
            rendered.lines().for_each(say);
        }
        None => print(&rendered)?,
    }
    Ok(if failed {
        Verdict::Finding
    } else {
        Verdict::Fine
    })
}

/// What a report calls the dialect. A file may name its provider in any characters.
fn name(dialect: &LintDialect) -> String {
    match dialect {
        LintDialect::Known(dialect) => dialect.to_string(),
        LintDialect::Probed(table) => style::visible(&table.name),
    }
}

/// Says what a table cannot tell, so that nobody takes silence for consent.
fn tell_gaps(dialect: &LintDialect) {
    let LintDialect::Probed(table) = dialect else {
        return;
    };
    let not_measured = &table.not_measured;
    if !not_measured.is_empty() {
        let name = name(dialect);
        let gaps = style::visible(&not_measured.join(", "));
        say(&format!(
            "{0}Warning{0:#}: {name}: not measured, so not checked: {gaps}",
            style::WARNING
        ));
    }
}

/// What a request with all tools would be rejected for. A probe sends one tool at a time.
fn exceeded(limits: &RequestLimits, dialect: &LintDialect) -> Vec<String> {
    match dialect {
        LintDialect::Known(dialect) => limits.exceeded(*dialect),
        LintDialect::Probed(_) => limits.repeated(),
    }
}

fn check(dialect: &LintDialect) -> Check {
    let facts = dialect.facts();
    Check {
        name: name(dialect),
        basis: Some(Basis {
            verified_on: facts.verified_on.to_string(),
            source: facts.source.to_string(),
        }),
        rejected: 0,
        outcome: "rejected",
        tools: 0,
        failing: &[report::Level::Error],
    }
}

/// Rewrites a tool for every dialect where that keeps its meaning, and says what it changed.
fn fix(read: &mut ReadTool<'_>, dialects: &[LintDialect], tell: bool) -> usize {
    let mut count = 0;
    let tool = &mut read.found.tool;
    // An operation is part of its document and cannot be written back alone.
    if tool.absent.inputs || tool.format == Format::Openapi {
        return 0;
    }
    for dialect in dialects {
        for edit in conform_by(
            &mut tool.inputs,
            &Pointer::of(["inputs"]),
            dialect.facts(),
            Demand::KeepMeaning,
        ) {
            count += 1;
            if !tell {
                continue;
            }
            let path = style::visible(definition_pointer(tool, &edit.path).as_str());
            let name = style::visible(&tool.name);
            say(&format!(
                "{0}fixed{0:#} {name} {path}: {1} ({2})",
                style::GOOD,
                style::visible(&edit.reason),
                self::name(dialect)
            ));
        }
    }
    count
}

fn check_tool(read: &ReadTool<'_>, dialects: &[LintDialect], report: &mut Report) {
    let tool = &read.found.tool;
    let subject = if tool.name.is_empty() {
        read.found.pointer.to_string()
    } else {
        tool.name.clone()
    };
    for (dialect, check) in dialects.iter().zip(&mut report.checks) {
        let findings = lint_by(tool, dialect.facts());
        check.tools += 1;
        check.rejected += usize::from(
            findings
                .iter()
                .any(|finding| finding.level == Level::Rejected),
        );
        let parts: Vec<Pointer> = findings
            .iter()
            .map(|finding| definition_pointer(tool, &finding.pointer))
            .collect();
        let positions = read.place.positions(&read.found, parts.iter());
        for ((finding, part), position) in findings.into_iter().zip(&parts).zip(positions) {
            report.findings.push(report::Finding {
                check: name(dialect),
                rule: finding.rule,
                level: match finding.level {
                    Level::Rejected => report::Level::Error,
                    Level::Ignored => report::Level::Warning,
                },
                tool: subject.clone(),
                message: finding.message.into_owned(),
                file: read.place.file.display().to_string(),
                line: position.line,
                column: position.column,
                pointer: read.found.pointer.join(part).to_string(),
                fixable: finding.fixable,
                detail: report::Detail {
                    about: Some(about(finding.rule)),
                    fingerprint: Some(report::fingerprint([
                        finding.rule,
                        &name(dialect),
                        &subject,
                        part.as_str(),
                    ])),
                    ..report::Detail::default()
                },
            });
        }
    }
    report.subjects.push(subject);
}

/// What a rule of a dialect is about.
const fn about(rule: &'static str) -> report::About {
    report::About {
        id: rule,
        finds: "The definition has something that this provider rejects or ignores.",
        help: "Rewrite the definition, or have `toolwarden canon lint --fix` rewrite what can be said \
               otherwise; docs/canon.md says what each dialect accepts.",
    }
}

/// A finding about all tools together.
fn request_finding(args: &LintArgs, dialect: &LintDialect, message: String) -> report::Finding {
    let file = args
        .input
        .paths()
        .next()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    report::Finding {
        check: name(dialect),
        rule: "request",
        level: report::Level::Error,
        tool: "all tools".to_owned(),
        message,
        file,
        line: 1,
        column: 1,
        pointer: "/".to_owned(),
        fixable: false,
        detail: report::Detail {
            about: Some(about("request")),
            ..report::Detail::default()
        },
    }
}
