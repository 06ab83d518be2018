//! Which records are wanted, and reading them one by one.

use std::ops::ControlFlow;

use toolwarden_store::{RecordFilter, RecordRow, Store};

use super::store_path;
use crate::args::{RecordArgs, RecordFilterArgs};
use crate::error::CliError;

pub(super) fn filter(args: &RecordArgs) -> RecordFilter {
    RecordFilter {
        code: args.code.clone(),
        kind: args.kind.clone(),
        ..subject_filter(&args.about)
    }
}

pub(super) fn subject_filter(args: &RecordFilterArgs) -> RecordFilter {
    let now = store_path::now();
    RecordFilter {
        since_ms: args.since.map(|it| it.time(now).as_millisecond()),
        until_ms: args.until.map(|it| it.time(now).as_millisecond()),
        tool: args.tool.clone(),
        principal: args.principal.clone(),
        session: args.session.clone(),
        denied: args.denied,
        ..RecordFilter::default()
    }
}

/// Runs over the wanted records until one cannot be taken.
pub(super) fn each_record(
    store: &Store,
    filter: &RecordFilter,
    mut take: impl FnMut(&RecordRow<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut failure = None;
    store.records(filter, |row| match take(row) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// Narrows a filter to so many of the newest records it lets through, which then come oldest first
/// without being held in memory.
pub(super) fn newest_filter(
    store: &Store,
    filter: RecordFilter,
    count: u64,
) -> Result<RecordFilter, CliError> {
    // Read first, so that nothing that is written meanwhile is passed over.
    let head = store.audit_head()?.seq;
    let mut oldest = None;
    let backwards = RecordFilter {
        limit: Some(count),
        newest_first: true,
        ..filter.clone()
    };
    each_record(store, &backwards, |row| {
        oldest = Some(row.seq);
        Ok(())
    })?;
    Ok(RecordFilter {
        after_seq: Some(oldest.map_or(head, |seq| seq.saturating_sub(1))),
        ..filter
    })
}
