//! A comparison as findings, for the formats of CI.

use toolwarden_drift::{Change, Class, Drift, Effect, Facet, Judgement, ListDrift, ToolDrift};
use toolwarden_model::json::{Pointer, to_canonical_string};

use super::classes;
use super::comparison::Comparison;
use super::words::marked_words;
use crate::error::CliError;
use crate::input::KeptPlace;
use crate::report::{Check, Detail, Finding, FindingOrigin, Level, Report, fingerprint};

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
        findings.extend(unmeasured(comparison));
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
pub(super) fn unanswered(server: &str, place: &KeptPlace, error: &CliError) -> Finding {
    let position = place.positions(std::iter::once(&Pointer::root()));
    let position = position.first();
    Finding {
        check: "drift".to_owned(),
        rule: classes::UNANSWERED.id,
        level: Level::Error,
        tool: server.to_owned(),
        message: error.to_string(),
        file: place.file.clone(),
        line: position.map_or(1, |position| position.line),
        column: position.map_or(1, |position| position.column),
        pointer: String::new(),
        fixable: false,
        detail: Detail {
            origin: place.origin,
            about: Some(classes::UNANSWERED),
            fingerprint: Some(fingerprint([classes::UNANSWERED.id, server])),
        },
    }
}

/// Results that were too few to say anything must not look as if they were fine.
fn unmeasured(comparison: &Comparison<'_>) -> impl Iterator<Item = Finding> {
    let results = comparison.drift.results.iter();
    results.filter_map(|(tool, said)| {
        let limit = said.too_few()?;
        let place = comparison.places.get(tool);
        let position = place.map(|place| place.positions(std::iter::once(&Pointer::root())));
        let position = position.and_then(|it| it.first().copied());
        Some(Finding {
            check: "drift".to_owned(),
            rule: classes::UNMEASURED.id,
            level: Level::Warning,
            tool: tool.clone(),
            message: format!("results not measured: {limit}"),
            file: place.map(|place| place.file.clone()).unwrap_or_default(),
            line: position.map_or(1, |position| position.line),
            column: position.map_or(1, |position| position.column),
            pointer: place.map(|it| it.pointer.to_string()).unwrap_or_default(),
            fixable: false,
            detail: Detail {
                origin: place.map_or(FindingOrigin::Elsewhere, |place| place.origin),
                about: Some(classes::UNMEASURED),
                fingerprint: Some(fingerprint([classes::UNMEASURED.id, tool])),
            },
        })
    })
}

/// A server of the lock file that was not looked at must not look like one that is fine.
pub(super) fn unchecked(server: &str, tools: usize, lock: &str) -> Finding {
    Finding {
        check: "drift".to_owned(),
        rule: classes::UNCHECKED.id,
        level: Level::Warning,
        tool: server.to_owned(),
        message: format!("server `{server}` of the lock file was not checked ({tools} tools)"),
        file: lock.to_owned(),
        line: 1,
        column: 1,
        pointer: String::new(),
        fixable: false,
        detail: Detail {
            origin: FindingOrigin::File,
            about: Some(classes::UNCHECKED),
            fingerprint: Some(fingerprint([classes::UNCHECKED.id, server])),
        },
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
    let mut rows: Vec<(Row, bool)> = Vec::new();
    let row = |rule: &'static str, message: String| {
        let row = Row {
            rule,
            class: tool.class(),
            at: Pointer::root(),
            message,
            id: fingerprint([rule, tool.tool()]),
        };
        (row, failing)
    };
    let changes = |drift: &Drift| -> Vec<(Row, bool)> {
        let changes = drift.changes.iter();
        let rows = changes.map(|change| (change_row(change), comparison.fails_change(change)));
        rows.collect()
    };
    match tool {
        ToolDrift::Added { findings, .. } => {
            let mut message = "the tool is new".to_owned();
            for finding in findings {
                message.push_str(&format!("; {}", finding.message));
            }
            rows.push(row("added", message));
        }
        ToolDrift::Removed { .. } => {
            rows.push(row("removed", "the tool is gone".to_owned()));
        }
        ToolDrift::Renamed { rename, drift } => {
            let message = format!("`{}` was renamed to `{}`", rename.from, rename.to);
            rows.push(row("renamed", message));
            rows.extend(changes(drift));
        }
        ToolDrift::Changed(drift) => rows.extend(changes(drift)),
    }
    let place = comparison.place(tool);
    let positions = place.map(|place| place.positions(rows.iter().map(|(row, _)| &row.at)));
    let positions = positions.unwrap_or_default();
    rows.into_iter()
        .enumerate()
        .map(|(index, (row, fails))| {
            let position = positions.get(index);
            let Row {
                rule,
                class,
                at,
                message,
                id,
            } = row;
            Finding {
                check: "drift".to_owned(),
                rule,
                level: level(class, fails),
                tool: tool.tool().to_owned(),
                message: format!("{}: {message}", class.as_str()),
                file: place.map(|place| place.file.clone()).unwrap_or_default(),
                line: position.map_or(1, |position| position.line),
                column: position.map_or(1, |position| position.column),
                pointer: place.map_or_else(
                    || at.to_string(),
                    |place| place.pointer.join(&at).to_string(),
                ),
                fixable: false,
                detail: Detail {
                    origin: place.map_or(FindingOrigin::Elsewhere, |place| place.origin),
                    about: Some(classes::about(class)),
                    fingerprint: Some(id),
                },
            }
        })
        .collect()
}

/// What a finding says of one change.
struct Row {
    rule: &'static str,
    class: Class,
    at: Pointer,
    message: String,
    /// What the change is recognized by.
    id: String,
}

fn change_row(change: &Change) -> Row {
    let mut message = change.message.clone();
    if let Some(witness) = witness(change) {
        message.push_str(&format!("; {witness}"));
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
    Row {
        rule: change.rule,
        class: change.class,
        at: change.pointer.clone(),
        message,
        id: change.id.to_string(),
    }
}

/// The value that proves a change to be breaking, and why.
pub(super) fn witness(change: &Change) -> Option<String> {
    let Some(Judgement::Breaking(witness)) = &change.judgement else {
        return None;
    };
    let value = to_canonical_string(&witness.value);
    let told = if change.facet == Facet::Output {
        "may come now"
    } else {
        "rejected now"
    };
    Some(format!("{told}: {value} ({})", witness.message))
}
