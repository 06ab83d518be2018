use serde_json::{Value, json};
use toolwarden_drift::shape::ValueKey;
use toolwarden_store::ServerKey;
use toolwarden_watch::{PinReport, PinReportTool, pin};

use super::live_servers::query_servers;
use super::sources::tool_sources;
use super::{json_document, new_tool_warnings, observe, recorded_calls, store_path};
use crate::args::{BaselineArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_error;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &BaselineArgs) -> Result<CommandOutcome, CliError> {
    let sources = tool_sources(&args.source, &args.pinned)?;
    let calls = recorded_calls::live_calls(args.source.calls.as_deref())?;
    let answers = query_servers(&sources, &calls)?;
    let store = store_path::open_store(&args.pinned.kept)?;
    let approval = store_path::approval(&args.approval);
    let key = ValueKey::new(store.value_key()?);
    let mut pinned: Vec<(ServerKey, PinReport)> = Vec::new();
    let mut unanswered = 0;
    for (source, answer) in sources.iter().zip(answers) {
        let answer = match answer.transpose() {
            Ok(answer) => answer,
            Err(error) => {
                unanswered += 1;
                print_error(&source.live_error(error));
                continue;
            }
        };
        let mut seen = observe::observe(source, answer, &args.source, None, &key)?;
        seen.refuse_duplicates(source)?;
        // Tools that were not requested are not gone.
        seen.listing.is_complete &= source.requested_tools(&args.source).is_empty();
        if args.open {
            seen.listing.is_complete &= !source.is_unnamed();
            store.mark_unsealed(&source.key, approval.at)?;
        }
        let seal = seen.listing.is_complete && !args.open;
        let version = &args.source.version;
        let done = pin(&store, &source.key, &seen.listing, seal, version, &approval)?;
        let new = done.tools.iter().filter(|tool| !tool.already_pinned);
        let new: Vec<String> = new.map(|tool| tool.name.clone()).collect();
        new_tool_warnings::warn_of_findings(source, &seen.listing, &new);
        pinned.push((source.key.clone(), done));
    }
    print_text(&match (args.compat, args.format) {
        (true, _) => pinned
            .iter()
            .flat_map(|(_, it)| &it.tools)
            .map(toolwatch_json)
            .collect(),
        (false, PlainFormat::Json) => json_document(&pinned),
        (false, PlainFormat::Text) => text(&pinned, &store.path().display().to_string()),
    })?;
    Ok(CommandOutcome::from_measured(unanswered == 0))
}

/// The JSON of the toolwatch program.
fn toolwatch_json(tool: &PinReportTool) -> String {
    let mut at = format!("{:.6}", tool.at);
    at.truncate(at.trim_end_matches('Z').len());
    json_document::to_text(&json!({
        "tool_name": tool.name,
        "schema_hash": tool.schema_hash,
        "response_pattern_hash": tool.response_hash,
        "captured_at": format!("{at}+00:00"),
    }))
}

fn json_document(pinned: &[(ServerKey, PinReport)]) -> String {
    let servers: Vec<Value> = pinned
        .iter()
        .map(|(key, pinned)| {
            let tools: Vec<Value> = pinned
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "tool": tool.name,
                        "outcome": if tool.already_pinned { "unchanged" } else { "pinned" },
                        "results": tool.results,
                        "pinned_at": format!("{:.3}", tool.at),
                        "schema_hash": tool.schema_hash,
                        "response_pattern_hash": tool.response_hash,
                    })
                })
                .collect();
            json!({"server": key.name, "scope": key.scope, "sealed": pinned.sealed,
                "tools": tools, "retired": pinned.retired})
        })
        .collect();
    json_document::to_text(&json!({"schema": "toolwarden/watch/baseline/v1", "servers": servers}))
}

fn text(pinned: &[(ServerKey, PinReport)], store: &str) -> String {
    let (good, dim) = (style::SUCCESS, style::DIM);
    let mut out = String::new();
    for (key, pinned) in pinned {
        for tool in &pinned.tools {
            let results = match tool.results {
                0 => String::new(),
                1 => " with the shape of 1 result".to_owned(),
                count => format!(" with the shape of {count} results"),
            };
            let name = escape_controls(&tool.name);
            out.push_str(&if tool.already_pinned {
                format!("{dim}known{dim:#}  {name}{results}\n")
            } else {
                format!("{good}pinned{good:#} {name}{results}\n")
            });
        }
        for name in &pinned.retired {
            let name = escape_controls(name);
            out.push_str(&format!("{dim}gone{dim:#}   {name}\n"));
        }
        let count = pinned.tools.len();
        let tools = if count == 1 { "tool" } else { "tools" };
        let sealed = if pinned.sealed { ", sealed" } else { "" };
        out.push_str(&format!(
            "{count} {tools} of server `{}`{sealed}\n",
            escape_controls(&key.name)
        ));
    }
    if !pinned.is_empty() {
        out.push_str(&format!("{dim}kept in {}{dim:#}\n", escape_controls(store)));
    }
    out
}
