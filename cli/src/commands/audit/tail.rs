use std::time::Duration;

use toolwarden_store::{RecordFilter, Store};

use super::live::{Interrupt, runtime};
use super::sheet::Sheet;
use super::{list, query, store};
use crate::args::{AuditTailArgs, LineFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_millis(250);

pub(super) fn run(args: &AuditTailArgs) -> Result<Verdict, CliError> {
    let mut tail = Tail::new(args)?;
    if args.follow {
        runtime()?.block_on(tail.follow())?;
        return Ok(Verdict::Fine);
    }
    tail.show()?;
    if tail.sheet.finish()? == 0 && args.lines > 0 && args.format == LineFormat::Text {
        print(list::nothing(&tail.store)?)?;
    }
    Ok(Verdict::Fine)
}

struct Tail {
    store: Store,
    sheet: Sheet,
    /// What comes next.
    filter: RecordFilter,
}

impl Tail {
    fn new(args: &AuditTailArgs) -> Result<Self, CliError> {
        let store = store(&args.kept)?;
        let filter = query::filter(&args.records);
        Ok(Self {
            filter: query::newest(&store, filter, args.lines)?,
            sheet: Sheet::open(args.format.into(), None)?,
            store,
        })
    }

    /// Shows what comes next. What is removed before it was shown is passed over.
    fn show(&mut self) -> Result<(), CliError> {
        // Read first: records that come later are looked at the next time.
        let mut last = self.store.audit_head()?.seq;
        if self.filter.after_seq.is_some_and(|after| after >= last) {
            return Ok(());
        }
        query::each(&self.store, &self.filter, |row| {
            last = last.max(row.seq);
            self.sheet.push(row)
        })?;
        self.filter.after_seq = Some(last);
        self.sheet.flush()
    }

    async fn follow(&mut self) -> Result<(), CliError> {
        let mut interrupt = Interrupt::new()?;
        loop {
            // A log in another place would never say anything again.
            self.store.require_place()?;
            self.show()?;
            tokio::select! {
                _ = interrupt.came() => return Ok(()),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }
}
