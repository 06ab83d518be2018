use std::collections::VecDeque;
use std::num::NonZeroUsize;
#[cfg(feature = "store")]
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use toolwarden_guard::Durability;
#[cfg(feature = "store")]
use toolwarden_guard::Guard;
#[cfg(feature = "store")]
use toolwarden_store::StoreError;

use super::audit::{AuditError, Ticket};
#[cfg(feature = "store")]
use super::audit::{AuditHealth, AuditOptions, AuditWriter, StoreUsage};
use super::log_entry::LogEntry;

/// The log that records entries.
#[derive(Clone, Debug)]
pub enum AuditLog {
    /// In memory, the latest entries only.
    Recent(Arc<RecentLog>),
    /// In a store, hash-chained.
    #[cfg(feature = "store")]
    Stored(Arc<AuditWriter<LogEntry>>),
}

/// The latest entries, in memory.
#[derive(Debug)]
pub struct RecentLog {
    entries: Mutex<VecDeque<LogEntry>>,
    capacity: NonZeroUsize,
}

impl AuditLog {
    /// A log in memory of the default size.
    #[must_use]
    pub fn recent() -> Self {
        Self::Recent(Arc::default())
    }

    /// A log in a store, with the durability that the policy of a guard sets.
    ///
    /// # Errors
    /// The store cannot be used.
    #[cfg(feature = "store")]
    pub fn open_store(path: &Path, guard: &Guard) -> Result<Self, StoreError> {
        let options = AuditOptions::new(guard.audit().durability);
        Ok(Self::Stored(Arc::new(AuditWriter::open(path, options)?)))
    }

    /// The durability of recorded entries; `None` for a log in memory.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        match self {
            Self::Recent(_) => None,
            #[cfg(feature = "store")]
            Self::Stored(writer) => Some(writer.durability()),
        }
    }

    /// The status of the writer; `None` for a log in memory.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn health(&self) -> Option<AuditHealth> {
        match self {
            Self::Recent(_) => None,
            Self::Stored(writer) => Some(writer.health()),
        }
    }

    /// Sets the maximum size of the store in bytes; it has no effect on a log in memory.
    #[cfg(feature = "store")]
    pub fn set_quota(&self, bytes: u64) {
        if let Self::Stored(writer) = self {
            writer.set_quota(bytes);
        }
    }

    /// How much of its quota the store uses; `None` for a log in memory.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn usage(&self) -> Option<StoreUsage> {
        match self {
            Self::Recent(_) => None,
            Self::Stored(writer) => Some(writer.usage()),
        }
    }

    /// Starts recording an entry; the ticket completes when the entry is as durable as required.
    pub(super) fn append(&self, entry: LogEntry) -> Result<Ticket, AuditError> {
        match self {
            Self::Recent(log) => {
                log.append(entry);
                Ok(Ticket::completed())
            }
            #[cfg(feature = "store")]
            Self::Stored(writer) => writer.begin(entry),
        }
    }

    /// From now on [`Self::append`] never waits for a disk.
    pub(super) fn never_block(&self) {
        #[cfg(feature = "store")]
        if let Self::Stored(writer) = self {
            writer.never_block();
        }
    }

    pub(super) fn append_and_wait(&self, entry: LogEntry) -> Result<(), AuditError> {
        match self {
            Self::Recent(log) => {
                log.append(entry);
                Ok(())
            }
            #[cfg(feature = "store")]
            Self::Stored(writer) => writer.submit(entry),
        }
    }
}

impl Default for RecentLog {
    fn default() -> Self {
        Self::with_capacity(const { NonZeroUsize::new(10_000).unwrap() })
    }
}

impl RecentLog {
    /// A log that keeps at most this many entries and drops the oldest.
    #[must_use]
    pub fn with_capacity(capacity: NonZeroUsize) -> Self {
        Self {
            entries: Mutex::default(),
            capacity,
        }
    }

    /// Adds an entry.
    pub fn append(&self, entry: LogEntry) {
        let mut entries = self.entries();
        let forgotten = if entries.len() == self.capacity.get() {
            entries.pop_front()
        } else {
            None
        };
        entries.push_back(entry);
        drop(entries);
        // The old entries are dropped outside the lock, so that other threads do not wait.
        drop(forgotten);
    }

    /// Every entry, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<LogEntry> {
        self.entries().iter().cloned().collect()
    }

    /// Entries at or after a time.
    #[must_use]
    pub fn since(&self, time: Timestamp) -> Vec<LogEntry> {
        // Entries have a resolution of milliseconds, so one in the same millisecond is included.
        self.filtered(|entry| entry.at_ms >= time.as_millisecond())
    }

    /// Entries of a tool.
    #[must_use]
    pub fn for_tool(&self, tool: &str) -> Vec<LogEntry> {
        self.filtered(|entry| entry.tool() == tool)
    }

    /// Entries of a principal.
    #[must_use]
    pub fn for_principal(&self, principal: &str) -> Vec<LogEntry> {
        self.filtered(|entry| entry.principal() == principal)
    }

    /// Denied calls.
    #[must_use]
    pub fn denied(&self) -> Vec<LogEntry> {
        self.filtered(LogEntry::is_denial)
    }

    /// Drops every entry.
    pub fn clear(&self) {
        self.entries().clear();
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether the log is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    fn filtered(&self, keep: impl Fn(&LogEntry) -> bool) -> Vec<LogEntry> {
        self.entries()
            .iter()
            .filter(|it| keep(it))
            .cloned()
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<LogEntry>> {
        // An entry is added atomically, so a panic leaves consistent data behind.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
