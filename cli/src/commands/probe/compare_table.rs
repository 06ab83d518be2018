use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::Verdict;
use toolwarden_probe::{FIXTURES, Provider};
use toolwarden_trials::Snapshot;
use toolwarden_trials::tooldrift::{ToolCallShape, TooldriftSnapshot};

use super::snapshot::all_measured;
use super::{run_suite, write_file};
use crate::args::{CompareTableArgs, TableFormat};
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};
use crate::output::{CommandOutcome, print_text};

pub(super) fn run(args: &CompareTableArgs) -> Result<CommandOutcome, CliError> {
    let suite = run_suite::load_suite(args.ask.suite.as_deref())?;
    let mut names: Vec<String> = args.providers.clone();
    if names.is_empty() {
        names = FIXTURES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        names.sort();
    }
    let taken: Vec<Snapshot> = if args.from_fixtures {
        let mut taken = Vec::new();
        for name in &names {
            let provider = Provider::resolve(name, None, None).map_err(ProbeError::Provider)?;
            // A provider without an answer leaves a column out, not the table.
            match run_suite::bundled_fixture(name) {
                Ok(body) => taken.push(run_suite::snapshot_from_fixture(
                    provider, &suite, None, body,
                )?),
                Err(error) => print_status(&format!("skip {name}: {error}")),
            }
        }
        taken
    } else {
        let providers = names.iter().map(|name| Provider::resolve(name, None, None));
        let providers = providers
            .collect::<Result<_, _>>()
            .map_err(ProbeError::Provider)?;
        run_suite::run_providers(providers, &suite, &args.ask)?
    };
    let columns: Vec<TooldriftSnapshot> = taken.iter().filter_map(Snapshot::to_tooldrift).collect();
    let text = match args.format {
        TableFormat::Markdown => markdown(&suite.name, &columns),
        TableFormat::Json => json(&suite.name, &taken),
    };
    match &args.output {
        Some(path) => write_file::write_file(path, &text)?,
        None => print_text(&text)?,
    }
    let measured = !columns.is_empty() && taken.iter().all(all_measured);
    Ok(Verdict::new(false, measured).into())
}

/// One row of the table: what it is called, and what a provider shows there.
type ShapeRow = (&'static str, fn(&ToolCallShape) -> String);

const SHAPE_ROWS: [ShapeRow; 6] = [
    ("emitted", |it| {
        if it.emitted { "✓" } else { "✗" }.to_owned()
    }),
    ("arg_keys", |it| match it.arg_keys.as_slice() {
        [] => "—".to_owned(),
        keys => format!("`{}`", keys.join(", ")),
    }),
    ("args_encoding", |it| format!("`{}`", it.arguments_encoding)),
    ("parallel_arity", |it| it.parallel_arity.to_string()),
    ("id_format", |it| format!("`{}`", it.tool_call_id_format)),
    ("finish_reason", |it| format!("`{}`", it.finish_reason)),
];

fn markdown(suite: &str, columns: &[TooldriftSnapshot]) -> String {
    let names: Vec<String> = columns.iter().map(|it| cell(&it.provider)).collect();
    let mut out = format!(
        "### `tool_calls` contract comparison — suite `{}`\n\n",
        cell(suite)
    );
    out.push_str(&format!("| tool | field | {} |\n", names.join(" | ")));
    out.push_str(&format!("|---|---|{}\n", "---|".repeat(names.len())));
    let tools: BTreeSet<&String> = columns.iter().flat_map(|it| it.tools.keys()).collect();
    for tool in tools {
        for (at, (field, show)) in SHAPE_ROWS.iter().enumerate() {
            let shapes = columns.iter().map(|it| it.tools.get(tool));
            let shown: Vec<Option<String>> = shapes.map(|it| it.map(show)).collect();
            let seen: BTreeSet<&String> = shown.iter().flatten().collect();
            let title = match at {
                0 => format!("**{}**", cell(tool)),
                _ => String::new(),
            };
            let field = if seen.len() > 1 {
                format!("**Δ {field}**")
            } else {
                (*field).to_owned()
            };
            let cells = shown
                .iter()
                .map(|it| it.as_deref().map_or("—".to_owned(), cell));
            let cells: Vec<String> = cells.collect();
            out.push_str(&format!("| {title} | {field} | {} |\n", cells.join(" | ")));
        }
    }
    let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    out.push_str(&format!(
        "\n> Rows marked `Δ` differ across providers — those are the tool-call contract drifts to \
         handle before swapping models. Columns shown: {}.\n\n",
        names.join(", ")
    ));
    out
}

/// Text that stays within its cell.
fn cell(text: &str) -> String {
    crate::style::escape_controls(text).replace('|', "\\|")
}

fn json(suite: &str, taken: &[Snapshot]) -> String {
    let providers: Vec<Value> = taken
        .iter()
        .map(|it| {
            json!({
                "provider": it.provider,
                "model_id": it.model_id,
                "measured": it.trials.measured,
                "planned": it.trials.planned,
                "tools": it.to_document().get("tooldrift"),
            })
        })
        .collect();
    let document = json!({
        "schema": "toolwarden/probe/table/v1",
        "suite": suite,
        "providers": providers,
    });
    format!("{document:#}\n")
}
