use std::collections::BTreeMap;

use toolwarden_drift::text::is_unprintable;

use super::{FindingReport, NOT_MEASURED, PINNED, ReportCheck, ReportFinding};
use crate::ci_escape::escape_xml;

/// What a test case is about: a tool, and the server it belongs to where there are several.
type Case<'r> = (Option<&'r str>, &'r str);

pub(super) fn render(report: &FindingReport) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for check in &report.checks {
        let findings = report.findings.iter();
        let findings: Vec<&ReportFinding> = findings.filter(|it| it.check == check.name).collect();
        suite(report, check, &findings, &mut text);
    }
    text.push_str("</testsuites>\n");
    text
}

fn case_of(finding: &ReportFinding) -> Case<'_> {
    (finding.detail.group.as_deref(), &finding.tool)
}

/// Whether a finding says that its subject was not checked: it neither passes nor fails.
fn is_skip(finding: &ReportFinding) -> bool {
    [NOT_MEASURED, PINNED, "unchecked"].contains(&finding.rule)
}

fn suite(
    report: &FindingReport,
    check: &ReportCheck,
    findings: &[&ReportFinding],
    text: &mut String,
) {
    let fails = |finding: &&ReportFinding| check.failing.contains(&finding.level);
    let subjects = report.subjects.iter();
    let mut cases: Vec<Case<'_>> = subjects
        .map(|it| (it.group.as_deref(), it.name.as_str()))
        .collect();
    // What is wrong with none of the subjects, but with what they stand in, fails too.
    let mut others: Vec<Case<'_>> = findings
        .iter()
        .filter(|it| fails(it) || is_skip(it))
        .map(|it| case_of(it))
        .filter(|case| !cases.contains(case))
        .collect();
    others.sort_unstable();
    others.dedup();
    cases.extend(others);

    let (mut failures, mut skipped) = (0, 0);
    let mut written: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut body = String::new();
    for case in &cases {
        let mine: Vec<&&ReportFinding> =
            findings.iter().filter(|it| case_of(it) == *case).collect();
        let lines: Vec<String> = mine
            .iter()
            .filter(|it| fails(it))
            .map(|it| line(it))
            .collect();
        let skip = mine.iter().find(|it| is_skip(it) && lines.is_empty());
        let notes = mine.iter().filter(|it| !fails(it));
        let notes = notes.filter(|it| skip.is_none_or(|skip| !std::ptr::eq(**skip, ***it)));
        let notes: Vec<String> = notes.map(|it| note(it)).collect();
        failures += usize::from(!lines.is_empty());
        skipped += usize::from(skip.is_some());

        let class = match case.0 {
            Some(group) => format!("{}.{group}", check.name),
            None => check.name.clone(),
        };
        // Readers of JUnit take two cases of one name for one.
        let count = written.entry((class.clone(), case.1)).or_default();
        *count += 1;
        let name = match *count {
            1 => case.1.to_owned(),
            count => format!("{} #{count}", case.1),
        };
        body.push_str(&format!(
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(&class),
            escape(&name)
        ));
        let mut inside = String::new();
        if let Some(first) = lines.first() {
            inside.push_str(&format!(
                "      <failure message=\"{}\">{}</failure>\n",
                escape(first),
                escape(&lines.join("\n"))
            ));
        } else if let Some(skip) = skip {
            inside.push_str(&format!(
                "      <skipped message=\"{}\"/>\n",
                escape(&skip.message)
            ));
        }
        inside.push_str(&system_out("      ", &notes));
        body.push_str(&match inside.is_empty() {
            true => "/>\n".to_owned(),
            false => format!(">\n{inside}    </testcase>\n"),
        });
    }
    let rest = findings.iter().filter(|it| !cases.contains(&case_of(it)));
    let rest: Vec<String> = rest.map(|it| note(it)).collect();
    text.push_str(&format!(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">\n{body}{}  </testsuite>\n",
        escape(&check.name),
        cases.len(),
        system_out("    ", &rest),
    ));
}

fn line(finding: &ReportFinding) -> String {
    let (place, pointer) = (finding.place(), &finding.pointer);
    format!("{place}: {} (at {pointer})", finding.message)
}

fn note(finding: &ReportFinding) -> String {
    format!("{}: {}", finding.level.as_str(), line(finding))
}

/// What was found and does not fail.
fn system_out(indent: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let notes = escape(&notes.join("\n"));
    format!("{indent}<system-out>{notes}</system-out>\n")
}

/// Text without markup and without characters XML has no place for.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c if is_unprintable(c) => escaped.push_str(&c.escape_unicode().to_string()),
            c => escaped.push(c),
        }
    }
    escape_xml(escaped)
}
