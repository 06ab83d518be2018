use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_drift::ToolwatchSeverity;
use toolwarden_store::{Alert, AlertFilter, AlertStatus, Server, Store};
use toolwarden_watch::json_documents as entry;

use super::json_document::parse;
use super::marked_words::mark_words;
use super::{json_document, store_path};
use crate::args::{AlertStatusArg, AlertsArgs, PlainFormat, SeverityArg};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &AlertsArgs) -> Result<CommandOutcome, CliError> {
    let alerts = match store_path::open_existing_store(&args.kept)? {
        Some(store) => {
            let servers = store_path::servers_called(&store, &args.servers)?;
            refuse_unknown_tools(&store, &servers, &args.tools)?;
            store.alerts(&filter(args))?
        }
        None => {
            store_path::refuse_names(&args.servers)?;
            Vec::new()
        }
    };
    let json = args.compat || args.format == PlainFormat::Json;
    print_text(&match (json, args.compat) {
        (_, true) if alerts.is_empty() => "No alerts recorded.\n".to_owned(),
        (_, true) => {
            let entries = alerts.iter().map(|alert| parse(&alert.toolwatch_document));
            json_document::to_text(&Value::Array(entries.collect()))
        }
        (true, false) => {
            let entries: Vec<Value> = alerts.iter().map(entry::alert).collect();
            json_document::to_text(
                &json!({"schema": "toolwarden/watch/alerts/v1", "alerts": entries}),
            )
        }
        (false, false) => text(&alerts),
    })?;
    Ok(CommandOutcome::Pass)
}

/// Refuses names of tools that the servers never had. An alert may be about a tool that was never pinned.
fn refuse_unknown_tools(
    store: &Store,
    servers: &[Server],
    tools: &[String],
) -> Result<(), CliError> {
    if tools.is_empty() {
        return Ok(());
    }
    let mut known: BTreeSet<String> = BTreeSet::new();
    for server in servers {
        known.extend(store.tools(server.id)?);
        known.extend(store.sightings(server.id)?.into_iter().map(|it| it.tool));
    }
    let all = store.alerts(&AlertFilter::default())?.into_iter();
    known.extend(all.map(|alert| alert.tool));
    match tools.iter().find(|tool| !known.contains(*tool)) {
        None => Ok(()),
        Some(name) => Err(CliError::NoSuchTool {
            name: name.clone(),
            suggestion: toolwarden_model::did_you_mean(name, known.iter().map(String::as_str)),
        }),
    }
}

fn filter(args: &AlertsArgs) -> AlertFilter {
    let severities = args.severity.iter().map(|word| match word {
        SeverityArg::Low => ToolwatchSeverity::Low,
        SeverityArg::Medium => ToolwatchSeverity::Medium,
        SeverityArg::High => ToolwatchSeverity::High,
    });
    AlertFilter {
        since: args.since.map(|since| since.time(store_path::now())),
        severities: severities.map(|it| it.as_str().to_owned()).collect(),
        tools: args.tools.clone(),
        servers: args.servers.clone(),
        status: args.status.map(|status| match status {
            AlertStatusArg::Open => AlertStatus::Open,
            AlertStatusArg::Approved => AlertStatus::Approved,
            AlertStatusArg::Closed => AlertStatus::Closed,
        }),
    }
}

fn text(alerts: &[Alert]) -> String {
    if alerts.is_empty() {
        return "No alerts recorded.\n".to_owned();
    }
    let dim = style::DIM;
    let mut out = String::new();
    for alert in alerts {
        let colour = match alert.severity.as_str() {
            "high" => style::ERROR,
            "medium" => style::WARNING,
            _ => style::DIM,
        };
        let times = match alert.times {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        out.push_str(&format!(
            "{dim}{}{dim:#} {colour}{:<6}{colour:#} {:<8} {} {dim}of `{}`{dim:#} {}: {} {dim}({:.0}{times}){dim:#}\n",
            alert.id,
            alert.severity,
            alert.status.as_str(),
            escape_controls(&alert.tool),
            escape_controls(&alert.server.name),
            alert.change_type,
            alert.class,
            alert.last_seen,
        ));
        let document = parse(&alert.document);
        let changes = document.get("changes").and_then(Value::as_array);
        let count = changes.map_or(0, Vec::len);
        for change in changes.into_iter().flatten().take(3) {
            let text_of = |key| change.get(key).and_then(Value::as_str);
            let word = |key| change.get(key).and_then(Value::as_str).unwrap_or_default();
            out.push_str(&format!(
                "    {:<11} {}\n",
                word("class"),
                escape_controls(word("message"))
            ));
            // What an agent reads is judged by its words.
            if matches!(word("class"), "text" | "trust")
                && let (Some(before), Some(after)) = (text_of("before"), text_of("after"))
            {
                let words = mark_words(before, after);
                out.push_str(&format!("                {}\n", escape_controls(&words)));
            }
        }
        if count > 3 {
            out.push_str(&format!("    {dim}and {} more{dim:#}\n", count - 3));
        }
    }
    let open = alerts
        .iter()
        .filter(|alert| alert.status == AlertStatus::Open);
    let word = if alerts.len() == 1 { "alert" } else { "alerts" };
    out.push_str(&format!("{} {word}, {} open\n", alerts.len(), open.count()));
    out
}
