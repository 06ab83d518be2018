mod alerts;
mod approve;
mod baseline;
mod calls;
mod check;
mod columns;
mod comparison;
mod daemon;
mod diff;
mod document;
mod findings;
mod first_sight;
mod import;
pub(super) mod keep;
pub(super) mod live;
mod lock;
mod look;
mod pinned;
mod responses;
mod scan;
mod screen;
mod seen;
mod sources;
mod told;
mod words;

pub(crate) use sources::Source;

use crate::args::WatchCommand;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(command: &WatchCommand) -> Result<Verdict, CliError> {
    match command {
        WatchCommand::Baseline(args) => baseline::run(args),
        WatchCommand::Check(args) => check::run(args),
        WatchCommand::Approve(args) => approve::run(args),
        WatchCommand::Alerts(args) => alerts::run(args),
        WatchCommand::List(args) => pinned::list(args),
        WatchCommand::Show(args) => pinned::show(args),
        WatchCommand::History(args) => pinned::history(args),
        WatchCommand::Lock(args) => lock::run(args),
        WatchCommand::Import(args) => import::run(args),
        WatchCommand::Daemon(args) => daemon::run(args),
        WatchCommand::Diff(args) => diff::run(args),
        WatchCommand::Scan(args) => scan::run(args),
    }
}
