//! News of a server that come faster than anything can be done about them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::kind::Kind;
use crate::upstream::LinkKey;

/// Which news: over which link a list of a kind changed.
pub(crate) type ChangedList = (LinkKey, Kind);

/// The changes that are being dealt with. A change that comes meanwhile is dealt with once more afterwards,
/// however often it comes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    open: Mutex<BTreeMap<ChangedList, Again>>,
}

/// Whether a change came while it was dealt with.
#[derive(Debug, PartialEq, Eq)]
enum Again {
    No,
    Yes,
}

impl Changes {
    /// Begins to deal with a change; not so where that is under way, and is then repeated.
    pub(crate) fn begin(&self, change: &ChangedList) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(change) {
            Some(again) => {
                *again = Again::Yes;
                false
            }
            None => {
                open.insert(change.clone(), Again::No);
                true
            }
        }
    }

    /// Forgets that a change is dealt with, for a task that ends before its time.
    pub(crate) fn abandon(&self, change: &ChangedList) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(change);
    }

    /// Ends dealing with a change; says whether it came again meanwhile and goes on.
    pub(crate) fn end(&self, change: &ChangedList) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(change) {
            Some(again) if *again == Again::Yes => {
                *again = Again::No;
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
        let changes = Changes::default();
        let tools = (LinkKey::Main, Kind::Tools);
        assert!(changes.begin(&tools));
        for _ in 0..1_000 {
            assert!(!changes.begin(&tools));
        }
        assert!(changes.begin(&(LinkKey::Main, Kind::Prompts)));
        assert!(changes.end(&tools));
        assert!(!changes.end(&tools));
        assert!(changes.begin(&tools));
    }
}
