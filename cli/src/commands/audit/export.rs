use super::record_writer::RecordWriter;
use super::{query, store};
use crate::args::AuditExportArgs;
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;

pub(super) fn run(args: &AuditExportArgs) -> Result<CommandOutcome, CliError> {
    let store = store(&args.kept)?;
    let filter = query::filter(&args.records);
    let mut sheet = RecordWriter::open(args.format.into(), args.output.as_deref())?;
    query::each_record(&store, &filter, |row| sheet.push(row))?;
    let written = sheet.finish()?;
    if let Some(path) = &args.output {
        let word = if written == 1 { "record" } else { "records" };
        print_status(&format!("{written} {word} in {}", path.display()));
    }
    Ok(CommandOutcome::Pass)
}
