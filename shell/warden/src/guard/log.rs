use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use toolwarden_guard::{Durability, Guard};
use toolwarden_store::StoreError;

use super::audit::{AuditError, AuditOptions, AuditWriter, Health, StoreUsage, Ticket};
use super::entry::Entry;

/// Where entries are put down.
#[derive(Clone, Debug)]
pub enum Log {
    /// In memory, the latest only.
    Recent(Arc<RecentLog>),
    /// In a store, chained.
    Kept(Arc<AuditWriter<Entry>>),
}

/// The latest entries, in memory.
#[derive(Debug)]
pub struct RecentLog {
    entries: Mutex<VecDeque<Entry>>,
    most: NonZeroUsize,
}

impl Log {
    /// A log in memory of the usual size.
    #[must_use]
    pub fn recent() -> Self {
        Self::Recent(Arc::default())
    }

    /// A log in a store, as durable as the policy of a guard asks for.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn kept(path: &Path, guard: &Guard) -> Result<Self, StoreError> {
        let options = AuditOptions::new(guard.audit().durability);
        Ok(Self::Kept(Arc::new(AuditWriter::open(path, options)?)))
    }

    /// What entries have survived once they are put down; none for a log in memory.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        match self {
            Self::Recent(_) => None,
            Self::Kept(writer) => Some(writer.durability()),
        }
    }

    /// How the writer of a log in a store is; none for a log in memory.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        match self {
            Self::Recent(_) => None,
            Self::Kept(writer) => Some(writer.health()),
        }
    }

    /// How many bytes the store of a log may take; nothing for a log in memory.
    pub fn set_quota(&self, bytes: u64) {
        if let Self::Kept(writer) = self {
            writer.set_quota(bytes);
        }
    }

    /// How much the store of a log takes; none for a log in memory.
    #[must_use]
    pub fn usage(&self) -> Option<StoreUsage> {
        match self {
            Self::Recent(_) => None,
            Self::Kept(writer) => Some(writer.usage()),
        }
    }

    /// Puts an entry down; the ticket tells when it is as safe as the durability asks for.
    pub(super) fn begin(&self, entry: Entry) -> Result<Ticket, AuditError> {
        match self {
            Self::Recent(log) => {
                log.append(entry);
                Ok(Ticket::settled())
            }
            Self::Kept(writer) => writer.begin(entry),
        }
    }

    /// From now on [`Self::begin`] never waits for a disk.
    pub(super) fn never_block(&self) {
        if let Self::Kept(writer) = self {
            writer.never_block();
        }
    }

    pub(super) fn put_down(&self, entry: Entry) -> Result<(), AuditError> {
        match self {
            Self::Recent(log) => {
                log.append(entry);
                Ok(())
            }
            Self::Kept(writer) => writer.submit(entry),
        }
    }
}

impl Default for RecentLog {
    fn default() -> Self {
        Self::holding(const { NonZeroUsize::new(10_000).unwrap() })
    }
}

impl RecentLog {
    /// A log that forgets the oldest entries beyond so many.
    #[must_use]
    pub fn holding(most: NonZeroUsize) -> Self {
        Self {
            entries: Mutex::default(),
            most,
        }
    }

    /// Adds an entry.
    pub fn append(&self, entry: Entry) {
        let mut entries = self.entries();
        let forgotten = if entries.len() == self.most.get() {
            entries.pop_front()
        } else {
            None
        };
        entries.push_back(entry);
        drop(entries);
        // What is forgotten is taken apart without keeping others waiting.
        drop(forgotten);
    }

    /// Every entry, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Entry> {
        self.entries().iter().cloned().collect()
    }

    /// Entries of a time and after it.
    #[must_use]
    pub fn since(&self, time: Timestamp) -> Vec<Entry> {
        // Entries have milliseconds, so one of the same millisecond counts as not before.
        self.filtered(|entry| entry.at_ms >= time.as_millisecond())
    }

    /// Entries of a tool.
    #[must_use]
    pub fn for_tool(&self, tool: &str) -> Vec<Entry> {
        self.filtered(|entry| entry.tool() == tool)
    }

    /// Entries of a principal.
    #[must_use]
    pub fn for_principal(&self, principal: &str) -> Vec<Entry> {
        self.filtered(|entry| entry.principal() == principal)
    }

    /// Calls that were refused.
    #[must_use]
    pub fn denied(&self) -> Vec<Entry> {
        self.filtered(Entry::is_denial)
    }

    /// Forgets every entry.
    pub fn clear(&self) {
        self.entries().clear();
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    fn filtered(&self, keep: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries()
            .iter()
            .filter(|it| keep(it))
            .cloned()
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        // An entry is added in one step, so what a panic leaves behind is whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
