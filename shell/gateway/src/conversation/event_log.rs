//! Events of one stream, kept for a while so that an agent that lost its connection can go on reading.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most events of a stream that are kept, and the most bytes of them.
const MOST_EVENTS: usize = 1_024;
const MOST_BYTES: usize = 4 << 20;

/// The messages of one stream in order, the latest of them kept.
#[derive(Debug, Default)]
pub struct EventLog {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of the newest event.
    newest: u64,
    ended: bool,
}

/// One message and its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, from one.
    pub number: u64,
    /// The text of the message.
    pub text: Arc<str>,
}

impl EventLog {
    /// Adds a message.
    pub fn push(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        let mut inner = self.lock();
        inner.newest += 1;
        inner.bytes += text.len();
        let number = inner.newest;
        inner.events.push_back(Event { number, text });
        // The newest stays, however large.
        while inner.events.len() > 1
            && (inner.events.len() > MOST_EVENTS || inner.bytes > MOST_BYTES)
        {
            let gone = inner.events.pop_front();
            inner.bytes -= gone.map_or(0, |event| event.text.len());
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Adds a message, where there is one.
    pub fn extend(&self, text: Option<String>) {
        if let Some(text) = text {
            self.push(text);
        }
    }

    /// Says that nothing more comes.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// The number of the newest event.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// The first event after a number, as soon as there is one; none when the stream has ended.
    pub async fn after(&self, number: u64) -> Option<Event> {
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
        // Every change is made in one step, so what a panic leaves behind is whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(&*log.after(1).await.unwrap().text, "b");
        let reader = tokio::spawn({
            let log = Arc::clone(&log);
            async move { (log.after(2).await, log.after(3).await) }
        });
        tokio::task::yield_now().await;
        log.push("c");
        log.end();
        let (third, end) = reader.await.unwrap();
        assert_eq!(third.unwrap().number, 3);
        assert_eq!(end, None);
    }

    #[tokio::test]
    async fn old_events_make_room() {
        let log = EventLog::default();
        for at in 0..MOST_EVENTS + 5 {
            log.push(at.to_string());
        }
        assert_eq!(log.after(0).await.unwrap().number, 6);
        log.push("x".repeat(MOST_BYTES + 1));
        let kept = log.after(0).await.unwrap();
        assert_eq!(kept.number, log.newest());
    }
}
