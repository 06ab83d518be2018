use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_drift::text::Weight;
use toolwarden_drift::{ChangeClass, ToolwatchChangeType};
use toolwarden_model::Severity;

/// An alert that was just raised.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchAlert {
    /// Its id.
    pub id: String,
    /// The server.
    pub server: String,
    /// The variant of clients that the server offers it to; `None` for all.
    pub variant: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its severity.
    pub severity: Severity,
    /// Its most severe class.
    pub class: ChangeClass,
    /// The kind of drift.
    pub change_type: ToolwatchChangeType,
    /// Its summary, as a printable line.
    pub summary: String,
    /// The time.
    pub at: Timestamp,
    /// The full drift.
    pub drift: Value,
}

/// A finding in the text of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFinding {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The rule that found it.
    pub rule: &'static str,
    /// How strong the evidence is on its own.
    pub weight: Weight,
    /// The finding, as a printable line.
    pub excerpt: String,
    /// The time.
    pub at: Timestamp,
}

/// The counters of the watch.
#[derive(Debug, Default)]
pub struct WatchCounters {
    lists_checked: AtomicU64,
    cache_hits: AtomicU64,
    results_read: AtomicU64,
    results_dropped: AtomicU64,
    results_unreadable: AtomicU64,
    failures: AtomicU64,
}

impl WatchCounters {
    /// Lists that were compared with their pins.
    #[must_use]
    pub fn lists_checked(&self) -> u64 {
        self.lists_checked.load(Ordering::Relaxed)
    }

    /// Lists that were answered from the cache.
    #[must_use]
    pub fn cache_hits(&self) -> u64 {
        self.cache_hits.load(Ordering::Relaxed)
    }

    /// Results that were read.
    #[must_use]
    pub fn results_read(&self) -> u64 {
        self.results_read.load(Ordering::Relaxed)
    }

    /// Results that were dropped because the queue was full.
    #[must_use]
    pub fn results_dropped(&self) -> u64 {
        self.results_dropped.load(Ordering::Relaxed)
    }

    /// Results that could not be parsed.
    #[must_use]
    pub fn results_unreadable(&self) -> u64 {
        self.results_unreadable.load(Ordering::Relaxed)
    }

    /// How often something could not be stored.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, figure: WatchCounter) {
        let counter = match figure {
            WatchCounter::ListChecked => &self.lists_checked,
            WatchCounter::CacheHit => &self.cache_hits,
            WatchCounter::ResultRead => &self.results_read,
            WatchCounter::ResultDropped => &self.results_dropped,
            WatchCounter::ResultUnreadable => &self.results_unreadable,
            WatchCounter::Failure => &self.failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
pub(super) enum WatchCounter {
    ListChecked,
    CacheHit,
    ResultRead,
    ResultDropped,
    ResultUnreadable,
    Failure,
}
