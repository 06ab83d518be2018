//! What reaches an agent before the answer to its request.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most messages that wait for an agent to read them, and the most bytes of more than one.
const WAITING: usize = 256;
const WAITING_BYTES: usize = 4 << 20;
/// The most bytes of answers that wait for an agent that does not read.
const ANSWER_BYTES: usize = 64 << 20;

/// Where messages for an agent go while it waits for an answer. Each is the text of one JSON-RPC message.
#[derive(Debug)]
pub struct Outlet(Option<Arc<Pipe>>);

/// What comes out of an outlet.
#[derive(Debug)]
pub struct Interim(Arc<Pipe>);

/// Every request has one, and nearly none uses it, so that it costs nothing until it is used. The
/// channels of the runtime make room for the first messages beforehand.
#[derive(Debug, Default)]
struct Pipe {
    messages: Mutex<Waiting>,
    outlets: AtomicUsize,
    unread: AtomicBool,
    /// The server answers by a stream, so that the agent gets one, too.
    streamed: AtomicBool,
    /// Wakes the writer of the stream when the server ended its own before the answer.
    interrupted: Notify,
    news: Notify,
}

/// Messages that an agent has not read yet.
#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<String>,
    bytes: usize,
}

impl Waiting {
    /// Whether one more message may wait. Where none does, it may have any size.
    fn has_room(&self, message: &str, most: usize) -> bool {
        self.messages.is_empty() || self.bytes + message.len() <= most
    }
}

impl Outlet {
    /// An outlet and what comes out of it.
    #[must_use]
    pub fn channel() -> (Self, Interim) {
        let pipe = Arc::<Pipe>::default();
        pipe.outlets.store(1, Ordering::Relaxed);
        (Self(Some(Arc::clone(&pipe))), Interim(pipe))
    }

    /// Of an agent that takes nothing but the answer.
    #[must_use]
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Sends a message, unless nobody reads or too much waits. Says whether it was taken.
    pub fn send(&self, message: String) -> bool {
        self.put(message, |waiting, message| {
            waiting.has_room(message, WAITING_BYTES) && waiting.messages.len() < WAITING
        })
    }

    /// Sends an answer, unless nobody reads. There is one for each request and nothing in its place, so
    /// that much may wait.
    pub fn answer(&self, message: String) -> bool {
        self.put(message, |waiting, message| {
            waiting.has_room(message, ANSWER_BYTES)
        })
    }

    fn put(&self, message: String, fits: fn(&Waiting, &str) -> bool) -> bool {
        let Some(pipe) = self.0.as_ref().filter(|_| self.is_open()) else {
            return false;
        };
        let mut waiting = pipe.waiting();
        if !fits(&waiting, &message) {
            return false;
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        drop(waiting);
        pipe.news.notify_one();
        true
    }

    /// Has the answer sent as a stream, as the server sent it.
    pub fn mark_streamed(&self) {
        if let Some(pipe) = &self.0 {
            pipe.streamed.store(true, Ordering::Release);
            pipe.news.notify_one();
        }
    }

    /// Has the stream ended before the answer, as the server ended its own; the agent resumes it.
    pub fn mark_interrupted(&self) {
        if let Some(pipe) = &self.0 {
            pipe.interrupted.notify_one();
        }
    }

    /// Whether somebody reads.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let pipe = self.0.as_ref();
        pipe.is_some_and(|pipe| !pipe.unread.load(Ordering::Acquire))
    }
}

impl Clone for Outlet {
    fn clone(&self) -> Self {
        if let Some(pipe) = &self.0 {
            pipe.outlets.fetch_add(1, Ordering::Relaxed);
        }
        Self(self.0.clone())
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if let Some(pipe) = &self.0
            && pipe.outlets.fetch_sub(1, Ordering::AcqRel) == 1
        {
            pipe.news.notify_one();
        }
    }
}

impl Interim {
    /// Of an agent that takes nothing but the answer.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Arc::default())
    }

    /// Resolves when the server ends its stream before the answer, and may be waited for elsewhere.
    pub fn interruption(&self) -> impl Future<Output = ()> + use<> {
        let pipe = Arc::clone(&self.0);
        async move { pipe.interrupted.notified().await }
    }

    /// Waits until a stream is to be begun: for the first message, which it gives, or because the server
    /// answers by a stream.
    pub async fn begun(&mut self) -> Option<String> {
        loop {
            if let Some(message) = self.try_recv() {
                return Some(message);
            }
            if self.is_streamed() {
                return None;
            }
            self.0.news.notified().await;
        }
    }

    /// The next message; none when nobody can send any more.
    pub async fn recv(&mut self) -> Option<String> {
        loop {
            // Read before the messages: whoever sends the last one leaves after it.
            let is_over = self.0.outlets.load(Ordering::Acquire) == 0;
            if let Some(message) = self.try_recv() {
                return Some(message);
            }
            if is_over {
                return None;
            }
            self.0.news.notified().await;
        }
    }

    /// Whether the server answered by a stream.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.0.streamed.load(Ordering::Acquire)
    }

    /// The next message, if there is one.
    pub fn try_recv(&mut self) -> Option<String> {
        let mut waiting = self.0.waiting();
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        Some(message)
    }
}

impl Drop for Interim {
    fn drop(&mut self) {
        self.0.unread.store(true, Ordering::Release);
    }
}

impl Pipe {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // A message is added or taken in one step, so what a panic leaves behind is whole.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_in_order_until_nobody_can_send() {
        let (outlet, mut interim) = Outlet::channel();
        assert!(outlet.send("1".to_owned()));
        let other = outlet.clone();
        let late = tokio::spawn(async move {
            tokio::task::yield_now().await;
            assert!(other.send("2".to_owned()));
            drop(outlet);
        });
        assert_eq!(interim.recv().await.as_deref(), Some("1"));
        assert_eq!(interim.try_recv(), None);
        assert_eq!(interim.recv().await.as_deref(), Some("2"));
        assert_eq!(interim.recv().await, None);
        late.await.unwrap();
        assert_eq!(Interim::nothing().recv().await, None);
    }

    #[test]
    fn what_nobody_reads_is_not_taken() {
        let (outlet, mut interim) = Outlet::channel();
        for number in 0..WAITING {
            assert!(outlet.send(number.to_string()));
        }
        assert!(!outlet.send("too many".to_owned()));
        assert!(outlet.answer("an answer".to_owned()));
        while interim.try_recv().is_some() {}
        let large = "x".repeat(WAITING_BYTES);
        assert!(outlet.send(large.clone() + "any size, while none waits"));
        assert!(!outlet.send("too large".to_owned()));
        assert!(outlet.answer("an answer".to_owned()));
        while interim.try_recv().is_some() {}
        let answers = "x".repeat(ANSWER_BYTES);
        assert!(outlet.answer(answers));
        assert!(!outlet.answer("more than anybody will read".to_owned()));
        while interim.try_recv().is_some() {}
        assert!(outlet.send(large));
        drop(interim);
        assert!(!outlet.is_open() && !outlet.send(String::new()) && !outlet.answer(String::new()));
        assert!(!Outlet::closed().send(String::new()));
    }
}
