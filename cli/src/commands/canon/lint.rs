use serde_json::Value;
use toolwarden_canon::{
    DialectLevel, OriginalSchemas, ParseError, RequestLimits, RewriteMode, UnreadSchema, Warning,
    conform_to_facts, definition_pointer, emit_native, lint_with_facts, unread_schemas,
};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Format, Tool};
use toolwarden_schema::{ValueDomain, find_faults};

use super::canonicalize::announce;
use super::emit::print_undecided;
use super::rewrite_check::RewriteCheck;
use super::satisfiability::find_contradictions;
use crate::args::{DocumentFormat, LintArgs, LintDialect, ReportFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::{print_status, print_unread_members, print_warnings};
use crate::error::CliError;
use crate::input::{InputTool, each_tool};
use crate::output::{DefinitionWriter, OutputFile, print_text};
use crate::report::{self, CheckBasis, FindingReport, ReportCheck};
use crate::style;

/// What the check of schemas by themselves is called.
const JSON_SCHEMA: &str = "json-schema";

pub(super) fn run(args: &LintArgs) -> Result<CommandOutcome, CliError> {
    let mut report = FindingReport {
        schema: "toolwarden/canon/lint/v1",
        checks: std::iter::once(schema_check())
            .chain(args.dialects.iter().map(check))
            .collect(),
        subjects: Vec::new(),
        findings: Vec::new(),
    };
    args.dialects.iter().for_each(print_gaps);
    let mut limits = RequestLimits::default();
    let mut fixed = match args.fix {
        true => Some(DefinitionWriter::new(
            OutputFile::open(args.output.as_deref())?,
            DocumentFormat::Text,
        )),
        false => None,
    };
    let mut edits = 0;
    let mut rewrites = RewriteCheck::new();
    let facts = each_tool(&args.input, |mut read| {
        print_warnings(&read);
        if let Some(fixed) = &mut fixed {
            let tell = args.format == ReportFormat::Text;
            let (count, written) = fix(&mut read, &args.dialects, tell, &mut rewrites)?;
            edits += count;
            fixed.push(&written, read.is_only)?;
        }
        limits.add(&read.canonicalized.tool);
        check_tool(&read, &args.dialects, &mut report);
        Ok(())
    })?;
    print_unread_members(&facts);
    if report.subjects.is_empty() {
        return Err(args.input.nothing_found());
    }
    // Every dialect rejects it, and so does a reader that knows none.
    if args.dialects.is_empty() {
        for message in limits.duplicate_names() {
            report
                .findings
                .push(request_finding(args, JSON_SCHEMA.to_owned(), message));
        }
    }
    for (dialect, check) in args.dialects.iter().zip(report.checks.iter_mut().skip(1)) {
        for message in exceeded_limits(&limits, dialect) {
            // One request holds all tools, so all of them are rejected.
            check.rejected = check.tools;
            report
                .findings
                .push(request_finding(args, name(dialect), message));
        }
    }
    let failed = report
        .findings
        .iter()
        .any(|it| it.level == report::FindingLevel::Error || args.strict);
    let rendered = report.render(args.format);
    match fixed {
        Some(fixed) => {
            fixed.finish()?;
            if let Some(path) = &args.output {
                announce(&format!("{edits} changes, written to {}", path.display()))?;
            }
            // Standard output may hold the definitions, so the report goes beside it.
            rendered.lines().for_each(print_status);
            print_undecided(rewrites.undecided());
        }
        None => print_text(&rendered)?,
    }
    Ok(if failed {
        CommandOutcome::Finding
    } else {
        CommandOutcome::Pass
    })
}

/// What a report calls the dialect. A file may name its provider in any characters.
fn name(dialect: &LintDialect) -> String {
    match dialect {
        LintDialect::Known(dialect) => dialect.to_string(),
        LintDialect::Probed(table) => style::escape_controls(&table.name),
    }
}

/// Prints what a table does not cover, so that a user does not read silence as acceptance.
fn print_gaps(dialect: &LintDialect) {
    let LintDialect::Probed(table) = dialect else {
        return;
    };
    let not_measured = &table.not_measured;
    if !not_measured.is_empty() {
        let name = name(dialect);
        let gaps = style::escape_controls(&not_measured.join(", "));
        print_status(&format!(
            "{0}Warning{0:#}: {name}: not measured, so not checked: {gaps}",
            style::WARNING
        ));
    }
}

/// What a request with all tools would be rejected for. A probe sends one tool at a time.
fn exceeded_limits(limits: &RequestLimits, dialect: &LintDialect) -> Vec<String> {
    match dialect {
        LintDialect::Known(dialect) => limits.exceeded(*dialect),
        LintDialect::Probed(_) => limits.duplicate_names(),
    }
}

fn check(dialect: &LintDialect) -> ReportCheck {
    let facts = dialect.facts();
    ReportCheck {
        name: name(dialect),
        basis: Some(CheckBasis {
            verified_on: facts.verified_on.to_string(),
            source: facts.source.to_string(),
        }),
        rejected: 0,
        outcome: "rejected",
        tools: 0,
        failing: &[report::FindingLevel::Error],
    }
}

/// The check that comes before every dialect.
fn schema_check() -> ReportCheck {
    ReportCheck {
        name: JSON_SCHEMA.to_owned(),
        basis: None,
        rejected: 0,
        outcome: "invalid",
        tools: 0,
        failing: &[report::FindingLevel::Error],
    }
}

/// Rewrites a tool for every dialect where that keeps its meaning, says what it changed, and gives
/// what is to be written.
fn fix(
    read: &mut InputTool<'_>,
    dialects: &[LintDialect],
    tell: bool,
    rewrites: &mut RewriteCheck,
) -> Result<(usize, Value), CliError> {
    let tool = &mut read.canonicalized.tool;
    // An operation is part of its document and cannot be written back alone.
    if tool.absent.inputs || tool.format == Format::Openapi {
        return Ok((0, emit_native(tool.clone()).value));
    }
    let originals = OriginalSchemas::of(tool);
    let mut edits = Vec::new();
    for dialect in dialects {
        let made = conform_to_facts(
            &mut tool.inputs,
            &Pointer::of(["inputs"]),
            dialect.facts(),
            RewriteMode::KeepMeaning,
        );
        for edit in made.iter().filter(|_| tell) {
            let path = style::escape_controls(definition_pointer(tool, &edit.path).as_str());
            let name = style::escape_controls(&tool.name);
            print_status(&format!(
                "{0}fixed{0:#} {name} {path}: {1} ({2})",
                style::SUCCESS,
                style::escape_controls(&edit.reason),
                self::name(dialect)
            ));
        }
        edits.extend(made);
    }
    let written = emit_native(tool.clone()).value;
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
fn schema_findings(tool: &Tool) -> Vec<PartFinding> {
    let inputs = (!tool.absent.inputs).then_some(("inputs", &tool.inputs, ValueDomain::Objects));
    let outputs = Some(("outputs", &tool.outputs, ValueDomain::Values));
    let outputs = outputs.filter(|_| !tool.outputs.is_empty());
    let mut found = Vec::new();
    for (key, schema, domain) in inputs.into_iter().chain(outputs) {
        let mut add = |rule, is_error: bool, message, pointer: &Pointer| {
            let place = Pointer::of([key]).join(pointer);
            found.push(PartFinding {
                rule,
                level: if is_error {
                    report::FindingLevel::Error
                } else {
                    report::FindingLevel::Warning
                },
                message,
                part: definition_pointer(tool, &place),
                fixable: false,
            });
        };
        let faults = find_faults(&Value::Object(schema.clone()));
        for fault in &faults {
            let message = format!("{}; {}", fault.message, fault.fix);
            let is_error = fault.rule.is_error();
            add(fault.rule.as_str(), is_error, message, &fault.pointer);
        }
        // What a wrong keyword means is not known, so nothing follows from it.
        if faults.iter().any(|fault| fault.rule.is_error()) {
            continue;
        }
        for it in find_contradictions(schema, domain) {
            let message = it.message.to_owned();
            add("unsatisfiable", !it.is_alternative, message, &it.pointer);
        }
    }
    found
}

/// Members that should be schemas and that no reader can use.
fn unread_findings(read: &InputTool<'_>) -> Vec<PartFinding> {
    let error = |rule, message: String, part| PartFinding {
        rule,
        level: report::FindingLevel::Error,
        message,
        part,
        fixable: false,
    };
    let unread = unread_schemas(&read.canonicalized.tool).into_iter();
    let mut found: Vec<PartFinding> = unread
        .map(|UnreadSchema { pointer, problem }| {
            let message = format!("{}; {}", problem.describe(), problem.fix());
            let finding = error(problem.code(), message, pointer);
            match problem.is_error() {
                true => finding,
                false => PartFinding {
                    level: report::FindingLevel::Warning,
                    ..finding
                },
            }
        })
        .collect();
    for warning in &read.canonicalized.warnings {
        if let Warning::DuplicateKey(doubled) = warning {
            let part = read.location.part_of(&read.canonicalized, &doubled.pointer);
            let message = format!(
                "key `{}` is written twice: one reader takes the first value, another the last; keep one",
                doubled.pointer
            );
            found.push(error("duplicate-key", message, part));
        }
        let Warning::ParserError { format, error: why } = warning else {
            continue;
        };
        let (rule, pointer) = match why {
            ParseError::NotAnObject { pointer, .. } => ("not-a-schema", pointer),
            ParseError::Missing { pointer } => ("missing-schema", pointer),
            ParseError::Invalid { .. } => continue,
        };
        if found.iter().all(|it| it.part != *pointer) {
            let message = format!("{why}, as {format} asks for");
            found.push(error(rule, message, pointer.clone()));
        }
    }
    found
}

/// A tool that nothing can call. A document that is only a schema needs no name.
fn missing_name(read: &InputTool<'_>) -> Option<PartFinding> {
    let warnings = &read.canonicalized.warnings;
    let is_schema = read.canonicalized.tool.format == Format::JsonSchema;
    let not_an_object = |it: &&Warning| matches!(it, Warning::NotAnObject { .. });
    let (rule, message) = if let Some(warning) = warnings.iter().find(not_an_object) {
        ("not-an-object", warning.to_string())
    } else if warnings.contains(&Warning::NoName) && !is_schema {
        (
            "name",
            "the tool has no name to be called by; add `name`".to_owned(),
        )
    } else {
        return None;
    };
    Some(PartFinding {
        rule,
        level: report::FindingLevel::Error,
        message,
        part: Pointer::root(),
        fixable: false,
    })
}

fn check_tool(read: &InputTool<'_>, dialects: &[LintDialect], report: &mut FindingReport) {
    let tool = &read.canonicalized.tool;
    let subject = if tool.name.is_empty() {
        read.canonicalized.pointer.to_string()
    } else {
        tool.name.clone()
    };
    let mut found: Vec<(usize, String, PartFinding)> = Vec::new();
    let mut general = schema_findings(tool);
    general.extend(unread_findings(read));
    // Every dialect says so, too.
    if dialects.is_empty() {
        general.extend(missing_name(read));
    }
    let general = general.into_iter();
    found.extend(general.map(|raised| (0, JSON_SCHEMA.to_owned(), raised)));
    for (index, dialect) in dialects.iter().enumerate() {
        for finding in lint_with_facts(tool, dialect.facts()) {
            let raised = PartFinding {
                rule: finding.rule,
                level: match finding.level {
                    DialectLevel::Rejected => report::FindingLevel::Error,
                    DialectLevel::Ignored => report::FindingLevel::Warning,
                },
                part: definition_pointer(tool, &finding.pointer),
                message: finding.message.into_owned(),
                fixable: finding.fixable,
            };
            found.push((index + 1, name(dialect), raised));
        }
    }
    for (index, check) in report.checks.iter_mut().enumerate() {
        let mine = |(of, _, it): &(usize, String, PartFinding)| {
            *of == index && it.level == report::FindingLevel::Error
        };
        check.tools += 1;
        check.rejected += usize::from(found.iter().any(mine));
    }
    let parts = found.iter().map(|(_, _, raised)| &raised.part);
    let positions = read.location.positions(&read.canonicalized, parts);
    for ((_, check, raised), position) in found.into_iter().zip(positions) {
        let fingerprint =
            report::fingerprint([raised.rule, &check, &subject, raised.part.as_str()]);
        report.findings.push(report::ReportFinding {
            check,
            rule: raised.rule,
            level: raised.level,
            tool: subject.clone(),
            message: raised.message,
            file: read.location.file.display().to_string(),
            line: position.line,
            column: position.column,
            pointer: read.canonicalized.pointer.join(&raised.part).to_string(),
            fixable: raised.fixable,
            detail: report::FindingDetail {
                rule_info: Some(rule_info(raised.rule)),
                fingerprint: Some(fingerprint),
                ..report::FindingDetail::default()
            },
        });
    }
    report.subjects.push(report::Subject::of(&subject));
}

/// What a rule of a dialect is about.
const fn rule_info(rule: &'static str) -> report::RuleInfo {
    report::RuleInfo {
        id: rule,
        finds: "The definition has something that is not JSON Schema, or that a provider rejects or ignores.",
        help: "Rewrite the definition, or have `toolwarden canon lint --fix` rewrite what can be said \
               otherwise; docs/canon.md says what each dialect accepts.",
    }
}

/// A finding about one part of a definition.
struct PartFinding {
    rule: &'static str,
    level: report::FindingLevel,
    message: String,
    part: Pointer,
    fixable: bool,
}

/// A finding about all tools together.
fn request_finding(args: &LintArgs, check: String, message: String) -> report::ReportFinding {
    let file = args
        .input
        .paths()
        .next()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    report::ReportFinding {
        check,
        rule: "request",
        level: report::FindingLevel::Error,
        tool: "all tools".to_owned(),
        message,
        file,
        line: 1,
        column: 1,
        pointer: "/".to_owned(),
        fixable: false,
        detail: report::FindingDetail {
            rule_info: Some(rule_info("request")),
            ..report::FindingDetail::default()
        },
    }
}
