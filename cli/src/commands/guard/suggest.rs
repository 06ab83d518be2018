//! Grants that would have sufficed, from the audit log.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use toolwarden_guard::{GrantSuggestion, ToolUsage, suggest_grants};
use toolwarden_store::{RecordFilter, Store};

use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{PlainFormat, StoreArgs, SuggestArgs};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::commands::audit;
use crate::commands::watch::store_path;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &SuggestArgs) -> Result<CommandOutcome, CliError> {
    let loaded = policy::load_and_warn(&PolicyLocation::find(&args.policy)?)?;
    let store = audit::store(&StoreArgs::at(args.store.as_ref()))?;
    let (usage, calls) = usage(&store, args)?;
    let mut suggestions = suggest_grants(&loaded.policy, &usage);
    if let Some(wanted) = &args.principal {
        let known = loaded.policy.principals.contains_key(wanted);
        let shown = if known { wanted } else { "*" };
        suggestions.retain(|it| it.principal == shown);
    }
    print_text(&match args.format {
        PlainFormat::Text => text(&suggestions, calls),
        PlainFormat::Json => {
            let document = json!({
                "schema": "toolwarden/guard/suggest/v1",
                "calls": calls,
                "principals": suggestions.iter().map(entry).collect::<Vec<_>>(),
            });
            escape_json(format!("{document:#}\n"))
        }
    })?;
    Ok(CommandOutcome::Pass)
}

/// The calls that were allowed, by principal and tool, and how many there are.
fn usage(store: &Store, args: &SuggestArgs) -> Result<(ToolUsage, u64), CliError> {
    let filter = RecordFilter {
        kind: Some("decision".to_owned()),
        code: Some("allowed".to_owned()),
        principal: args.principal.clone(),
        since_ms: args
            .since
            .map(|it| it.time(store_path::now()).as_millisecond()),
        ..RecordFilter::default()
    };
    let (mut usage, mut calls) = (ToolUsage::new(), 0);
    store.records(&filter, |row| {
        let principal = row.principal.unwrap_or_default();
        let tool = row.tool.unwrap_or_default();
        let tools = usage.entry(principal.to_owned()).or_default();
        *tools.entry(tool.to_owned()).or_default() += 1;
        calls += 1;
        ControlFlow::Continue(())
    })?;
    Ok((usage, calls))
}

fn entry(suggestion: &GrantSuggestion) -> Value {
    json!({
        "principal": suggestion.principal,
        "tools": suggestion.tools,
        "sufficient": {
            "groups": suggestion.groups,
            "permissions": suggestion.permissions,
            "roles": suggestion.roles,
        },
        "unused": {
            "groups": suggestion.unused_groups,
            "permissions": suggestion.unused_permissions,
            "roles": suggestion.unused_roles,
        },
        "unlisted_tools": suggestion.unlisted,
    })
}

fn text(suggestions: &[GrantSuggestion], calls: u64) -> String {
    let (good, dim, warning) = (style::SUCCESS, style::DIM, style::WARNING);
    let mut out = String::new();
    for suggestion in suggestions {
        let tools = suggestion.tools.len();
        let made: u64 = suggestion.tools.values().sum();
        let name = escape_controls(&suggestion.principal);
        out.push_str(&format!(
            "{name}: {} of {}\n",
            count_text(made, "allowed call"),
            count_text(tools as u64, "tool")
        ));
        let mut line = |style: anstyle::Style, title: &str, names: Vec<&str>| {
            if !names.is_empty() {
                let names: Vec<String> = names.into_iter().map(escape_controls).collect();
                let names = names.join(", ");
                out.push_str(&format!("  {style}{title}{style:#} {names}\n"));
            }
        };
        line(good, "sufficient groups:", texts(&suggestion.groups));
        line(
            good,
            "sufficient permissions:",
            texts(&suggestion.permissions),
        );
        let roles: BTreeSet<String> = suggestion.roles.iter().take(1).cloned().collect();
        line(good, "sufficient role:", texts(&roles));
        line(warning, "unused groups:", texts(&suggestion.unused_groups));
        line(
            warning,
            "unused permissions:",
            texts(&suggestion.unused_permissions),
        );
        line(warning, "unused roles:", texts(&suggestion.unused_roles));
        line(
            dim,
            "tools the policy does not name:",
            texts(&suggestion.unlisted),
        );
    }
    out.push_str(&format!(
        "{dim}from {} in the audit log{dim:#}\n",
        count_text(calls, "allowed call")
    ));
    out
}

fn count_text(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn texts<N: Borrow<str>>(names: &BTreeSet<N>) -> Vec<&str> {
    names.iter().map(N::borrow).collect()
}
