mod alerts;
mod approve;
mod baseline;
mod check;
mod comparison;
mod daemon;
mod diff;
mod findings;
mod import;
mod info_notes;
mod json_document;
pub(super) mod live_servers;
mod lock;
mod markdown;
mod marked_words;
mod new_tool_warnings;
mod observe;
mod read_tools;
mod recorded_calls;
mod report;
mod report_locations;
mod responses;
mod rule_info;
mod scan;
mod show_pins;
mod sources;
pub(super) mod store_path;
mod text_layout;
mod text_report;

use sources::WatchSource;

use crate::args::{StoreArgs, WatchCommand, is_toolwatch};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

pub(super) fn run(command: &WatchCommand) -> Result<CommandOutcome, CliError> {
    if let Some((kept, compat)) = uses_store(command) {
        import::import_on_first_use(kept, compat || is_toolwatch())?;
    }
    match command {
        WatchCommand::Baseline(args) => baseline::run(args),
        WatchCommand::Check(args) => check::run(args),
        WatchCommand::Approve(args) => approve::run(args),
        WatchCommand::Alerts(args) => alerts::run(args),
        WatchCommand::List(args) => show_pins::list(args),
        WatchCommand::Show(args) => show_pins::show(args),
        WatchCommand::History(args) => show_pins::history(args),
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
