use serde_json::Value;
use toolwarden_canon::{
    Demand, Level, Originals, RequestLimits, conform_by, definition_pointer, lint_by, native,
};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Format, Tool};
use toolwarden_schema::{Fault, faults};

use super::canonicalize::announce;
use super::emit::tell_undecided;
use super::rewrite_check::RewriteCheck;
use crate::args::{DocumentFormat, LintArgs, LintDialect, ReportFormat};
use crate::commands::talk::{say, warn};
use crate::error::CliError;
use crate::input::{ReadTool, each_tool};
use crate::output::{Documents, Output, Verdict, print};
use crate::report::{self, Basis, Check, Report};
use crate::style;

/// What the check of schemas by themselves is called.
const JSON_SCHEMA: &str = "json-schema";

pub(super) fn run(args: &LintArgs) -> Result<Verdict, CliError> {
    let mut report = Report {
        schema: "toolwarden/canon/lint/v1",
        checks: std::iter::once(schema_check())
            .chain(args.dialects.iter().map(check))
            .collect(),
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
    let mut rewrites = RewriteCheck::new();
    each_tool(&args.input, |mut read| {
        warn(&read);
        if let Some(fixed) = &mut fixed {
            let tell = args.format == ReportFormat::Text;
            let (count, written) = fix(&mut read, &args.dialects, tell, &mut rewrites)?;
            edits += count;
            fixed.push(&written, read.alone)?;
        }
        limits.add(&read.found.tool);
        check_tool(&read, &args.dialects, &mut report);
        Ok(())
    })?;
    if report.subjects.is_empty() {
        return Err(args.input.nothing_found());
    }
    for (dialect, check) in args.dialects.iter().zip(report.checks.iter_mut().skip(1)) {
        for message in exceeded(&limits, dialect) {
            // One request holds all tools, so all of them are rejected.
            check.rejected = check.tools;
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
            tell_undecided(rewrites.undecided());
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

/// The check that comes before every dialect.
fn schema_check() -> Check {
    Check {
        name: JSON_SCHEMA.to_owned(),
        basis: None,
        rejected: 0,
        outcome: "invalid",
        tools: 0,
        failing: &[report::Level::Error],
    }
}

/// Rewrites a tool for every dialect where that keeps its meaning, says what it changed, and gives
/// what is to be written.
fn fix(
    read: &mut ReadTool<'_>,
    dialects: &[LintDialect],
    tell: bool,
    rewrites: &mut RewriteCheck,
) -> Result<(usize, Value), CliError> {
    let tool = &mut read.found.tool;
    // An operation is part of its document and cannot be written back alone.
    if tool.absent.inputs || tool.format == Format::Openapi {
        return Ok((0, native(tool.clone()).value));
    }
    let originals = Originals::of(tool);
    let mut edits = Vec::new();
    for dialect in dialects {
        let made = conform_by(
            &mut tool.inputs,
            &Pointer::of(["inputs"]),
            dialect.facts(),
            Demand::KeepMeaning,
        );
        for edit in made.iter().filter(|_| tell) {
            let path = style::visible(definition_pointer(tool, &edit.path).as_str());
            let name = style::visible(&tool.name);
            say(&format!(
                "{0}fixed{0:#} {name} {path}: {1} ({2})",
                style::GOOD,
                style::visible(&edit.reason),
                self::name(dialect)
            ));
        }
        edits.extend(made);
    }
    let written = native(tool.clone()).value;
    if !tool.format.is_hosted() {
        rewrites
            .check(originals, &edits, &written, tool.format)
            .map_err(|source| CliError::Rewrite {
                tool: tool.name.clone(),
                source: Box::new(source),
            })?;
    }
    Ok((edits.len(), written))
}

/// Mistakes in the schemas of a tool that count for every reader.
fn schema_findings(tool: &Tool) -> Vec<(Fault, Pointer)> {
    let inputs = (!tool.absent.inputs).then_some(("inputs", &tool.inputs));
    let outputs = (!tool.outputs.is_empty()).then_some(("outputs", &tool.outputs));
    let schemas = inputs.into_iter().chain(outputs);
    let found = schemas.flat_map(|(key, schema)| {
        let faults = faults(&Value::Object(schema.clone()));
        faults.into_iter().map(move |fault| {
            let place = Pointer::of([key]).join(&fault.pointer);
            (fault, place)
        })
    });
    found.collect()
}

fn check_tool(read: &ReadTool<'_>, dialects: &[LintDialect], report: &mut Report) {
    let tool = &read.found.tool;
    let subject = if tool.name.is_empty() {
        read.found.pointer.to_string()
    } else {
        tool.name.clone()
    };
    let mut found: Vec<(usize, String, Raised)> = Vec::new();
    for (fault, place) in schema_findings(tool) {
        let level = if fault.rule.is_error() {
            report::Level::Error
        } else {
            report::Level::Warning
        };
        found.push((
            0,
            JSON_SCHEMA.to_owned(),
            Raised {
                rule: fault.rule.as_str(),
                level,
                message: format!("{}; {}", fault.message, fault.fix),
                part: definition_pointer(tool, &place),
                fixable: false,
            },
        ));
    }
    for (index, dialect) in dialects.iter().enumerate() {
        for finding in lint_by(tool, dialect.facts()) {
            let raised = Raised {
                rule: finding.rule,
                level: match finding.level {
                    Level::Rejected => report::Level::Error,
                    Level::Ignored => report::Level::Warning,
                },
                part: definition_pointer(tool, &finding.pointer),
                message: finding.message.into_owned(),
                fixable: finding.fixable,
            };
            found.push((index + 1, name(dialect), raised));
        }
    }
    for (index, check) in report.checks.iter_mut().enumerate() {
        let mine = |(of, _, it): &(usize, String, Raised)| {
            *of == index && it.level == report::Level::Error
        };
        check.tools += 1;
        check.rejected += usize::from(found.iter().any(mine));
    }
    let parts = found.iter().map(|(_, _, raised)| &raised.part);
    let positions = read.place.positions(&read.found, parts);
    for ((_, check, raised), position) in found.into_iter().zip(positions) {
        let fingerprint =
            report::fingerprint([raised.rule, &check, &subject, raised.part.as_str()]);
        report.findings.push(report::Finding {
            check,
            rule: raised.rule,
            level: raised.level,
            tool: subject.clone(),
            message: raised.message,
            file: read.place.file.display().to_string(),
            line: position.line,
            column: position.column,
            pointer: read.found.pointer.join(&raised.part).to_string(),
            fixable: raised.fixable,
            detail: report::Detail {
                about: Some(about(raised.rule)),
                fingerprint: Some(fingerprint),
                ..report::Detail::default()
            },
        });
    }
    report.subjects.push(subject);
}

/// What a rule of a dialect is about.
const fn about(rule: &'static str) -> report::About {
    report::About {
        id: rule,
        finds: "The definition has something that is no JSON Schema, or that a provider rejects or ignores.",
        help: "Rewrite the definition, or have `toolwarden canon lint --fix` rewrite what can be said \
               otherwise; docs/canon.md says what each dialect accepts.",
    }
}

/// A finding about one part of a definition.
struct Raised {
    rule: &'static str,
    level: report::Level,
    message: String,
    part: Pointer,
    fixable: bool,
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
