use serde_json::{Value, json};
use toolwarden_store::{Alert, AlertFilter, AlertStatus};
use toolwarden_warden::document as entry;

use super::document::parsed;
use super::{document, keep};
use crate::args::{AlertsArgs, PlainFormat, SeverityWord, StatusWord};
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &AlertsArgs) -> Result<Verdict, CliError> {
    let alerts = match keep::existing_store(args.kept.store.as_ref())? {
        Some(store) => store.alerts(&filter(args))?,
        None => Vec::new(),
    };
    let json = args.compat || args.format == PlainFormat::Json;
    print(&match (json, args.compat) {
        (_, true) if alerts.is_empty() => "No alerts recorded.\n".to_owned(),
        (_, true) => {
            let entries = alerts.iter().map(|alert| parsed(&alert.old_form));
            document::rendered(&Value::Array(entries.collect()))
        }
        (true, false) => {
            let entries: Vec<Value> = alerts.iter().map(entry::alert).collect();
            document::rendered(&json!({"schema": "toolwarden/watch/alerts/v1", "alerts": entries}))
        }
        (false, false) => text(&alerts),
    })?;
    Ok(Verdict::Fine)
}

fn filter(args: &AlertsArgs) -> AlertFilter {
    let severities = args.severity.iter().map(|word| match word {
        SeverityWord::Low => "low",
        SeverityWord::Medium => "medium",
        SeverityWord::High => "high",
    });
    AlertFilter {
        since: args.since.map(|since| since.time(keep::now())),
        severities: severities.map(ToOwned::to_owned).collect(),
        tools: args.tools.clone(),
        servers: args.servers.clone(),
        status: args.status.map(|status| match status {
            StatusWord::Open => AlertStatus::Open,
            StatusWord::Approved => AlertStatus::Approved,
            StatusWord::Closed => AlertStatus::Closed,
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
            visible(&alert.tool),
            visible(&alert.server.name),
            alert.change_type,
            alert.class,
            alert.last_seen,
        ));
        let document = parsed(&alert.document);
        let changes = document.get("changes").and_then(Value::as_array);
        let count = changes.map_or(0, Vec::len);
        for change in changes.into_iter().flatten().take(3) {
            let word = |key| change.get(key).and_then(Value::as_str).unwrap_or_default();
            out.push_str(&format!(
                "    {:<11} {}\n",
                word("class"),
                visible(word("message"))
            ));
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
