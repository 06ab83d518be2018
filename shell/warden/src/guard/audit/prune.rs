use toolwarden_guard::audit::{Link, checkpoint};
use toolwarden_store::{Cut, Removal, Store, StoreError};

use super::row;

/// Removes the oldest records and records that; none if there is nothing to remove.
///
/// The log is not verified: whoever wants to know whether what is removed was intact does that first.
///
/// # Errors
/// The store cannot be written; then nothing was removed.
pub fn prune(
    store: &Store,
    cut: Cut,
    now_ms: i64,
    by: &str,
) -> Result<Option<Removal>, StoreError> {
    store.remove_records(cut, |appender, removal| {
        let last = Link {
            seq: removal.through,
            hash: removal.hash,
        };
        let content = checkpoint(last, now_ms, by);
        row::append(appender, content.borrow())?;
        Ok(())
    })
}
