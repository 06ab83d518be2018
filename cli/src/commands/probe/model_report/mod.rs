//! `probe report`: whether each model can be used, tool by tool, on one page.

mod build;
mod evidence;
mod html;
mod json;
mod markdown;
mod page;

use toolwarden_model::did_you_mean;
use toolwarden_probe::{ContractFile, PriceTable, ProbeSuite, Provider, capture};
use toolwarden_trials::{PinnedContract, Snapshot, VersionedSnapshot};

use self::build::ReportInput;
use super::{diff, run_suite, write_file};
use crate::args::{JudgeArgs, ModelReportFormat, ProbeReportArgs, ReportFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, ProbeError};
use crate::output::print_text;

pub(super) fn run(args: &ProbeReportArgs) -> Result<CommandOutcome, CliError> {
    let prices = match &args.prices {
        Some(path) => PriceTable::load(path),
        None => PriceTable::bundled(),
    };
    let prices = prices.map_err(ProbeError::Prices)?;
    let contract = args.contract.as_deref().map(ContractFile::load);
    let contract = contract.transpose().map_err(ProbeError::File)?;
    let snapshots = match &contract {
        Some(contract) if args.snapshots.is_empty() => run_contract(args, contract)?,
        _ => read_snapshots(args)?,
    };
    let mut captures = Vec::new();
    let kept = args.ask.limits.capture.iter();
    for path in args.answers.iter().chain(kept) {
        captures.extend(capture::read(path).map_err(ProbeError::Capture)?);
    }
    let limits = contract.as_ref().map(|it| it.fault_limits.clone());
    let expected: Option<PinnedContract> = contract.and_then(|it| it.expected);
    let judge = JudgeArgs {
        fail_on: args.fail_on,
        allowed_drop: args.allowed_drop,
        compat: None,
        format: ReportFormat::default(),
        looks: None,
    };
    let report = build::build(&ReportInput {
        snapshots: &snapshots,
        expected: expected.as_ref(),
        limits: &limits.unwrap_or_default(),
        judge: &judge,
        captures: &captures,
        prices: &prices,
        command: &command_line(),
        made_at: &format!("{:.0}", jiff::Timestamp::now()),
    })?;
    let text = match args.format {
        ModelReportFormat::Html => html::html(&report),
        ModelReportFormat::Markdown => markdown::markdown(&report),
        ModelReportFormat::Json => json::json(&report),
    };
    match &args.output {
        Some(path) => write_file::write_file(path, &text)?,
        None => print_text(&text)?,
    }
    // The page describes; `probe run` is the gate.
    let measured = snapshots.iter().any(Snapshot::is_measured);
    Ok(CommandOutcome::from_measured(measured))
}

fn read_snapshots(args: &ProbeReportArgs) -> Result<Vec<Snapshot>, ProbeError> {
    let read = args.snapshots.iter().map(|path| match diff::read(path)? {
        VersionedSnapshot::V2(taken) => Ok(taken),
        VersionedSnapshot::V1(_) => Err(ProbeError::NoRates { path: path.clone() }),
    });
    read.collect()
}

fn run_contract(
    args: &ProbeReportArgs,
    contract: &ContractFile,
) -> Result<Vec<Snapshot>, CliError> {
    let names = || contract.providers.iter().map(|it| it.name.as_str());
    let unknown = args
        .base
        .iter()
        .find(|base| !names().any(|it| it == **base));
    if let Some(name) = unknown {
        return Err(CliError::Probe(ProbeError::NotInContract {
            contract: contract.path.clone(),
            name: name.clone(),
            suggestion: did_you_mean(name, names()),
        }));
    }
    let wanted = |it: &&Provider| args.base.is_empty() || args.base.contains(&it.name);
    let providers: Vec<Provider> = contract.providers.iter().filter(wanted).cloned().collect();
    let suite = ProbeSuite::load(&contract.suite).map_err(ProbeError::File)?;
    if !args.from_fixtures {
        return run_suite::run_providers(providers, &suite, &args.ask);
    }
    let taken = providers.into_iter().map(|provider| {
        let body = run_suite::bundled_fixture(&provider.name)?;
        run_suite::snapshot_from_fixture(provider, &suite, None, body)
    });
    Ok(taken.collect::<Result<_, ProbeError>>()?)
}

/// The command of this process, as a shell takes it.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|it| quote(&it));
    let words: Vec<String> = ["toolwarden".to_owned()].into_iter().chain(words).collect();
    words.join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=@%+,".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
