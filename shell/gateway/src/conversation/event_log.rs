//! Events of one stream, kept for a while so that an agent can resume after a lost connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most events that a stream keeps, and their most bytes.
const MAX_EVENTS: usize = 1_024;
const MAX_BYTES: usize = 4 << 20;

/// The messages of one stream in order; the latest of them are kept.
#[derive(Debug, Default)]
pub struct EventLog {
    inner: Mutex<Inner>,
    changed: Notify,
    /// The budget it shares with the other streams of its conversation.
    budget: Option<ReplayBudget>,
}

/// The bytes that the streams of one conversation keep together.
#[derive(Clone, Debug)]
pub(super) struct ReplayBudget {
    pub(super) used: Arc<AtomicUsize>,
    pub(super) limit: usize,
}

impl ReplayBudget {
    pub(super) fn is_over(&self) -> bool {
        self.used.load(Ordering::Acquire) > self.limit
    }
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<StreamEvent>,
    bytes: usize,
    /// The number of the newest event.
    newest: u64,
    ended: bool,
}

/// One message and its position in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    /// Its number, from one.
    pub number: u64,
    /// The text of the message.
    pub text: Arc<str>,
}

impl EventLog {
    /// An empty log that shares a budget with other logs.
    pub(super) fn with_budget(budget: ReplayBudget) -> Self {
        let mut log = Self::default();
        log.budget = Some(budget);
        log
    }

    /// Whether the stream has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    fn is_over_budget(&self) -> bool {
        self.budget.as_ref().is_some_and(ReplayBudget::is_over)
    }

    fn add_used(&self, bytes: usize) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_add(bytes, Ordering::AcqRel);
        }
    }

    fn release_bytes(&self, bytes: usize) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Adds a message.
    pub fn push(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        let mut inner = self.lock();
        inner.newest += 1;
        inner.bytes += text.len();
        self.add_used(text.len());
        let number = inner.newest;
        inner.events.push_back(StreamEvent { number, text });
        // The newest event is kept, whatever its size.
        while inner.events.len() > 1
            && (inner.events.len() > MAX_EVENTS || inner.bytes > MAX_BYTES || self.is_over_budget())
        {
            let gone = inner.events.pop_front();
            let gone = gone.map_or(0, |event| event.text.len());
            inner.bytes -= gone;
            self.release_bytes(gone);
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Adds a message if there is one.
    pub fn extend(&self, text: Option<String>) {
        if let Some(text) = text {
            self.push(text);
        }
    }

    /// Ends the stream.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// The number of the newest event.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// Waits for the first event after a number; `None` when the stream has ended.
    pub async fn next_after(&self, number: u64) -> Option<StreamEvent> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let inner = self.lock();
                let next = inner.events.iter().find(|event| event.number > number);
                if let Some(event) = next {
                    return Some(event.clone());
                }
                if inner.ended {
                    return None;
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is made in one step, so the log is consistent after a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.release_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_go_on_where_they_were() {
        let log = Arc::new(EventLog::default());
        log.push("a");
        log.push("b");
        assert_eq!(&*log.next_after(1).await.unwrap().text, "b");
        let reader = tokio::spawn({
            let log = Arc::clone(&log);
            async move { (log.next_after(2).await, log.next_after(3).await) }
        });
        tokio::task::yield_now().await;
        log.push("c");
        log.end();
        let (third, end) = reader.await.unwrap();
        assert_eq!(third.unwrap().number, 3);
        assert_eq!(end, None);
    }

    #[tokio::test]
    async fn streams_share_a_budget() {
        let budget = ReplayBudget {
            used: Arc::default(),
            limit: 10,
        };
        let (one, two) = (
            EventLog::with_budget(budget.clone()),
            EventLog::with_budget(budget.clone()),
        );
        one.push("12345678");
        two.push("1");
        two.push("2");
        two.push("3");
        assert_eq!(two.next_after(0).await.unwrap().number, 2);
        drop(one);
        two.push("4");
        assert_eq!(two.next_after(0).await.unwrap().number, 2);
        drop(two);
        assert_eq!(budget.used.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn old_events_make_room() {
        let log = EventLog::default();
        for at in 0..MAX_EVENTS + 5 {
            log.push(at.to_string());
        }
        assert_eq!(log.next_after(0).await.unwrap().number, 6);
        log.push("x".repeat(MAX_BYTES + 1));
        let kept = log.next_after(0).await.unwrap();
        assert_eq!(kept.number, log.newest());
    }
}
