//! A comparison as findings, for the formats of CI.

use toolwarden_drift::{Change, Class, Effect, Facet, Judgement, ListDrift, ToolDrift};
use toolwarden_model::json::{Pointer, to_canonical_string};

use super::comparison::Comparison;
use super::words::marked_words;
use crate::error::CliError;
use crate::report::{Check, Finding, Level, Report};

/// A report about all servers that were compared.
pub(super) fn report(schema: &'static str, comparisons: &[&Comparison<'_>]) -> Report {
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    let mut rejected = 0;
    for comparison in comparisons {
        for tool in &comparison.drift.tools {
            findings.extend(of_tool(comparison, tool));
            rejected += usize::from(comparison.fails(tool));
        }
        subjects.extend(comparison.subjects.iter().cloned());
    }
    Report {
        schema,
        checks: vec![Check {
            name: "drift".to_owned(),
            basis: None,
            rejected,
            outcome: "drifted",
            tools: subjects.len(),
            failing: &[Level::Error],
        }],
        subjects,
        findings,
    }
}

/// A server that could not be asked must not look like one that is fine.
pub(super) fn unanswered(server: &str, error: &CliError) -> Finding {
    Finding {
        check: "drift".to_owned(),
        rule: "unanswered",
        level: Level::Error,
        tool: server.to_owned(),
        message: error.to_string(),
        file: server.to_owned(),
        line: 1,
        column: 1,
        pointer: String::new(),
        fixable: false,
    }
}

/// A server of the lock file that was not looked at must not look like one that is fine.
pub(super) fn unchecked(server: &str, tools: usize, lock: &str) -> Finding {
    Finding {
        check: "drift".to_owned(),
        rule: "unchecked",
        level: Level::Warning,
        tool: server.to_owned(),
        message: format!("server `{server}` of the lock file was not checked ({tools} tools)"),
        file: lock.to_owned(),
        line: 1,
        column: 1,
        pointer: String::new(),
        fixable: false,
    }
}

/// The tools that are gone.
pub(super) fn gone(drift: &ListDrift) -> impl Iterator<Item = String> {
    let gone = drift.tools.iter();
    let gone = gone.filter(|tool| matches!(tool, ToolDrift::Removed { .. }));
    gone.map(|tool| tool.tool().to_owned())
}

/// The changes of one tool; what fails is an error.
fn of_tool(comparison: &Comparison<'_>, tool: &ToolDrift) -> Vec<Finding> {
    let failing = comparison.fails(tool);
    let level = |class: Class, fails: bool| match class {
        _ if fails => Level::Error,
        Class::Equivalent | Class::Info | Class::Behavioural | Class::Text => Level::Note,
        _ => Level::Warning,
    };
    let mut rows: Vec<(&'static str, Class, Pointer, String)> = Vec::new();
    let mut fails: Vec<bool> = Vec::new();
    match tool {
        ToolDrift::Added { findings, .. } => {
            let mut message = "the tool is new".to_owned();
            for finding in findings {
                message.push_str(&format!("; {}", finding.message));
            }
            rows.push(("added", tool.class(), Pointer::root(), message));
            fails.push(failing);
        }
        ToolDrift::Removed { .. } => {
            rows.push((
                "removed",
                tool.class(),
                Pointer::root(),
                "the tool is gone".to_owned(),
            ));
            fails.push(failing);
        }
        ToolDrift::Renamed { rename, drift } => {
            let message = format!("`{}` was renamed to `{}`", rename.from, rename.to);
            rows.push(("renamed", tool.class(), Pointer::root(), message));
            fails.push(failing);
            rows.extend(drift.changes.iter().map(row));
            fails.extend(drift.changes.iter().map(|it| comparison.fails_change(it)));
        }
        ToolDrift::Changed(drift) => {
            rows.extend(drift.changes.iter().map(row));
            fails.extend(drift.changes.iter().map(|it| comparison.fails_change(it)));
        }
    }
    let place = comparison.place(tool);
    let positions = place.map(|place| place.positions(rows.iter().map(|(_, _, at, _)| at)));
    let positions = positions.unwrap_or_default();
    rows.iter()
        .enumerate()
        .map(|(index, (rule, class, at, message))| {
            let position = positions.get(index);
            Finding {
                check: "drift".to_owned(),
                rule,
                level: level(*class, fails.get(index).copied().unwrap_or(failing)),
                tool: tool.tool().to_owned(),
                message: format!("{}: {message}", class.as_str()),
                file: place.map(|place| place.file.clone()).unwrap_or_default(),
                line: position.map_or(1, |position| position.line),
                column: position.map_or(1, |position| position.column),
                pointer: place.map_or_else(
                    || at.to_string(),
                    |place| place.pointer.join(at).to_string(),
                ),
                fixable: false,
            }
        })
        .collect()
}

fn row(change: &Change) -> (&'static str, Class, Pointer, String) {
    let mut message = change.message.clone();
    if let Some(Judgement::Breaking(witness)) = &change.judgement {
        let value = to_canonical_string(&witness.value);
        let told = if change.facet == Facet::Output {
            "may come now"
        } else {
            "rejected now"
        };
        message.push_str(&format!("; {told}: {value} ({})", witness.message));
    }
    match &change.effect {
        Some(Effect::Ignored { call, pointer }) => {
            let call = to_canonical_string(call);
            message.push_str(&format!("; accepted without {pointer} being read: {call}"));
        }
        Some(Effect::Default {
            calls: Some((before, after)),
            ..
        }) => {
            let (before, after) = (to_canonical_string(before), to_canonical_string(after));
            message.push_str(&format!(
                "; a call without it meant {before} and means {after}"
            ));
        }
        Some(Effect::Default { calls: None, .. }) | None => {}
    }
    let words = marked_words(change);
    if !words.is_empty() {
        message.push_str(&format!("; {words}"));
    }
    for reason in &change.reasons {
        message.push_str(&format!("; {}", reason.message));
    }
    (change.rule, change.class, change.pointer.clone(), message)
}
