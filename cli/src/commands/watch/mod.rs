mod alerts;
mod approve;
mod baseline;
mod calls;
mod check;
mod classes;
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
mod markdown;
mod pinned;
mod places;
mod responses;
mod scan;
mod screen;
mod seen;
mod sources;
mod told;
mod words;

pub(crate) use sources::Source;

use crate::args::{StoreArgs, WatchCommand, is_toolwatch};
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(command: &WatchCommand) -> Result<Verdict, CliError> {
    if let Some((kept, compat)) = uses_store(command) {
        import::at_first_use(kept, compat || is_toolwatch())?;
    }
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

/// The store of a command that reads pins, and whether the command is compatible with toolwatch.
const fn uses_store(command: &WatchCommand) -> Option<(&StoreArgs, bool)> {
    match command {
        WatchCommand::Baseline(args) => Some((&args.pinned.kept, args.compat)),
        WatchCommand::Check(args) if args.lock.is_none() => Some((&args.pinned.kept, args.compat)),
        WatchCommand::Alerts(args) => Some((&args.kept, args.compat)),
        WatchCommand::Approve(args) => Some((&args.kept, false)),
        WatchCommand::List(args) => Some((&args.kept, false)),
        WatchCommand::Show(args) | WatchCommand::History(args) => Some((&args.kept, false)),
        WatchCommand::Check(_)
        | WatchCommand::Lock(_)
        | WatchCommand::Import(_)
        | WatchCommand::Daemon(_)
        | WatchCommand::Diff(_)
        | WatchCommand::Scan(_) => None,
    }
}
