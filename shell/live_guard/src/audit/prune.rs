use toolwarden_guard::audit::{ChainLink, checkpoint};
use toolwarden_store::{PruneRange, PrunedRecords, Store, StoreError};

use super::record_row;

/// Removes the oldest records and appends a checkpoint record; `None` if there is nothing to remove.
///
/// It does not verify the log. To know whether the removed records were intact, verify the log first.
///
/// # Errors
/// The store cannot be written; then nothing was removed.
pub fn prune(
    store: &Store,
    cut: PruneRange,
    now_ms: i64,
    by: &str,
) -> Result<Option<PrunedRecords>, StoreError> {
    store.prune_records(cut, |appender, removal| {
        let last = ChainLink {
            seq: removal.through,
            hash: removal.hash,
        };
        let content = checkpoint(last, now_ms, by);
        record_row::append_record(appender, content.borrow())?;
        Ok(())
    })
}
