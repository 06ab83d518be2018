use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_drift::text::Weight;
use toolwarden_drift::{ChangeType, Class, Severity};

/// An alert that was raised just now.
#[derive(Clone, Debug, PartialEq)]
pub struct RaisedNotice {
    /// Its id.
    pub id: String,
    /// The server.
    pub server: String,
    /// The variant of clients that the server offers it to; none for all.
    pub variant: Option<String>,
    /// The tool.
    pub tool: String,
    /// How grave it is.
    pub severity: Severity,
    /// The gravest class.
    pub class: Class,
    /// What kind of drift it is.
    pub change_type: ChangeType,
    /// What it is about, in a line that can be printed.
    pub summary: String,
    /// When.
    pub at: Timestamp,
    /// Everything about it.
    pub drift: Value,
}

/// Something that the text of a result carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFinding {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The rule that found it.
    pub rule: &'static str,
    /// How much it says on its own.
    pub weight: Weight,
    /// What was found, in a line that can be printed.
    pub excerpt: String,
    /// When.
    pub at: Timestamp,
}

/// What the watch did so far.
#[derive(Debug, Default)]
pub struct Figures {
    judged: AtomicU64,
    known: AtomicU64,
    taken: AtomicU64,
    dropped: AtomicU64,
    unreadable: AtomicU64,
    failures: AtomicU64,
}

impl Figures {
    /// Lists that were held to their pins.
    #[must_use]
    pub fn judged(&self) -> u64 {
        self.judged.load(Ordering::Relaxed)
    }

    /// Lists whose answer was known.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// Results that were taken in.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Results that were dropped because too many waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Results that nobody could read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Times something could not be kept.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, figure: Figure) {
        let counter = match figure {
            Figure::Judged => &self.judged,
            Figure::Known => &self.known,
            Figure::Taken => &self.taken,
            Figure::Dropped => &self.dropped,
            Figure::Unreadable => &self.unreadable,
            Figure::Failure => &self.failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
pub(super) enum Figure {
    Judged,
    Known,
    Taken,
    Dropped,
    Unreadable,
    Failure,
}
