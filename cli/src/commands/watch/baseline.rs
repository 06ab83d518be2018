use serde_json::{Value, json};
use toolwarden_drift::shape::ValueKey;
use toolwarden_store::ServerKey;
use toolwarden_warden::{Pinned, PinnedTool, pin};

use super::live::ask;
use super::sources::sources;
use super::{calls, document, first_sight, keep, look};
use crate::args::{BaselineArgs, PlainFormat};
use crate::commands::talk::say_error;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &BaselineArgs) -> Result<Verdict, CliError> {
    let sources = sources(&args.source, &args.pinned)?;
    let calls = calls::to_make(args.source.calls.as_deref())?;
    let answers = ask(&sources, &calls)?;
    let store = keep::store(args.pinned.kept.store.as_ref())?;
    let approval = keep::approval(&args.approval);
    let key = ValueKey::new(store.value_key()?);
    let mut pinned: Vec<(ServerKey, Pinned)> = Vec::new();
    let mut unanswered = 0;
    for (source, answer) in sources.iter().zip(answers) {
        let answer = match answer.transpose() {
            Ok(answer) => answer,
            Err(error) => {
                unanswered += 1;
                say_error(&CliError::live(source, error));
                continue;
            }
        };
        let mut seen = look::look(source, answer, &args.source, None, &key)?;
        seen.refuse_doubled(source)?;
        // Tools nobody asked for are not gone.
        seen.listing.whole &= source.wanted(&args.source).is_empty();
        if args.open {
            seen.listing.whole &= !source.is_unnamed();
            store.leave_open(&source.key, approval.at)?;
        }
        let seal = seen.listing.whole && !args.open;
        let version = &args.source.version;
        let done = pin(&store, &source.key, &seen.listing, seal, version, &approval)?;
        let new = done.tools.iter().filter(|tool| !tool.known);
        let new: Vec<String> = new.map(|tool| tool.name.clone()).collect();
        first_sight::warn(source, &seen.listing, &new);
        pinned.push((source.key.clone(), done));
    }
    print(&match (args.compat, args.format) {
        (true, _) => pinned
            .iter()
            .flat_map(|(_, it)| &it.tools)
            .map(compat)
            .collect(),
        (false, PlainFormat::Json) => json_document(&pinned),
        (false, PlainFormat::Text) => text(&pinned, &store.path().display().to_string()),
    })?;
    Ok(Verdict::measured(unanswered == 0))
}

/// The JSON of the toolwatch program.
fn compat(tool: &PinnedTool) -> String {
    let mut at = format!("{:.6}", tool.at);
    at.truncate(at.trim_end_matches('Z').len());
    document::rendered(&json!({
        "tool_name": tool.name,
        "schema_hash": tool.schema_hash,
        "response_pattern_hash": tool.response_hash,
        "captured_at": format!("{at}+00:00"),
    }))
}

fn json_document(pinned: &[(ServerKey, Pinned)]) -> String {
    let servers: Vec<Value> = pinned
        .iter()
        .map(|(key, pinned)| {
            let tools: Vec<Value> = pinned
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "tool": tool.name,
                        "outcome": if tool.known { "unchanged" } else { "pinned" },
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
    document::rendered(&json!({"schema": "toolwarden/watch/baseline/v1", "servers": servers}))
}

fn text(pinned: &[(ServerKey, Pinned)], store: &str) -> String {
    let (good, dim) = (style::GOOD, style::DIM);
    let mut out = String::new();
    for (key, pinned) in pinned {
        for tool in &pinned.tools {
            let results = match tool.results {
                0 => String::new(),
                1 => " with the shape of 1 result".to_owned(),
                count => format!(" with the shape of {count} results"),
            };
            let name = visible(&tool.name);
            out.push_str(&if tool.known {
                format!("{dim}known{dim:#}  {name}{results}\n")
            } else {
                format!("{good}pinned{good:#} {name}{results}\n")
            });
        }
        for name in &pinned.retired {
            let name = visible(name);
            out.push_str(&format!("{dim}gone{dim:#}   {name}\n"));
        }
        let count = pinned.tools.len();
        let tools = if count == 1 { "tool" } else { "tools" };
        let sealed = if pinned.sealed { ", sealed" } else { "" };
        out.push_str(&format!(
            "{count} {tools} of server `{}`{sealed}\n",
            visible(&key.name)
        ));
    }
    if !pinned.is_empty() {
        out.push_str(&format!("{dim}kept in {}{dim:#}\n", visible(store)));
    }
    out
}
