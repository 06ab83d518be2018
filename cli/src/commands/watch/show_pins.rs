//! What the store holds, for people and scripts.

use serde_json::{Value, json};
use toolwarden_store::{AlertFilter, Approval, Baseline, BaselineOrigin, Server, Store};
use toolwarden_watch::json_documents as entry;

use super::json_document::parse;
use super::{json_document, store_path};
use crate::args::{ListArgs, PlainFormat, ShowArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn list(args: &ListArgs) -> Result<CommandOutcome, CliError> {
    let mut listed: Vec<(Server, Vec<Baseline>)> = Vec::new();
    match store_path::open_existing_store(&args.kept)? {
        Some(store) => {
            for server in store_path::servers_called(&store, &args.servers)? {
                let baselines = store.baselines(server.id)?;
                listed.push((server, baselines));
            }
        }
        None => store_path::refuse_names(&args.servers)?,
    }
    print_text(&match args.format {
        PlainFormat::Json => {
            let servers: Vec<Value> = listed
                .iter()
                .map(|(server, baselines)| {
                    let tools: Vec<Value> = baselines.iter().map(entry::baseline).collect();
                    json!({"server": server.key.name, "scope": server.key.scope,
                        "sealed": server.sealed, "tools": tools})
                })
                .collect();
            json_document::to_text(
                &json!({"schema": "toolwarden/watch/list/v1", "servers": servers}),
            )
        }
        PlainFormat::Text => text(&listed),
    })?;
    Ok(CommandOutcome::Pass)
}

fn text(listed: &[(Server, Vec<Baseline>)]) -> String {
    let (place, dim) = (style::LOCATION, style::DIM);
    let mut out = String::new();
    let mut count = 0;
    for (server, baselines) in listed {
        let sealed = if server.sealed { ", sealed" } else { "" };
        let (name, scope) = (
            escape_controls(&server.key.name),
            escape_controls(&server.key.scope),
        );
        out.push_str(&format!(
            "{place}{name}{place:#} {dim}(scope {scope}{sealed}){dim:#}\n"
        ));
        for baseline in baselines {
            count += 1;
            let definition = match &baseline.definition {
                Some(kept) => kept.fingerprint.to_string().chars().take(12).collect(),
                None => "hash only   ".to_owned(),
            };
            let shape = if baseline.shape.is_some() {
                " with results"
            } else {
                ""
            };
            out.push_str(&format!(
                "  {definition} {} {dim}{}{shape}, {} {:.0} by {}{dim:#}\n",
                escape_controls(&baseline.tool),
                escape_controls(&baseline.version),
                baseline.origin.as_str(),
                baseline.approval.at,
                escape_controls(&baseline.approval.by),
            ));
        }
    }
    out.push_str(&match count {
        0 => "nothing is pinned\n".to_owned(),
        1 => "1 tool is pinned\n".to_owned(),
        count => format!("{count} tools are pinned\n"),
    });
    out
}

/// The store and the one server that has a tool.
fn find_server_of_tool(args: &ShowArgs) -> Result<(Store, Server), CliError> {
    let nothing_pinned = || CliError::NothingPinned {
        server: args.server.clone().unwrap_or_default(),
    };
    let store = store_path::open_existing_store(&args.kept)?.ok_or_else(nothing_pinned)?;
    let servers = store_path::matching_servers(&store, args.server.as_ref(), args.scope.as_ref())?;
    let mut having = Vec::new();
    let mut names = Vec::new();
    for server in servers {
        let tools = store.tools(server.id)?;
        if tools.contains(&args.tool) {
            having.push(server);
        }
        names.extend(tools);
    }
    let mut having = having.into_iter();
    match (having.next(), having.next()) {
        (Some(server), None) => Ok((store, server)),
        (Some(first), Some(second)) => Err(CliError::SeveralServers {
            tool: args.tool.clone(),
            first: first.key,
            second: second.key,
        }),
        (None, _) => Err(CliError::NoSuchTool {
            name: args.tool.clone(),
            suggestion: toolwarden_model::did_you_mean(
                &args.tool,
                names.iter().map(String::as_str),
            ),
        }),
    }
}

pub(super) fn show(args: &ShowArgs) -> Result<CommandOutcome, CliError> {
    let (store, server) = find_server_of_tool(args)?;
    let history = store.history(server.id, &args.tool)?;
    let Some(baseline) = history.last() else {
        return Err(CliError::NothingPinned {
            server: server.key.name,
        });
    };
    let definition = match baseline.definition {
        Some(kept) => Some(parse(&store.definition(kept.fingerprint)?)),
        None => None,
    };
    let shape = baseline.shape.as_deref().map(parse);
    let mut members = vec![
        ("schema".to_owned(), json!("toolwarden/watch/show/v1")),
        ("server".to_owned(), json!(server.key.name)),
        ("scope".to_owned(), json!(server.key.scope)),
    ];
    let mut entry = match entry::baseline(baseline) {
        Value::Object(entry) => entry,
        _ => serde_json::Map::new(),
    };
    entry.insert(
        "definition".to_owned(),
        definition.clone().unwrap_or(Value::Null),
    );
    entry.insert("shape".to_owned(), shape.clone().unwrap_or(Value::Null));
    members.extend(entry);
    if args.format == PlainFormat::Json {
        print_text(&json_document::to_text(&Value::Object(
            members.into_iter().collect(),
        )))?;
        return Ok(CommandOutcome::Pass);
    }
    let dim = style::DIM;
    let mut out = String::new();
    let (name, of) = (
        escape_controls(&baseline.tool),
        escape_controls(&server.key.name),
    );
    out.push_str(&format!("{name} {dim}of `{of}`{dim:#}\n"));
    out.push_str(&approval_line(baseline));
    match &definition {
        Some(definition) => out.push_str(&visible_lines(&json_document::to_text(definition))),
        None if baseline.origin == BaselineOrigin::Retired => {
            out.push_str("the tool is no longer pinned\n");
        }
        None => out.push_str("only a hash is known of its definition; the next check pins it\n"),
    }
    if let Some(shape) = &shape {
        let results = shape
            .get("results")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        out.push_str(&format!(
            "{dim}results: the shape of {results}; --format json has it{dim:#}\n"
        ));
    }
    print_text(&out)?;
    Ok(CommandOutcome::Pass)
}

pub(super) fn history(args: &ShowArgs) -> Result<CommandOutcome, CliError> {
    let (store, server) = find_server_of_tool(args)?;
    let history = store.history(server.id, &args.tool)?;
    let alerts = store.alerts(&AlertFilter {
        tools: vec![args.tool.clone()],
        servers: vec![server.key.name.clone()],
        ..AlertFilter::default()
    })?;
    let of_scope = alerts.into_iter().filter(|it| it.server == server.key);
    let alerts: Vec<_> = of_scope.collect();
    if args.format == PlainFormat::Json {
        let alerts = alerts.iter().map(|alert| {
            json!({"id": alert.id, "class": alert.class, "status": alert.status.as_str(),
                "first_seen": format!("{:.3}", alert.first_seen),
                "last_seen": format!("{:.3}", alert.last_seen), "times": alert.times})
        });
        print_text(&json_document::to_text(&json!({
            "schema": "toolwarden/watch/history/v1",
            "server": server.key.name,
            "scope": server.key.scope,
            "tool": args.tool,
            "baselines": history.iter().map(entry::baseline).collect::<Vec<_>>(),
            "alerts": alerts.collect::<Vec<_>>(),
        })))?;
        return Ok(CommandOutcome::Pass);
    }
    let dim = style::DIM;
    let mut lines: Vec<(jiff::Timestamp, String)> = Vec::new();
    for baseline in &history {
        lines.push((baseline.approval.at, approval_line(baseline)));
        for single in store.approved_changes(baseline.id)? {
            let line = format!(
                "{:.0} approved change {} {}",
                single.approval.at,
                single.change,
                approval_text(&single.approval)
            );
            lines.push((single.approval.at, line));
        }
    }
    for alert in &alerts {
        let line = format!(
            "{:.0} alert {} {} {dim}({}, {} times){dim:#}\n",
            alert.first_seen,
            alert.id,
            alert.class,
            alert.status.as_str(),
            alert.times
        );
        lines.push((alert.first_seen, line));
    }
    lines.sort_by_key(|(at, _)| *at);
    print_text(&lines.into_iter().map(|(_, line)| line).collect::<String>())?;
    Ok(CommandOutcome::Pass)
}

fn approval_line(baseline: &Baseline) -> String {
    let dim = style::DIM;
    let digest = baseline.definition.map_or_else(String::new, |kept| {
        kept.fingerprint.to_string().chars().take(12).collect()
    });
    format!(
        "{:.0} {} {dim}{digest} version {}{dim:#} {}",
        baseline.approval.at,
        baseline.origin.as_str(),
        escape_controls(&baseline.version),
        approval_text(&baseline.approval),
    )
}

fn approval_text(approval: &Approval) -> String {
    let why = approval
        .why
        .as_ref()
        .map(|why| format!(": {}", escape_controls(why)));
    format!(
        "by {}{}\n",
        escape_controls(&approval.by),
        why.unwrap_or_default()
    )
}

fn visible_lines(text: &str) -> String {
    text.lines()
        .map(|line| escape_controls(line) + "\n")
        .collect()
}
