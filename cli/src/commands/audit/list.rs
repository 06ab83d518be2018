use toolwarden_store::Store;

use super::sheet::Sheet;
use super::{query, store};
use crate::args::{AuditListArgs, RecordFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};

pub(super) fn run(args: &AuditListArgs) -> Result<Verdict, CliError> {
    let store = store(&args.kept)?;
    let mut filter = query::filter(&args.records);
    if args.limit > 0 {
        filter = query::newest(&store, filter, args.limit)?;
    }
    let mut sheet = Sheet::open(args.format, None)?;
    query::each(&store, &filter, |row| sheet.push(row))?;
    let shown = sheet.finish()?;
    if shown == 0 && args.format == RecordFormat::Text {
        print(nothing(&store)?)?;
    }
    Ok(Verdict::Fine)
}

/// Why there is nothing to show.
pub(super) fn nothing(store: &Store) -> Result<&'static str, CliError> {
    Ok(match store.audit_head()?.seq {
        0 => "No records: nothing was decided with this store yet.\n",
        _ => "No record matches.\n",
    })
}
