//! Grants that would have sufficed, from the audit log.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use toolwarden_guard::{Suggestion, Usage, suggest};
use toolwarden_store::{RecordFilter, Store};

use super::policy;
use crate::args::{PlainFormat, SuggestArgs};
use crate::ci_escape::in_json;
use crate::commands::audit;
use crate::commands::watch::keep;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &SuggestArgs) -> Result<Verdict, CliError> {
    let loaded = policy::load_and_warn(&args.policy.policy)?;
    let store = audit::store(&args.kept)?;
    let (usage, calls) = usage(&store, args)?;
    let mut suggestions = suggest(&loaded.policy, &usage);
    if let Some(wanted) = &args.principal {
        let known = loaded.policy.principals.contains_key(wanted);
        let shown = if known { wanted } else { "*" };
        suggestions.retain(|it| it.principal == shown);
    }
    print(&match args.format {
        PlainFormat::Text => text(&suggestions, calls),
        PlainFormat::Json => {
            let document = json!({
                "schema": "toolwarden/guard/suggest/v1",
                "calls": calls,
                "principals": suggestions.iter().map(entry).collect::<Vec<_>>(),
            });
            in_json(format!("{document:#}\n"))
        }
    })?;
    Ok(Verdict::Fine)
}

/// The calls that were allowed, by principal and tool, and how many there are.
fn usage(store: &Store, args: &SuggestArgs) -> Result<(Usage, u64), CliError> {
    let filter = RecordFilter {
        kind: Some("decision".to_owned()),
        code: Some("allowed".to_owned()),
        principal: args.principal.clone(),
        since_ms: args.since.map(|it| it.time(keep::now()).as_millisecond()),
        ..RecordFilter::default()
    };
    let (mut usage, mut calls) = (Usage::new(), 0);
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

fn entry(suggestion: &Suggestion) -> Value {
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

fn text(suggestions: &[Suggestion], calls: u64) -> String {
    let (good, dim, warning) = (style::GOOD, style::DIM, style::WARNING);
    let mut out = String::new();
    for suggestion in suggestions {
        let tools = suggestion.tools.len();
        let made: u64 = suggestion.tools.values().sum();
        let name = visible(&suggestion.principal);
        out.push_str(&format!(
            "{name}: {} of {}\n",
            counted(made, "allowed call"),
            counted(tools as u64, "tool")
        ));
        let mut line = |style: anstyle::Style, title: &str, names: &BTreeSet<String>| {
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|it| visible(it)).collect();
                let names = names.join(", ");
                out.push_str(&format!("  {style}{title}{style:#} {names}\n"));
            }
        };
        line(good, "sufficient groups:", &suggestion.groups);
        line(good, "sufficient permissions:", &suggestion.permissions);
        let roles: BTreeSet<String> = suggestion.roles.iter().take(1).cloned().collect();
        line(good, "sufficient role:", &roles);
        line(warning, "unused groups:", &suggestion.unused_groups);
        line(
            warning,
            "unused permissions:",
            &suggestion.unused_permissions,
        );
        line(warning, "unused roles:", &suggestion.unused_roles);
        line(dim, "tools the policy does not name:", &suggestion.unlisted);
    }
    out.push_str(&format!(
        "{dim}from {} in the audit log{dim:#}\n",
        counted(calls, "allowed call")
    ));
    out
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
