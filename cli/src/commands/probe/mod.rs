mod asking;
mod comparing;
mod dialect;
mod diff;
mod document;
mod error;
mod pinning;
mod providers;
mod replay;
mod report;
mod rows;
mod run;
mod screen;
mod snapshot;
mod table;
mod writing;

pub(crate) use error::ProbeError;

use super::watch::live;
use crate::args::ProbeCommand;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(command: &ProbeCommand) -> Result<Verdict, CliError> {
    match command {
        ProbeCommand::Snapshot(args) => snapshot::run(args),
        ProbeCommand::Diff(args) => diff::run(args),
        ProbeCommand::Run(args) => run::run(args),
        ProbeCommand::CompareTable(args) => table::run(args),
        ProbeCommand::Providers(args) => providers::run(args),
        ProbeCommand::Replay(args) => replay::run(args),
        ProbeCommand::Dialect(args) => dialect::run(args),
    }
}
