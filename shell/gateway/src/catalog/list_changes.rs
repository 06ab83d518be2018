//! Coalesces list changes that arrive faster than the gateway can handle them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::list_kind::ListKind;
use crate::upstream::LinkKey;

/// A list change: the link and the kind of list.
pub(crate) type ChangedList = (LinkKey, ListKind);

/// The changes that are being handled. A change that arrives meanwhile is handled once more afterwards, however
/// often it arrives.
#[derive(Debug, Default)]
pub(crate) struct PendingListChanges {
    open: Mutex<BTreeMap<ChangedList, RepeatedChange>>,
}

/// Whether a change arrived again while it was handled.
#[derive(Debug, PartialEq, Eq)]
enum RepeatedChange {
    No,
    Yes,
}

impl PendingListChanges {
    /// Begins to handle a change. Returns false if it is already being handled; it is then handled once more.
    pub(crate) fn begin(&self, change: &ChangedList) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(change) {
            Some(again) => {
                *again = RepeatedChange::Yes;
                false
            }
            None => {
                open.insert(change.clone(), RepeatedChange::No);
                true
            }
        }
    }

    /// Forgets a change, for a task that ends early.
    pub(crate) fn abandon(&self, change: &ChangedList) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(change);
    }

    /// Ends the handling of a change; returns whether it arrived again and must be handled once more.
    pub(crate) fn end(&self, change: &ChangedList) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(change) {
            Some(again) if *again == RepeatedChange::Yes => {
                *again = RepeatedChange::No;
                true
            }
            Some(_) | None => {
                open.remove(change);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_are_one_more() {
        let changes = PendingListChanges::default();
        let tools = (LinkKey::Main, ListKind::Tools);
        assert!(changes.begin(&tools));
        for _ in 0..1_000 {
            assert!(!changes.begin(&tools));
        }
        assert!(changes.begin(&(LinkKey::Main, ListKind::Prompts)));
        assert!(changes.end(&tools));
        assert!(!changes.end(&tools));
        assert!(changes.begin(&tools));
    }
}
