mod calls;
mod diff;
mod document;
mod findings;
mod observe;
mod scan;
mod screen;

use crate::args::WatchCommand;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(command: &WatchCommand) -> Result<Verdict, CliError> {
    match command {
        WatchCommand::Diff(args) => diff::run(args),
        WatchCommand::Scan(args) => scan::run(args),
    }
}
