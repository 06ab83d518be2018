//! What checks found, for people and for CI.

use serde_json::{Value, json};
use toolwarden_drift::ChangeClass;
use toolwarden_model::json::Object;
use toolwarden_store::{AlertNovelty, ServerKey};
use toolwarden_watch::{CheckOutcome, RecordOutcome};

use super::comparison::ServerComparison;
use super::observe::ObservedServer;
use super::report_locations::ReportLocations;
use super::sources::WatchSource;
use super::{findings, json_document, markdown, text_report};
use crate::args::{CheckArgs, FailOn, ReportFormat};
use crate::error::CliError;
use crate::output::print_text;
use crate::report::Subject;
use crate::style::{self, escape_controls};

/// What a check of one server found.
pub(super) struct ServerCheck<'s> {
    pub(super) source: &'s WatchSource,
    pub(super) observed: ObservedServer,
    pub(super) judgement: CheckOutcome,
    pub(super) recorded: RecordOutcome,
    /// What the toolwatch program would say, for its output.
    pub(super) toolwatch_output: Vec<String>,
    pub(super) mutated: bool,
    /// Tools that returned results and have none pinned.
    pub(super) unpinned_results: Vec<String>,
    /// Whether the findings are stored.
    pub(super) is_recorded: bool,
}

impl ServerCheck<'_> {
    /// Whether the results that were asked for could be compared: too few of them say nothing, and
    /// neither do results of a tool that has none pinned, nor a file without any.
    pub(super) fn is_measured(&self) -> bool {
        let mut results = self.judgement.drift.results.iter();
        let compared = self.unpinned_results.is_empty() && self.observed.without_results.is_empty();
        compared && results.all(|(_, said)| said.too_few().is_none())
    }

    /// What to say of tools that were pinned instead of compared.
    fn first_pinned(&self) -> Option<String> {
        let server = &self.source.key.name;
        match self.recorded.registered.as_slice() {
            [] => None,
            [tool] => Some(format!(
                "`{tool}` was not pinned yet, and is now; it was compared with nothing"
            )),
            tools => Some(format!(
                "{} tools of `{server}` were not pinned yet, and are now; they were compared with nothing: {}",
                tools.len(),
                quoted_names(tools)
            )),
        }
    }

    /// The tools that a lock file does not have and allows, because it leaves their server open.
    pub(super) fn unlocked(&self) -> &[String] {
        match self.is_recorded {
            true => &[],
            false => &self.judgement.new_tools,
        }
    }

    /// What to say of tools that the lock file does not have.
    fn not_in_lock(&self) -> Option<String> {
        let tools = self.unlocked();
        let are = if tools.len() == 1 {
            "tool of"
        } else {
            "tools of"
        };
        (!tools.is_empty()).then(|| {
            format!(
                "{} {are} `{}` not in the lock file, which leaves the server open; compared with nothing: {}",
                tools.len(),
                self.source.key.name,
                quoted_names(tools)
            )
        })
    }

    /// What to say of tools that were compared with nothing, and the first of them.
    fn not_compared(&self) -> impl Iterator<Item = (String, Option<&String>)> {
        let pinned = self.first_pinned();
        let pinned = pinned.map(|message| (message, self.recorded.registered.first()));
        let unlocked = self.not_in_lock();
        let unlocked = unlocked.map(|message| (message, self.unlocked().first()));
        pinned.into_iter().chain(unlocked)
    }
}

/// The most names that a sentence lists; the JSON report lists all.
const MOST_NAMES: usize = 20;

fn quoted_names(names: &[String]) -> String {
    let quoted = names.iter().take(MOST_NAMES);
    let mut quoted: Vec<String> = quoted.map(|name| format!("`{name}`")).collect();
    if let Some(more) = names.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
        quoted.push(format!("and {more} more"));
    }
    quoted.join(", ")
}

/// A server of the lock file that was not checked.
pub(super) struct UncheckedServer {
    pub(super) key: ServerKey,
    pub(super) tools: usize,
    /// The lock file.
    pub(super) lock: String,
}

/// Prints what was found, and returns whether anything fails.
pub(super) fn print_report(
    args: &CheckArgs,
    checked: &[ServerCheck<'_>],
    (unanswered, unchecked): (&[(&WatchSource, CliError)], &[UncheckedServer]),
    fail_on: &[FailOn],
    places: &ReportLocations,
) -> Result<bool, CliError> {
    let comparisons: Vec<ServerComparison<'_>> = checked
        .iter()
        .map(|it| ServerComparison {
            options: args.compare.options(),
            fail_on,
            locations: &it.observed.locations,
            subjects: subjects(it),
            server: Some(it.source.key.name.as_str()),
            drift: &it.judgement.drift,
        })
        .collect();
    let several = checked.len() + unanswered.len() > 1;
    if args.compat {
        print_text(
            &checked
                .iter()
                .flat_map(|it| &it.toolwatch_output)
                .map(String::as_str)
                .collect::<String>(),
        )?;
        let wanted = !fail_on.contains(&FailOn::None);
        return Ok(wanted && checked.iter().any(|it| it.mutated));
    }
    print_text(&match args.format {
        ReportFormat::Text => {
            let mut text = String::new();
            for (it, comparison) in checked.iter().zip(&comparisons) {
                text.push_str(&server_text(it, comparison, several));
            }
            for it in unchecked {
                let scope = escape_controls(&it.key.scope);
                let tools = if it.tools == 1 { "tool" } else { "tools" };
                text.push_str(&format!(
                    "not checked: server `{}` (scope {scope}) of {}, {} {tools}\n",
                    escape_controls(&it.key.name),
                    escape_controls(&it.lock),
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
                text.push_str(&markdown::unanswered_row(
                    &source.key.name,
                    &error.to_string(),
                ));
            }
            for (message, _) in checked.iter().flat_map(ServerCheck::not_compared) {
                text.push_str(&markdown::first_pinned(&message));
            }
            for missing in checked.iter().flat_map(unmeasured) {
                text.push_str(&markdown::not_measured(&missing.message));
            }
            for it in unchecked {
                text.push_str(&markdown::unchecked_row(&it.key.name, it.tools, &it.lock));
            }
            text
        }
        format => {
            let comparisons: Vec<&ServerComparison<'_>> = comparisons.iter().collect();
            let mut report = findings::report("toolwarden/watch/check/v1", &comparisons);
            for it in checked {
                for (message, first) in it.not_compared() {
                    let place = first.and_then(|tool| it.observed.locations.get(tool));
                    let place = place.map_or_else(|| places.server(it.source), Clone::clone);
                    let server = it.source.key.name.as_str();
                    report
                        .findings
                        .push(findings::first_pinned(server, &message, &place));
                }
                let missing = unmeasured(it).into_iter();
                report.findings.extend(missing.map(|missing| {
                    let place = it.observed.locations.get(&missing.subject);
                    let server = it.source.key.name.as_str();
                    findings::not_measured(server, &missing.subject, &missing.message, place)
                }));
            }
            for (source, error) in unanswered {
                report.subjects.push(Subject::of(&source.key.name));
                report.findings.push(findings::unanswered_finding(
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
            let others =
                others.map(|it| findings::unchecked_finding(&it.key.name, it.tools, &it.lock));
            report.findings.extend(others);
            report.render(format)
        }
    })?;
    Ok(comparisons.iter().any(ServerComparison::has_failures))
}

/// Results that were asked for and could not be compared.
struct UnmeasuredResults {
    /// The tool, or the file that should have held results.
    subject: String,
    message: String,
}

fn unmeasured(checked: &ServerCheck<'_>) -> Vec<UnmeasuredResults> {
    let unpinned = checked.unpinned_results.iter().map(|tool| {
        let pins = if checked.is_recorded {
            "`toolwarden watch baseline` with the same --responses or --calls pins them"
        } else {
            "`toolwarden watch lock` with the same --responses or --calls pins them"
        };
        UnmeasuredResults {
            subject: tool.clone(),
            message: format!("`{tool}` returned results and has none pinned; {pins}"),
        }
    });
    let empty = checked.observed.without_results.iter();
    let empty = empty.map(|(subject, why)| UnmeasuredResults {
        subject: subject.clone(),
        message: why.clone(),
    });
    unpinned.chain(empty).collect()
}

fn subjects(checked: &ServerCheck<'_>) -> Vec<String> {
    let judged = &checked.judgement;
    let mut subjects: Vec<String> = checked.observed.listing.unchanged.clone();
    let observed = checked.observed.listing.observed.iter();
    // What was only pinned did not pass.
    let registered = &checked.recorded.registered;
    let unlocked = checked.unlocked();
    let observed =
        observed.filter(|seen| !registered.contains(&seen.name) && !unlocked.contains(&seen.name));
    subjects.extend(observed.map(|seen| seen.name.clone()));
    subjects.extend(findings::removed_tools(&judged.drift));
    subjects
}

fn server_text(
    checked: &ServerCheck<'_>,
    comparison: &ServerComparison<'_>,
    several: bool,
) -> String {
    let (dim, place) = (style::DIM, style::LOCATION);
    let mut text = String::new();
    if several {
        let name = escape_controls(&checked.source.key.name);
        text.push_str(&format!("{place}== {name}{place:#}\n"));
    }
    let judged = &checked.judgement;
    let registered = &checked.recorded.registered;
    for (message, _) in checked.not_compared() {
        text.push_str(&format!("{}\n", escape_controls(&message)));
    }
    for (tools, what) in [
        (
            &judged.adopted,
            "is the one that was imported; its definition is pinned now",
        ),
        (
            &judged.first_results,
            "returned results for the first time; their shape is pinned now",
        ),
    ] {
        for tool in tools.iter().filter(|_| checked.is_recorded) {
            text.push_str(&format!("`{}` {what}\n", escape_controls(tool)));
        }
    }
    for what in unmeasured(checked) {
        text.push_str(&format!(
            "not measured: {}\n",
            escape_controls(&what.message)
        ));
    }
    for (tool, count) in &judged.approved {
        let changes = if *count == 1 { "change" } else { "changes" };
        text.push_str(&format!(
            "{dim}{count} approved {changes} of `{}` not shown{dim:#}\n",
            escape_controls(tool)
        ));
    }
    let nothing_else = judged.drift.tools.is_empty() && judged.drift.unchanged == 0;
    if !nothing_else || registered.is_empty() {
        text.push_str(&text_report::render(comparison));
    }
    let alerts = &checked.recorded.alerts;
    for alert in alerts {
        let again = match alert.raised {
            AlertNovelty::New => "",
            AlertNovelty::Known => " (known)",
        };
        let remedy = if alert.approvable {
            format!("`toolwarden watch approve {}` accepts it", alert.id)
        } else {
            "two tools have this name, so it cannot be approved".to_owned()
        };
        text.push_str(&format!(
            "{dim}alert {}{again}: `{}`; {remedy}{dim:#}\n",
            alert.id,
            escape_controls(&alert.tool),
        ));
    }
    let texts = judged
        .drift
        .tools
        .iter()
        .filter(|it| it.has_class(ChangeClass::Text));
    if checked.is_recorded && texts.count() > 1 {
        text.push_str(&format!(
            "{dim}`toolwarden watch approve --text --server {}` approves every text change that is not of class trust{dim:#}\n",
            escape_controls(&checked.source.key.name)
        ));
    }
    text
}

fn json_document(
    checked: &[ServerCheck<'_>],
    comparisons: &[ServerComparison<'_>],
    unanswered: &[(&WatchSource, CliError)],
    unchecked: &[UncheckedServer],
) -> String {
    let mut servers = Vec::new();
    for (it, comparison) in checked.iter().zip(comparisons) {
        let mut members = Object::new();
        members.insert("server".to_owned(), json!(it.source.key.name));
        members.insert("scope".to_owned(), json!(it.source.key.scope));
        members.extend(json_document::comparison_members(comparison));
        members.insert("failed".to_owned(), json!(comparison.has_failures()));
        members.insert("registered".to_owned(), json!(it.recorded.registered));
        members.insert("not_in_lock".to_owned(), json!(it.unlocked()));
        members.insert("adopted".to_owned(), json!(it.judgement.adopted));
        members.insert("learned".to_owned(), json!(it.judgement.first_results));
        let missing = unmeasured(it).into_iter();
        let missing = missing.map(|it| json!({"subject": it.subject, "message": it.message}));
        members.insert("not_measured".to_owned(), missing.collect());
        let alerts = it.recorded.alerts.iter().map(|alert| {
            json!({"id": alert.id, "tool": alert.tool, "new": alert.raised == AlertNovelty::New})
        });
        members.insert("alerts".to_owned(), alerts.collect());
        if let Some(name) = &it.observed.reported_name {
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
    json_document::to_text(&json!({
        "schema": "toolwarden/watch/check/v1",
        "servers": servers,
        "unanswered": unanswered.collect::<Vec<_>>(),
        "unchecked": unchecked.collect::<Vec<_>>(),
    }))
}
