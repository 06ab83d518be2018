use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwarden_model::{Severity, Verdict};
use toolwarden_probe::{ContractFile, FIXTURES, ProbeSuite, Provider};
use toolwarden_trials::tooldrift::{ToolCallShape, TooldriftSnapshot};
use toolwarden_trials::{Snapshot, VersionedSnapshot};

use super::comparison::{self, ProbeComparison};
use super::snapshot::all_measured;
use super::{diff, json_document, run_suite, write_file};
use crate::args::{CompareTableArgs, JudgeArgs, ReportFormat, TableFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};
use crate::output::print_text;
use crate::style::escape_controls;

/// How many breaking changes the table lists for one column.
const MAX_LISTED: usize = 10;

pub(super) fn run(args: &CompareTableArgs) -> Result<CommandOutcome, CliError> {
    let contract = args.contract.as_deref().map(ContractFile::load);
    let contract = contract.transpose().map_err(ProbeError::File)?;
    let suite = match &contract {
        Some(contract) => ProbeSuite::load(&contract.suite).map_err(ProbeError::File)?,
        None => run_suite::load_suite(args.ask.suite.as_deref())?,
    };
    let mut columns: Vec<VersionedSnapshot> = Vec::new();
    for path in &args.snapshots {
        columns.push(diff::read(path)?);
    }
    let (taken, left_out) = take_snapshots(args, contract.as_ref(), &suite)?;
    columns.extend(taken.into_iter().map(VersionedSnapshot::V2));
    let judge = JudgeArgs {
        fail_on: args.fail_on,
        allowed_drop: args.allowed_drop,
        compat: args.compat,
        format: ReportFormat::Text,
        looks: None,
    };
    let compared = compare_with_first(&columns, &judge)?;
    let shown: Vec<TooldriftSnapshot> = columns.iter().filter_map(as_tooldrift).collect();
    let name = columns.last().map_or(suite.name.as_str(), suite_of);
    let text = match (args.format, args.compat) {
        (TableFormat::Markdown, None) => {
            let verdicts = verdict_rows(&columns, &compared);
            markdown(name, &shown, Some(&verdicts)) + &breaking_list(&compared) + &left(&left_out)
        }
        (TableFormat::Markdown, Some(_)) => markdown(name, &shown, None),
        (TableFormat::Json, _) => json(name, &columns, &compared, &left_out),
    };
    match &args.output {
        Some(path) => write_file::write_file(path, &text)?,
        None => print_text(&text)?,
    }
    let measured = !shown.is_empty() && columns.iter().all(is_measured);
    if args.compat.is_some() {
        return Ok(Verdict::new(false, measured).into());
    }
    if compared.is_empty() {
        print_status("nothing was compared: a comparison needs two measured columns");
    }
    let whole = measured && left_out.is_empty() && !compared.is_empty();
    Ok(comparison::overall_verdict(&compared, &judge, whole).into())
}

/// The snapshots of the providers, and those that were left out because they have no key.
fn take_snapshots(
    args: &CompareTableArgs,
    contract: Option<&ContractFile>,
    suite: &ProbeSuite,
) -> Result<(Vec<Snapshot>, Vec<String>), CliError> {
    if let Some(contract) = contract {
        let wanted =
            |it: &&Provider| args.providers.is_empty() || args.providers.contains(&it.name);
        let providers = contract.providers.iter().filter(wanted).cloned();
        let providers = providers.map(|it| {
            let (model, url) = (
                option_of(&args.models, &it.name),
                option_of(&args.base_urls, &it.name),
            );
            it.with_overrides(model, url)
        });
        return ask(providers.collect(), suite, args);
    }
    let mut names: Vec<String> = args.providers.clone();
    if names.is_empty() && args.snapshots.is_empty() {
        names = FIXTURES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        names.sort();
    }
    let mut providers = Vec::new();
    for name in &names {
        let (model, url) = (
            option_of(&args.models, name),
            option_of(&args.base_urls, name),
        );
        providers.push(Provider::resolve(name, model, url).map_err(ProbeError::Provider)?);
    }
    if !args.from_fixtures {
        return ask(providers, suite, args);
    }
    let (mut taken, mut left_out) = (Vec::new(), Vec::new());
    for provider in providers {
        let name = provider.name.clone();
        // A provider without an answer leaves a column out, not the table.
        match run_suite::bundled_fixture(&name) {
            Ok(body) => {
                let model = option_of(&args.models, &name);
                taken.push(run_suite::snapshot_from_fixture(
                    provider, suite, model, body,
                )?);
            }
            Err(error) => {
                print_status(&format!("skip {name}: {error}"));
                left_out.push(name);
            }
        }
    }
    Ok((taken, left_out))
}

fn ask(
    providers: Vec<Provider>,
    suite: &ProbeSuite,
    args: &CompareTableArgs,
) -> Result<(Vec<Snapshot>, Vec<String>), CliError> {
    let (usable, mut left_out) = run_suite::providers_with_keys(providers);
    if usable.is_empty() && args.snapshots.is_empty() && !left_out.is_empty() {
        // Without any column there is no table, and the missing key is the reason.
        return Err(left_out.swap_remove(0).1.into());
    }
    let mut names = Vec::new();
    for (name, error) in left_out {
        print_status(&format!("skip {}: {error}", escape_controls(&name)));
        names.push(name);
    }
    if usable.is_empty() {
        return Ok((Vec::new(), names));
    }
    Ok((run_suite::run_providers(usable, suite, &args.ask)?, names))
}

/// The value for a provider: `NAME=VALUE`, else a value without a name.
fn option_of<'a>(values: &'a [String], name: &str) -> Option<&'a str> {
    let named = values.iter().find_map(|it| {
        let (of, value) = it.split_once('=')?;
        (of == name).then_some(value)
    });
    let is_named = |it: &&String| {
        let before = it.split_once('=').map(|(before, _)| before);
        before.is_some_and(|it| !it.contains(['/', ':']))
    };
    named.or_else(|| values.iter().find(|it| !is_named(it)).map(String::as_str))
}

/// Compares every column with the first, as `run` and `diff` do. What was not measured is compared with
/// nothing.
fn compare_with_first(
    columns: &[VersionedSnapshot],
    judge: &JudgeArgs,
) -> Result<Vec<ProbeComparison>, ProbeError> {
    let mut measured = columns.iter().filter(|it| as_tooldrift(it).is_some());
    let Some(first) = measured.next() else {
        return Ok(Vec::new());
    };
    measured
        .map(|it| comparison::compare_snapshots(first, it, judge))
        .collect()
}

fn as_tooldrift(column: &VersionedSnapshot) -> Option<TooldriftSnapshot> {
    match column {
        VersionedSnapshot::V1(one) => Some(one.clone()),
        VersionedSnapshot::V2(two) => two.to_tooldrift(),
    }
}

fn is_measured(column: &VersionedSnapshot) -> bool {
    match column {
        VersionedSnapshot::V1(_) => true,
        VersionedSnapshot::V2(two) => all_measured(two),
    }
}

fn suite_of(column: &VersionedSnapshot) -> &str {
    match column {
        VersionedSnapshot::V1(one) => &one.suite,
        VersionedSnapshot::V2(two) => &two.suite,
    }
}

/// The verdict of each column that is shown: the same that `run` comes to.
fn verdict_rows(columns: &[VersionedSnapshot], compared: &[ProbeComparison]) -> Vec<String> {
    let shown = columns
        .iter()
        .filter(|it| as_tooldrift(it).is_some())
        .count();
    let first = (shown > 0).then(|| "baseline".to_owned());
    let others = compared
        .iter()
        .map(|it| match (it.max_severity(), it.verdict) {
            (Some(Severity::Breaking), _) | (_, Verdict::Drift) => "✗ breaking".to_owned(),
            (_, Verdict::NotMeasured) => "? inconclusive".to_owned(),
            (Some(Severity::Warning), _) => "✓ with warnings".to_owned(),
            _ => "✓ equivalent".to_owned(),
        });
    first.into_iter().chain(others).collect()
}

/// What breaks in each column, as `run` reports it.
fn breaking_list(compared: &[ProbeComparison]) -> String {
    let mut out = String::new();
    for it in compared {
        let breaking = it.changes.iter();
        let breaking: Vec<_> = breaking
            .filter(|change| change.severity() == Severity::Breaking)
            .collect();
        if breaking.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "What breaks from `{}` to `{}`:\n\n",
            cell(&it.old),
            cell(&it.new)
        ));
        for change in breaking.iter().take(MAX_LISTED) {
            let tool = change.tool.as_deref().unwrap_or("replies");
            out.push_str(&format!(
                "- **{}** {}: {} → {}\n",
                cell(tool),
                cell(format!("{} {}", change.evidence.rule, change.pointer.as_str()).trim_end()),
                cell(&change.before_text()),
                cell(&change.after_text()),
            ));
        }
        if breaking.len() > MAX_LISTED {
            out.push_str(&format!("- and {} more\n", breaking.len() - MAX_LISTED));
        }
        out.push('\n');
    }
    out
}

/// The providers without a column.
fn left(left_out: &[String]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let names: Vec<String> = left_out
        .iter()
        .map(|it| format!("`{}`", cell(it)))
        .collect();
    format!(
        "Left out, because there is no key or no answer: {}.\n\n",
        names.join(", ")
    )
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

fn markdown(suite: &str, columns: &[TooldriftSnapshot], verdicts: Option<&[String]>) -> String {
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
    if let (Some(verdicts), Some(first)) = (verdicts, names.first()) {
        out.push_str(&format!(
            "| **verdict** | against `{first}` | {} |\n",
            verdicts.join(" | ")
        ));
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
    escape_controls(text).replace('|', "\\|")
}

fn tools_of(snapshot: &TooldriftSnapshot) -> Value {
    let document: Value = serde_json::from_str(&snapshot.to_text()).unwrap_or_default();
    document.get("tools").cloned().unwrap_or_default()
}

fn json(
    suite: &str,
    columns: &[VersionedSnapshot],
    compared: &[ProbeComparison],
    left_out: &[String],
) -> String {
    let providers: Vec<Value> = columns
        .iter()
        .map(|it| match it {
            VersionedSnapshot::V1(one) => json!({
                "provider": one.provider,
                "model_id": one.model_id,
                "measured": null,
                "planned": null,
                "tools": tools_of(one),
            }),
            VersionedSnapshot::V2(it) => json!({
                "provider": it.provider,
                "model_id": it.model_id,
                "measured": it.trials.measured,
                "planned": it.trials.planned,
                "tools": it.to_document().get("tooldrift"),
            }),
        })
        .collect();
    let comparisons: Vec<Value> = compared.iter().map(json_document::comparison).collect();
    let document = json!({
        "schema": "toolwarden/probe/table/v1",
        "suite": suite,
        "providers": providers,
        "comparisons": comparisons,
        "left_out": left_out,
    });
    format!("{document:#}\n")
}
