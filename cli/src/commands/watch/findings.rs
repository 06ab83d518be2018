//! A comparison as findings, for the formats of CI.

use toolwarden_drift::{
    CallEffect, Change, ChangeClass, ChangeId, ChangeKind, Drift, Facet, Judgement, ListDrift,
    ToolDrift,
};
use toolwarden_model::json::{Pointer, to_canonical_string};

use super::comparison::ServerComparison;
use super::marked_words::marked_words;
use super::rule_info;
use crate::error::CliError;
use crate::input::SourceLocation;
use crate::report::{
    FindingContext, FindingDetail, FindingLevel, FindingOrigin, FindingPlace, FindingReport,
    ReportCheck, ReportFinding, RuleInfo, Subject, fingerprint,
};

/// A report about all servers that were compared.
pub(super) fn report(schema: &'static str, comparisons: &[&ServerComparison<'_>]) -> FindingReport {
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    let mut rejected = 0;
    for comparison in comparisons {
        for tool in &comparison.drift.tools {
            findings.extend(tool_findings(comparison, tool));
            rejected += usize::from(comparison.fails(tool));
        }
        findings.extend(unmeasured_findings(comparison));
        let tools = comparison.subjects.iter();
        subjects.extend(tools.map(|tool| Subject {
            name: tool.clone(),
            group: comparison.server.map(str::to_owned),
        }));
    }
    FindingReport {
        schema,
        checks: vec![ReportCheck {
            name: "drift".to_owned(),
            basis: None,
            rejected,
            outcome: "drifted",
            tools: subjects.len(),
            failing: &[FindingLevel::Error],
        }],
        subjects,
        findings,
    }
}

/// A server that could not be asked must not look like one that is fine.
pub(super) fn unanswered_finding(
    server: &str,
    place: &SourceLocation,
    error: &CliError,
) -> ReportFinding {
    let level = FindingLevel::Error;
    server_finding(
        rule_info::UNANSWERED,
        level,
        server,
        error.to_string(),
        place,
    )
}

/// Results that were too few to say anything must not look as if they were fine.
fn unmeasured_findings(comparison: &ServerComparison<'_>) -> impl Iterator<Item = ReportFinding> {
    let results = comparison.drift.results.iter();
    results.filter_map(|(tool, said)| {
        let limit = said.too_few()?;
        let place = comparison.locations.get(tool);
        let position = place.map(|place| place.positions(std::iter::once(&Pointer::root())));
        let position = position.and_then(|it| it.first().copied());
        Some(ReportFinding {
            check: "drift".to_owned(),
            rule: rule_info::UNMEASURED.id,
            level: FindingLevel::Warning,
            tool: tool.clone(),
            message: format!("results not measured: {limit}"),
            file: place
                .map(|place| place.file.to_string())
                .unwrap_or_default(),
            line: position.map_or(1, |position| position.line),
            column: position.map_or(1, |position| position.column),
            pointer: place.map(|it| it.pointer.to_string()).unwrap_or_default(),
            fixable: false,
            detail: FindingDetail {
                origin: place.map_or(FindingOrigin::Elsewhere, |place| place.origin),
                rule_info: Some(rule_info::UNMEASURED),
                fingerprint: Some(fingerprint([rule_info::UNMEASURED.id, tool])),
                group: comparison.server.map(str::to_owned),
            },
        })
    })
}

/// Results that were asked for and could not be compared must not look as if they were fine.
pub(super) fn not_measured(
    server: &str,
    subject: &str,
    message: &str,
    place: Option<&SourceLocation>,
) -> ReportFinding {
    let position = place.map(|place| place.positions(std::iter::once(&Pointer::root())));
    let position = position.and_then(|it| it.first().copied());
    ReportFinding {
        check: "drift".to_owned(),
        rule: rule_info::UNMEASURED.id,
        level: FindingLevel::Warning,
        tool: subject.to_owned(),
        message: format!("results not measured: {message}"),
        file: place.map_or_else(String::new, |place| place.file.to_string()),
        line: position.map_or(1, |position| position.line),
        column: position.map_or(1, |position| position.column),
        pointer: place.map(|it| it.pointer.to_string()).unwrap_or_default(),
        fixable: false,
        detail: FindingDetail {
            origin: place.map_or(FindingOrigin::Elsewhere, |place| place.origin),
            rule_info: Some(rule_info::UNMEASURED),
            fingerprint: Some(fingerprint([rule_info::UNMEASURED.id, server, subject])),
            group: Some(server.to_owned()),
        },
    }
}

/// A server whose tools were only pinned must not look like one without drift.
pub(super) fn first_pinned(server: &str, message: &str, place: &SourceLocation) -> ReportFinding {
    let level = FindingLevel::Warning;
    server_finding(
        rule_info::FIRST_PINNED,
        level,
        server,
        message.to_owned(),
        place,
    )
}

/// A finding about a server as a whole.
fn server_finding(
    rule: RuleInfo,
    level: FindingLevel,
    server: &str,
    message: String,
    place: &SourceLocation,
) -> ReportFinding {
    let position = place.positions(std::iter::once(&Pointer::root()));
    let position = position.first();
    ReportFinding {
        check: "drift".to_owned(),
        rule: rule.id,
        level,
        tool: server.to_owned(),
        message,
        file: place.file.to_string(),
        line: position.map_or(1, |position| position.line),
        column: position.map_or(1, |position| position.column),
        pointer: String::new(),
        fixable: false,
        detail: FindingDetail {
            origin: place.origin,
            rule_info: Some(rule),
            fingerprint: Some(fingerprint([rule.id, server])),
            group: None,
        },
    }
}

/// A server of the lock file that was not checked must not look like one without drift.
pub(super) fn unchecked_finding(server: &str, tools: usize, lock: &str) -> ReportFinding {
    ReportFinding {
        check: "drift".to_owned(),
        rule: rule_info::UNCHECKED.id,
        level: FindingLevel::Warning,
        tool: server.to_owned(),
        message: format!("server `{server}` of the lock file was not checked ({tools} tools)"),
        file: lock.to_owned(),
        line: 1,
        column: 1,
        pointer: String::new(),
        fixable: false,
        detail: FindingDetail {
            origin: FindingOrigin::File,
            rule_info: Some(rule_info::UNCHECKED),
            fingerprint: Some(fingerprint([rule_info::UNCHECKED.id, server])),
            group: None,
        },
    }
}

/// The tools that are gone.
pub(super) fn removed_tools(drift: &ListDrift) -> impl Iterator<Item = String> {
    let gone = drift.tools.iter();
    let gone = gone.filter(|tool| matches!(tool, ToolDrift::Removed { .. }));
    gone.map(|tool| tool.tool().to_owned())
}

/// The changes of one tool; what fails is an error.
fn tool_findings(comparison: &ServerComparison<'_>, tool: &ToolDrift) -> Vec<ReportFinding> {
    let failing = comparison.fails(tool);
    let level = |class: ChangeClass, fails: bool| match class {
        _ if fails => FindingLevel::Error,
        ChangeClass::Equivalent
        | ChangeClass::Info
        | ChangeClass::Behavioural
        | ChangeClass::Text => FindingLevel::Note,
        _ => FindingLevel::Warning,
    };
    let mut rows: Vec<ChangeRow> = Vec::new();
    // A tool that came or went is a change of the list.
    let whole = |rule: &'static str, kind: ChangeKind, message: String| {
        let change = toolwarden_model::Change {
            id: ChangeId::of(tool.tool(), rule, &Pointer::root(), None, None),
            tool: Some(tool.tool().to_owned()),
            rule,
            pointer: Pointer::root(),
            kind,
            class: tool.class(),
            before: None,
            after: None,
            message: message.clone(),
            evidence: (),
        };
        ChangeRow {
            change,
            message,
            fails: failing,
            fingerprint: fingerprint([rule, tool.tool()]),
        }
    };
    let changes = |drift: &Drift| -> Vec<ChangeRow> {
        let changes = drift.changes.iter();
        let rows = changes.map(|change| ChangeRow {
            message: change_message(change),
            fails: comparison.fails_change(change),
            change: change.clone().without_evidence(),
            fingerprint: change.id.to_string(),
        });
        rows.collect()
    };
    match tool {
        ToolDrift::Added { findings, .. } => {
            let mut message = "the tool is new".to_owned();
            for finding in findings {
                message.push_str(&format!("; {}", finding.message));
            }
            rows.push(whole("added", ChangeKind::Added, message));
        }
        ToolDrift::Removed { .. } => {
            let message = "the tool is gone".to_owned();
            rows.push(whole("removed", ChangeKind::Removed, message));
        }
        ToolDrift::Renamed { rename, drift } => {
            let message = format!("`{}` was renamed to `{}`", rename.from, rename.to);
            rows.push(whole("renamed", ChangeKind::Renamed, message));
            rows.extend(changes(drift));
        }
        ToolDrift::Changed(drift) => rows.extend(changes(drift)),
    }
    let place = comparison.location(tool);
    let positions = place.map(|place| place.positions(rows.iter().map(|row| &row.change.pointer)));
    let positions = positions.unwrap_or_default();
    rows.into_iter()
        .enumerate()
        .map(|(index, row)| {
            let position = positions.get(index);
            let ChangeRow {
                change,
                message,
                fails,
                fingerprint,
            } = row;
            let at = &change.pointer;
            let context = FindingContext {
                check: "drift".to_owned(),
                subject: tool.tool().to_owned(),
                group: comparison.server.map(str::to_owned),
                level: level(change.class, fails),
                message: format!("{}: {message}", change.class.as_str()),
                place: FindingPlace {
                    file: place
                        .map(|place| place.file.to_string())
                        .unwrap_or_default(),
                    position: position.map(|it| (it.line, it.column)),
                    pointer: place
                        .map_or_else(|| at.to_string(), |place| place.pointer_to(at).to_string()),
                    origin: place.map_or(FindingOrigin::Elsewhere, |place| place.origin),
                },
                rule_info: rule_info::rule_info(change.class),
                fingerprint,
            };
            ReportFinding::from_change(&change, context)
        })
        .collect()
}

/// A change with what a finding says of it.
struct ChangeRow {
    change: toolwarden_model::Change<()>,
    message: String,
    fails: bool,
    fingerprint: String,
}

/// The message of a change with its evidence in words.
fn change_message(change: &Change) -> String {
    let mut message = change.message.clone();
    if let Some(witness) = witness(change) {
        message.push_str(&format!("; {witness}"));
    }
    match &change.evidence.effect {
        Some(CallEffect::Ignored { call, pointer }) => {
            let call = to_canonical_string(call);
            message.push_str(&format!("; accepted without {pointer} being read: {call}"));
        }
        Some(CallEffect::Default {
            calls: Some((before, after)),
            ..
        }) => {
            let (before, after) = (to_canonical_string(before), to_canonical_string(after));
            message.push_str(&format!(
                "; a call without it meant {before} and means {after}"
            ));
        }
        Some(CallEffect::Default { calls: None, .. }) | None => {}
    }
    let words = marked_words(change);
    if !words.is_empty() {
        message.push_str(&format!("; {words}"));
    }
    for reason in &change.evidence.reasons {
        message.push_str(&format!("; {}", reason.message));
    }
    message
}

/// The value that proves a change to be breaking, and why.
pub(super) fn witness(change: &Change) -> Option<String> {
    let Some(Judgement::Breaking(witness)) = &change.evidence.judgement else {
        return None;
    };
    let value = to_canonical_string(&witness.value);
    let told = if change.evidence.facet == Facet::Output {
        "may come now"
    } else {
        "rejected now"
    };
    Some(format!("{told}: {value} ({})", witness.message))
}
