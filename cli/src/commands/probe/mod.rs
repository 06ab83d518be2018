mod compare_table;
mod comparison;
mod dialect;
mod diff;
mod init;
mod json_document;
mod model_report;
mod pin_changes;
mod providers;
mod replay;
mod report;
mod run;
mod run_suite;
mod snapshot;
mod text_report;
mod write_file;

use super::watch::live_servers;
use crate::args::ProbeCommand;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

pub(super) fn run(command: &ProbeCommand) -> Result<CommandOutcome, CliError> {
    match command {
        ProbeCommand::Init(args) => init::run(args),
        ProbeCommand::Snapshot(args) => snapshot::run(args),
        ProbeCommand::Diff(args) => diff::run(args),
        ProbeCommand::Run(args) => run::run(args),
        ProbeCommand::CompareTable(args) => compare_table::run(args),
        ProbeCommand::Report(args) => model_report::run(args),
        ProbeCommand::Providers(args) => providers::run(args),
        ProbeCommand::Replay(args) => replay::run(args),
        ProbeCommand::Dialect(args) => dialect::run(args),
    }
}
