mod csv;
mod export;
mod list;
mod prune;
mod query;
mod record_json;
mod record_lines;
mod record_writer;
mod stats;
mod tail;
mod verify;

use toolwarden_store::Store;

use super::watch::{live_servers, store_path};
use crate::args::{AuditCommand, StoreArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::{AuditCommandError, CliError};

pub(super) fn run(command: &AuditCommand) -> Result<CommandOutcome, CliError> {
    match command {
        AuditCommand::List(args) => list::run(args),
        AuditCommand::Tail(args) => tail::run(args),
        AuditCommand::Verify(args) => verify::run(args),
        AuditCommand::Export(args) => export::run(args),
        AuditCommand::Stats(args) => stats::run(args),
        AuditCommand::Prune(args) => prune::run(args),
    }
}

/// So many records, the last of which has this number, in words.
pub(super) fn records(count: u64, last: u64) -> String {
    match count {
        1 => format!("1 record, {last}"),
        _ => format!(
            "{count} records, {} to {last}",
            (last + 1).saturating_sub(count)
        ),
    }
}

/// The store, which must be there: a log that is gone must not look like an empty one.
pub(super) fn store(args: &StoreArgs) -> Result<Store, CliError> {
    let path = store_path::store_path(args)?;
    let found = Store::open_existing(&path)?;
    Ok(found.ok_or(AuditCommandError::NoStore { path })?)
}
