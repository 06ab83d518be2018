use serde_json::{Value, json};
use toolwarden_warden::{Approved, Selection, Waiting, approve, document as entry, waiting};

use super::words::marked_words;
use super::{document, keep};
use crate::args::{ApproveArgs, PlainFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &ApproveArgs) -> Result<Verdict, CliError> {
    let selection = Selection {
        all: args.all,
        tools: args.tools.clone(),
        ids: args.ids.clone(),
        text: args.text,
    };
    let nothing_selected = !args.all && !args.text && args.tools.is_empty() && args.ids.is_empty();
    let Some(store) = keep::existing_store(args.kept.store.as_ref())? else {
        if nothing_selected {
            return shown(&[], args.format);
        }
        return Err(CliError::NothingPinned {
            server: args.server.clone().unwrap_or_default(),
        });
    };
    let servers = keep::servers(&store, args.server.as_ref(), args.scope.as_ref())?;
    if nothing_selected {
        return shown(&waiting(&store, &servers)?, args.format);
    }
    let approval = keep::approval(&args.approval);
    let approved = approve(&store, &servers, &selection, &approval)?;
    print(&match args.format {
        PlainFormat::Text if approved.is_empty() && args.text => {
            "no change of text waits for approval\n".to_owned()
        }
        PlainFormat::Text => text(&approved),
        PlainFormat::Json => {
            let entries: Vec<Value> = approved.iter().map(entry::approved).collect();
            document::rendered(
                &json!({"schema": "toolwarden/watch/approve/v1", "approved": entries}),
            )
        }
    })?;
    Ok(Verdict::Fine)
}

fn text(approved: &[Approved]) -> String {
    if approved.is_empty() {
        return "nothing waits for approval\n".to_owned();
    }
    let good = style::GOOD;
    let mut out = String::new();
    for it in approved {
        let line = match it {
            Approved::Tool { server, tool } => format!(
                "`{}` of `{}` is held to what was seen last",
                visible(tool),
                visible(server)
            ),
            Approved::Gone { server, tool } => format!(
                "`{}` of `{}` is gone, and may be",
                visible(tool),
                visible(server)
            ),
            Approved::Change { tool, id, left, .. } => {
                format!("change {id} of `{}`; {left} still wait", visible(tool))
            }
        };
        out.push_str(&format!("{good}approved{good:#} {line}\n"));
    }
    out
}

/// What waits, for whoever has not decided yet.
fn shown(waiting: &[Waiting], format: PlainFormat) -> Result<Verdict, CliError> {
    if format == PlainFormat::Json {
        let entries: Vec<Value> = waiting
            .iter()
            .map(|it| {
                let changes = it.changes.iter().map(|change| {
                    json!({"id": change.id.to_string(), "class": change.class.as_str(),
                        "approved": it.approved.contains(&change.id.to_string()),
                        "pointer": change.pointer.as_str(), "message": change.message})
                });
                json!({"server": it.server.key.name, "scope": it.server.key.scope,
                    "tool": it.sighting.tool, "alerts": it.alerts.iter().map(|(id, _)| id).collect::<Vec<_>>(), "kind": it.kind(),
                    "findings": it.findings, "results": it.results, "seen_at": format!("{:.3}", it.sighting.at),
                    "changes": changes.collect::<Vec<_>>()})
            })
            .collect();
        let document = json!({"schema": "toolwarden/watch/waiting/v1", "waiting": entries});
        print(&document::rendered(&document))?;
        return Ok(Verdict::Fine);
    }
    let dim = style::DIM;
    let mut out = String::new();
    for it in waiting {
        let (tool, server) = (visible(&it.sighting.tool), visible(&it.server.key.name));
        let (scope, at) = (visible(&it.server.key.scope), it.sighting.at);
        let alert: String = it.alerts.iter().map(|(id, _)| format!("{id} ")).collect();
        out.push_str(&format!(
            "{alert}{tool} {dim}of `{server}` (scope {scope}), {}, seen {at:.0}{dim:#}\n",
            it.kind()
        ));
        for change in &it.changes {
            let approved = if it.approved.contains(&change.id.to_string()) {
                " (approved)"
            } else {
                ""
            };
            out.push_str(&format!(
                "  {} {:<11} {} {dim}{}{approved}{dim:#}\n",
                change.id,
                change.class.as_str(),
                visible(&change.message),
                visible(change.pointer.as_str())
            ));
            let words = marked_words(change);
            if !words.is_empty() {
                out.push_str(&format!("      {}\n", visible(&words)));
            }
            for reason in &change.reasons {
                out.push_str(&format!("      ! {}\n", visible(&reason.message)));
            }
        }
        for message in &it.findings {
            out.push_str(&format!("  suspicious   {}\n", visible(message)));
        }
        for message in &it.results {
            out.push_str(&format!("  results      {}\n", visible(message)));
        }
    }
    out.push_str(&match waiting.len() {
        0 => "nothing waits for approval\n".to_owned(),
        1 => "1 tool waits for approval: give its ids, --tool, --text or --all\n".to_owned(),
        count => format!("{count} tools wait for approval: give ids, --tool, --text or --all\n"),
    });
    print(&out)?;
    Ok(Verdict::Fine)
}
