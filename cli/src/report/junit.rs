use std::collections::BTreeSet;

use toolwarden_drift::text::is_unprintable;

use super::{NOT_MEASURED, Report};
use crate::ci_escape::in_xml;

pub(super) fn render(report: &Report) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for check in &report.checks {
        let failing = || {
            let findings = report.findings.iter();
            findings.filter(|it| it.check == check.name && check.failing.contains(&it.level))
        };
        let of = |tool: &str| {
            let tool = tool.to_owned();
            failing().filter(move |finding| finding.tool == tool)
        };
        // A server that was not checked neither passes nor fails.
        let skipped = || {
            let findings = report.findings.iter();
            findings.filter(|it| it.check == check.name && it.rule == "unchecked")
        };
        // What is wrong with none of the subjects, but with what they stand in, fails too.
        let known: BTreeSet<&str> = report.subjects.iter().map(String::as_str).collect();
        let others: BTreeSet<&str> = failing()
            .map(|it| it.tool.as_str())
            .filter(|tool| !known.contains(tool))
            .collect();
        let subjects: Vec<&str> = report
            .subjects
            .iter()
            .map(String::as_str)
            .chain(others)
            .collect();
        let failures = subjects
            .iter()
            .filter(|tool| of(tool).next().is_some())
            .count();
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">\n",
            escape(&check.name),
            subjects.len() + skipped().count(),
        ));
        for tool in subjects {
            text.push_str(&format!(
                "    <testcase classname=\"{}\" name=\"{}\"",
                escape(&check.name),
                escape(tool)
            ));
            let lines: Vec<String> = of(tool)
                .map(|it| format!("{}: {} (at {})", it.place(), it.message, it.pointer))
                .collect();
            let skipped = || {
                let findings = report.findings.iter();
                let mut skipped = findings.filter(|it| it.check == check.name && it.tool == tool);
                skipped.find(|it| it.rule == NOT_MEASURED)
            };
            match (lines.first(), skipped()) {
                (None, None) => text.push_str("/>\n"),
                (None, Some(finding)) => text.push_str(&format!(
                    ">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                    escape(&finding.message)
                )),
                (Some(first), _) => text.push_str(&format!(
                    ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                    escape(first),
                    escape(&lines.join("\n"))
                )),
            }
        }
        for finding in skipped() {
            text.push_str(&format!(
                "    <testcase classname=\"{}\" name=\"{}\">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
                escape(&check.name),
                escape(&finding.tool),
                escape(&finding.message)
            ));
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
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
    in_xml(escaped)
}
