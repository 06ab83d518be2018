use toolwarden_store::Store;

use super::record_writer::RecordWriter;
use super::{query, store};
use crate::args::{AuditListArgs, RecordFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;

pub(super) fn run(args: &AuditListArgs) -> Result<CommandOutcome, CliError> {
    let store = store(&args.kept)?;
    let mut filter = query::filter(&args.records);
    if args.limit > 0 {
        filter = query::newest_filter(&store, filter, args.limit)?;
    }
    let mut sheet = RecordWriter::open(args.format, None)?;
    query::each_record(&store, &filter, |row| sheet.push(row))?;
    let shown = sheet.finish()?;
    if shown == 0 && args.format == RecordFormat::Text {
        print_text(empty_reason(&store)?)?;
    }
    Ok(CommandOutcome::Pass)
}

/// Why there is nothing to show.
pub(super) fn empty_reason(store: &Store) -> Result<&'static str, CliError> {
    Ok(match store.audit_head()?.seq {
        0 => "No records: nothing was decided with this store yet.\n",
        _ => "No record matches.\n",
    })
}
