//! What checks found, for people and for CI.

use serde_json::{Value, json};
use toolwarden_drift::Class;
use toolwarden_model::json::Object;
use toolwarden_store::{Raised, ServerKey};
use toolwarden_warden::{Judged, Recorded};

use super::comparison::Comparison;
use super::look::Look;
use super::places::Places;
use super::sources::Source;
use super::{document, findings, markdown, screen};
use crate::args::{CheckArgs, FailOn, ReportFormat};
use crate::error::CliError;
use crate::output::print;
use crate::style::{self, visible};

/// What a check of one server found.
pub(super) struct Checked<'s> {
    pub(super) source: &'s Source,
    pub(super) look: Look,
    pub(super) judged: Judged,
    pub(super) recorded: Recorded,
    /// What the toolwatch program would say, for its output.
    pub(super) old_form: Vec<String>,
    pub(super) mutated: bool,
    /// Whether what was found is kept.
    pub(super) kept: bool,
}

impl Checked<'_> {
    /// Whether the results that were given could be compared: too few of them say nothing, and neither
    /// do results of which a lock file has no shape.
    pub(super) fn is_measured(&self) -> bool {
        let mut results = self.judged.drift.results.iter();
        let shapes = self.kept || self.judged.learned.is_empty();
        shapes && results.all(|(_, said)| said.too_few().is_none())
    }
}

/// A server of the lock file that was not looked at.
pub(super) struct Unchecked {
    pub(super) key: ServerKey,
    pub(super) tools: usize,
    /// The lock file.
    pub(super) lock: String,
}

/// Prints what was found; tells whether anything fails.
pub(super) fn report(
    args: &CheckArgs,
    checked: &[Checked<'_>],
    (unanswered, unchecked): (&[(&Source, CliError)], &[Unchecked]),
    fail_on: &[FailOn],
    places: &Places,
) -> Result<bool, CliError> {
    let comparisons: Vec<Comparison<'_>> = checked
        .iter()
        .map(|it| Comparison {
            options: args.compare.options(),
            fail_on,
            places: &it.look.places,
            subjects: subjects(it),
            drift: &it.judged.drift,
        })
        .collect();
    let several = checked.len() + unanswered.len() > 1;
    if args.compat {
        print(
            &checked
                .iter()
                .flat_map(|it| &it.old_form)
                .map(String::as_str)
                .collect::<String>(),
        )?;
        let wanted = !fail_on.contains(&FailOn::None);
        return Ok(wanted && checked.iter().any(|it| it.mutated));
    }
    print(&match args.format {
        ReportFormat::Text => {
            let mut text = String::new();
            for (it, comparison) in checked.iter().zip(&comparisons) {
                text.push_str(&screen_of(it, comparison, several));
            }
            for it in unchecked {
                let scope = visible(&it.key.scope);
                let tools = if it.tools == 1 { "tool" } else { "tools" };
                text.push_str(&format!(
                    "not checked: server `{}` (scope {scope}) of {}, {} {tools}\n",
                    visible(&it.key.name),
                    visible(&it.lock),
                    it.tools
                ));
            }
            text
        }
        ReportFormat::Json => json_document(checked, &comparisons, unanswered, unchecked),
        ReportFormat::Markdown => {
            let servers = checked.iter().zip(&comparisons);
            let named = servers.map(|(it, comparison)| {
                let name = several.then_some(it.source.key.name.as_str());
                (name, comparison)
            });
            let mut text = markdown::render(&named.collect::<Vec<_>>());
            for (source, error) in unanswered {
                text.push_str(&markdown::unanswered(&source.key.name, &error.to_string()));
            }
            for it in unchecked {
                text.push_str(&markdown::unchecked(&it.key.name, it.tools, &it.lock));
            }
            text
        }
        format => {
            let comparisons: Vec<&Comparison<'_>> = comparisons.iter().collect();
            let mut report = findings::report("toolwarden/watch/check/v1", &comparisons);
            for (source, error) in unanswered {
                report.subjects.push(source.key.name.clone());
                report.findings.push(findings::unanswered(
                    &source.key.name,
                    &places.server(source),
                    error,
                ));
                if let Some(check) = report.checks.first_mut() {
                    check.rejected += 1;
                    check.tools += 1;
                }
            }
            let others = unchecked.iter();
            let others = others.map(|it| findings::unchecked(&it.key.name, it.tools, &it.lock));
            report.findings.extend(others);
            report.render(format)
        }
    })?;
    Ok(comparisons.iter().any(Comparison::failed))
}

fn subjects(checked: &Checked<'_>) -> Vec<String> {
    let judged = &checked.judged;
    let mut subjects: Vec<String> = checked.look.listing.unchanged.clone();
    let observed = checked.look.listing.observed.iter();
    subjects.extend(observed.map(|seen| seen.name.clone()));
    subjects.extend(findings::gone(&judged.drift));
    subjects
}

fn screen_of(checked: &Checked<'_>, comparison: &Comparison<'_>, several: bool) -> String {
    let (dim, place) = (style::DIM, style::PLACE);
    let mut text = String::new();
    if several {
        let name = visible(&checked.source.key.name);
        text.push_str(&format!("{place}== {name}{place:#}\n"));
    }
    let judged = &checked.judged;
    let registered = &checked.recorded.registered;
    match registered.as_slice() {
        [] => {}
        [tool] => text.push_str(&format!(
            "`{}` was not pinned yet, and is now\n",
            visible(tool)
        )),
        tools => text.push_str(&format!(
            "{} tools of `{}` were not pinned yet, and are now\n",
            tools.len(),
            visible(&checked.source.key.name)
        )),
    }
    for (tools, what) in [
        (
            &judged.adopted,
            "is the one that was imported; its definition is pinned now",
        ),
        (
            &judged.learned,
            "returned results for the first time; their shape is pinned now",
        ),
    ] {
        for tool in tools.iter().filter(|_| checked.kept) {
            text.push_str(&format!("`{}` {what}\n", visible(tool)));
        }
    }
    for (tool, count) in &judged.approved {
        let changes = if *count == 1 { "change" } else { "changes" };
        text.push_str(&format!(
            "{dim}{count} approved {changes} of `{}` not shown{dim:#}\n",
            visible(tool)
        ));
    }
    let nothing_else = judged.drift.tools.is_empty() && judged.drift.unchanged == 0;
    if !nothing_else || registered.is_empty() {
        text.push_str(&screen::render(comparison));
    }
    let alerts = &checked.recorded.alerts;
    for alert in alerts {
        let again = match alert.raised {
            Raised::First => "",
            Raised::Again => " (known)",
        };
        let remedy = if alert.approvable {
            format!("`toolwarden watch approve {}` accepts it", alert.id)
        } else {
            "two tools have the name, so there is nothing to approve".to_owned()
        };
        text.push_str(&format!(
            "{dim}alert {}{again}: `{}`; {remedy}{dim:#}\n",
            alert.id,
            visible(&alert.tool),
        ));
    }
    let texts = judged.drift.tools.iter().filter(|it| it.is(Class::Text));
    if checked.kept && texts.count() > 1 {
        text.push_str(&format!(
            "{dim}`toolwarden watch approve --text --server {}` accepts every change of text that is not one of trust{dim:#}\n",
            visible(&checked.source.key.name)
        ));
    }
    text
}

fn json_document(
    checked: &[Checked<'_>],
    comparisons: &[Comparison<'_>],
    unanswered: &[(&Source, CliError)],
    unchecked: &[Unchecked],
) -> String {
    let mut servers = Vec::new();
    for (it, comparison) in checked.iter().zip(comparisons) {
        let mut members = Object::new();
        members.insert("server".to_owned(), json!(it.source.key.name));
        members.insert("scope".to_owned(), json!(it.source.key.scope));
        members.extend(document::members(comparison));
        members.insert("failed".to_owned(), json!(comparison.failed()));
        members.insert("registered".to_owned(), json!(it.recorded.registered));
        members.insert("adopted".to_owned(), json!(it.judged.adopted));
        members.insert("learned".to_owned(), json!(it.judged.learned));
        let alerts = it.recorded.alerts.iter().map(|alert| {
            json!({"id": alert.id, "tool": alert.tool, "new": alert.raised == Raised::First})
        });
        members.insert("alerts".to_owned(), alerts.collect());
        if let Some(name) = &it.look.calls_itself {
            members.insert("calls_itself".to_owned(), json!(name));
        }
        servers.push(Value::Object(members));
    }
    let unanswered = unanswered.iter().map(|(source, error)| {
        json!({"server": source.key.name, "scope": source.key.scope, "error": error.to_string()})
    });
    let unchecked = unchecked
        .iter()
        .map(|it| json!({"server": it.key.name, "scope": it.key.scope, "tools": it.tools}));
    document::rendered(&json!({
        "schema": "toolwarden/watch/check/v1",
        "servers": servers,
        "unanswered": unanswered.collect::<Vec<_>>(),
        "unchecked": unchecked.collect::<Vec<_>>(),
    }))
}
