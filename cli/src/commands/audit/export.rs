use super::sheet::Sheet;
use super::{query, store};
use crate::args::AuditExportArgs;
use crate::commands::talk::say;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(args: &AuditExportArgs) -> Result<Verdict, CliError> {
    let store = store(&args.kept)?;
    let filter = query::filter(&args.records);
    let mut sheet = Sheet::open(args.format.into(), args.output.as_deref())?;
    query::each(&store, &filter, |row| sheet.push(row))?;
    let written = sheet.finish()?;
    if let Some(path) = &args.output {
        let word = if written == 1 { "record" } else { "records" };
        say(&format!("{written} {word} in {}", path.display()));
    }
    Ok(Verdict::Fine)
}
