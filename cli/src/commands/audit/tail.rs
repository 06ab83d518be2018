use std::time::Duration;

use toolwarden_store::{RecordFilter, Store};

use super::live_servers::{Interrupt, runtime};
use super::record_writer::RecordWriter;
use super::{list, query, store};
use crate::args::{AuditTailArgs, LineFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;

/// How often the log is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

pub(super) fn run(args: &AuditTailArgs) -> Result<CommandOutcome, CliError> {
    let mut tail = LogTail::new(args)?;
    if args.follow {
        runtime()?.block_on(tail.follow())?;
        return Ok(CommandOutcome::Pass);
    }
    tail.show()?;
    if tail.writer.finish()? == 0 && args.lines > 0 && args.format == LineFormat::Text {
        print_text(list::empty_reason(&tail.store)?)?;
    }
    Ok(CommandOutcome::Pass)
}

struct LogTail {
    store: Store,
    writer: RecordWriter,
    /// What comes next.
    filter: RecordFilter,
}

impl LogTail {
    fn new(args: &AuditTailArgs) -> Result<Self, CliError> {
        let store = store(&args.kept)?;
        let filter = query::filter(&args.records);
        Ok(Self {
            filter: query::newest_filter(&store, filter, args.lines)?,
            writer: RecordWriter::open(args.format.into(), None)?,
            store,
        })
    }

    /// Shows what comes next. What is removed before it was shown is passed over.
    fn show(&mut self) -> Result<(), CliError> {
        // Read first: later records are part of the next poll.
        let mut last = self.store.audit_head()?.seq;
        if self.filter.after_seq.is_some_and(|after| after >= last) {
            return Ok(());
        }
        query::each_record(&self.store, &self.filter, |row| {
            last = last.max(row.seq);
            self.writer.push(row)
        })?;
        self.filter.after_seq = Some(last);
        self.writer.flush()
    }

    async fn follow(&mut self) -> Result<(), CliError> {
        let mut interrupt = Interrupt::new()?;
        loop {
            // A log in another place would never say anything again.
            self.store.require_same_file()?;
            self.show()?;
            tokio::select! {
                _ = interrupt.wait() => return Ok(()),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }
}
