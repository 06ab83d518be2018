use serde_json::{Value, json};
use toolwarden_watch::{
    ApprovalSelection, ApprovedItem, PendingApproval, approve, json_documents as entry,
    pending_approvals,
};

use super::marked_words::marked_words;
use super::{json_document, store_path};
use crate::args::{ApproveArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &ApproveArgs) -> Result<CommandOutcome, CliError> {
    let selection = ApprovalSelection {
        all: args.all,
        tools: args.tools.clone(),
        ids: args.ids.clone(),
        text: args.text,
    };
    let nothing_selected = !args.all && !args.text && args.tools.is_empty() && args.ids.is_empty();
    let Some(store) = store_path::open_existing_store(&args.kept)? else {
        if nothing_selected && args.server.is_none() {
            return show_pending(&[], args.format);
        }
        return Err(CliError::NothingPinned {
            server: args.server.clone().unwrap_or_default(),
        });
    };
    let servers = store_path::matching_servers(&store, args.server.as_ref(), args.scope.as_ref())?;
    if nothing_selected {
        return show_pending(&pending_approvals(&store, &servers)?, args.format);
    }
    let approval = store_path::approval(&args.approval);
    let approved = approve(&store, &servers, &selection, &approval)?;
    print_text(&match args.format {
        PlainFormat::Text if approved.is_empty() && args.text => {
            "no text changes are pending\n".to_owned()
        }
        PlainFormat::Text => text(&approved),
        PlainFormat::Json => {
            let entries: Vec<Value> = approved.iter().map(entry::approved_item).collect();
            json_document::to_text(
                &json!({"schema": "toolwarden/watch/approve/v1", "approved": entries}),
            )
        }
    })?;
    Ok(CommandOutcome::Pass)
}

fn text(approved: &[ApprovedItem]) -> String {
    if approved.is_empty() {
        return "no changes are pending\n".to_owned();
    }
    let good = style::SUCCESS;
    let mut out = String::new();
    for it in approved {
        let line = match it {
            ApprovedItem::Tool { server, tool } => format!(
                "`{}` of `{}`: pinned as last observed",
                escape_controls(tool),
                escape_controls(server)
            ),
            ApprovedItem::RemovedTool { server, tool } => format!(
                "`{}` of `{}`: removal accepted",
                escape_controls(tool),
                escape_controls(server)
            ),
            ApprovedItem::Change { tool, id, left, .. } => {
                format!(
                    "change {id} of `{}`; {left} still pending",
                    escape_controls(tool)
                )
            }
        };
        out.push_str(&format!("{good}approved{good:#} {line}\n"));
    }
    out
}

/// Prints the pending approvals.
fn show_pending(
    pending_approvals: &[PendingApproval],
    format: PlainFormat,
) -> Result<CommandOutcome, CliError> {
    if format == PlainFormat::Json {
        let entries: Vec<Value> = pending_approvals
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
        print_text(&json_document::to_text(&document))?;
        return Ok(CommandOutcome::Pass);
    }
    let dim = style::DIM;
    let mut out = String::new();
    for it in pending_approvals {
        let (tool, server) = (
            escape_controls(&it.sighting.tool),
            escape_controls(&it.server.key.name),
        );
        let (scope, at) = (escape_controls(&it.server.key.scope), it.sighting.at);
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
                escape_controls(&change.message),
                escape_controls(change.pointer.as_str())
            ));
            let words = marked_words(change);
            if !words.is_empty() {
                out.push_str(&format!("      {}\n", escape_controls(&words)));
            }
            for reason in &change.evidence.reasons {
                out.push_str(&format!("      ! {}\n", escape_controls(&reason.message)));
            }
        }
        for message in &it.findings {
            out.push_str(&format!("  suspicious   {}\n", escape_controls(message)));
        }
        for message in &it.results {
            out.push_str(&format!("  results      {}\n", escape_controls(message)));
        }
    }
    out.push_str(&match pending_approvals.len() {
        0 => "no changes are pending\n".to_owned(),
        1 => "1 tool is pending approval: pass its ids, --tool, --text or --all\n".to_owned(),
        count => format!("{count} tools are pending approval: pass ids, --tool, --text or --all\n"),
    });
    print_text(&out)?;
    Ok(CommandOutcome::Pass)
}
