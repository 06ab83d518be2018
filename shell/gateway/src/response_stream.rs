//! Messages that reach an agent before the response to its request.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most messages that wait for an agent to read them, and the most bytes if more than one waits.
const MAX_QUEUED_MESSAGES: usize = 256;
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// The most bytes of responses that wait for an agent that does not read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// The sending half of an agent's message stream, used while it waits for a response. Each message is the
/// text of one JSON-RPC message.
#[derive(Debug)]
pub struct AgentSender(Option<Arc<AgentChannel>>);

/// The receiving half of an outlet.
#[derive(Debug)]
pub struct AgentReceiver(Arc<AgentChannel>);

/// Every request has one and almost none uses it, so it allocates nothing until it is used. The channels of
/// the runtime allocate room for the first messages up front.
#[derive(Debug, Default)]
struct AgentChannel {
    queue: Mutex<MessageQueue>,
    senders: AtomicUsize,
    is_receiver_gone: AtomicBool,
    /// The server responds with a stream, so the agent gets one, too.
    streamed: AtomicBool,
    /// Wakes the writer of the stream when the server ended its own stream before the response.
    interrupted: Notify,
    message_ready: Notify,
}

/// Messages that an agent has not read yet.
#[derive(Debug, Default)]
struct MessageQueue {
    messages: VecDeque<String>,
    bytes: usize,
}

impl MessageQueue {
    /// Whether one more message may wait. If none waits, it may have any size.
    fn has_room(&self, message: &str, most: usize) -> bool {
        self.messages.is_empty() || self.bytes + message.len() <= most
    }
}

impl AgentSender {
    /// An outlet and its receiving half.
    #[must_use]
    pub fn channel() -> (Self, AgentReceiver) {
        let pipe = Arc::<AgentChannel>::default();
        pipe.senders.store(1, Ordering::Relaxed);
        (Self(Some(Arc::clone(&pipe))), AgentReceiver(pipe))
    }

    /// An outlet for an agent that accepts only the response.
    #[must_use]
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Sends a message, unless the reader is gone or too many messages wait. Returns whether it was accepted.
    pub fn send(&self, message: String) -> bool {
        self.enqueue(message, |waiting, message| {
            waiting.has_room(message, MAX_QUEUED_BYTES)
                && waiting.messages.len() < MAX_QUEUED_MESSAGES
        })
    }

    /// Sends a response, unless the reader is gone. Each request has exactly one response and nothing replaces
    /// it, so more bytes may wait than for other messages.
    pub fn answer(&self, message: String) -> bool {
        self.enqueue(message, |waiting, message| {
            waiting.has_room(message, MAX_RESPONSE_BYTES)
        })
    }

    fn enqueue(&self, message: String, fits: fn(&MessageQueue, &str) -> bool) -> bool {
        let Some(pipe) = self.0.as_ref().filter(|_| self.is_open()) else {
            return false;
        };
        let mut waiting = pipe.lock_queue();
        if !fits(&waiting, &message) {
            return false;
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        drop(waiting);
        pipe.message_ready.notify_one();
        true
    }

    /// Makes the gateway send the response as a stream, as the server did.
    pub fn mark_streamed(&self) {
        if let Some(pipe) = &self.0 {
            pipe.streamed.store(true, Ordering::Release);
            pipe.message_ready.notify_one();
        }
    }

    /// Ends the stream before the response, as the server ended its own; the agent resumes it.
    pub fn mark_interrupted(&self) {
        if let Some(pipe) = &self.0 {
            pipe.interrupted.notify_one();
        }
    }

    /// Whether a reader exists.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let pipe = self.0.as_ref();
        pipe.is_some_and(|pipe| !pipe.is_receiver_gone.load(Ordering::Acquire))
    }
}

impl Clone for AgentSender {
    fn clone(&self) -> Self {
        if let Some(pipe) = &self.0 {
            pipe.senders.fetch_add(1, Ordering::Relaxed);
        }
        Self(self.0.clone())
    }
}

impl Drop for AgentSender {
    fn drop(&mut self) {
        if let Some(pipe) = &self.0
            && pipe.senders.fetch_sub(1, Ordering::AcqRel) == 1
        {
            pipe.message_ready.notify_one();
        }
    }
}

impl AgentReceiver {
    /// The receiving half for an agent that accepts only the response.
    #[must_use]
    pub fn closed() -> Self {
        Self(Arc::default())
    }

    /// Resolves when the server ends its stream before the response. The future can be awaited in another task.
    pub fn interruption(&self) -> impl Future<Output = ()> + use<> {
        let pipe = Arc::clone(&self.0);
        async move { pipe.interrupted.notified().await }
    }

    /// Waits until a stream must begin: for the first message, which it returns, or, if the stream follows the
    /// server's, because the server responds with one.
    pub async fn begun(&mut self, follows_server: bool) -> Option<String> {
        loop {
            if let Some(message) = self.try_recv() {
                return Some(message);
            }
            if follows_server && self.is_streamed() {
                return None;
            }
            self.0.message_ready.notified().await;
        }
    }

    /// The next message; `None` when all senders are gone.
    pub async fn recv(&mut self) -> Option<String> {
        loop {
            // Read before the messages: a sender leaves only after it has sent its last message.
            let is_over = self.0.senders.load(Ordering::Acquire) == 0;
            if let Some(message) = self.try_recv() {
                return Some(message);
            }
            if is_over {
                return None;
            }
            self.0.message_ready.notified().await;
        }
    }

    /// Whether the server responded with a stream.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.0.streamed.load(Ordering::Acquire)
    }

    /// The next message, if one waits.
    pub fn try_recv(&mut self) -> Option<String> {
        let mut waiting = self.0.lock_queue();
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        Some(message)
    }
}

impl Drop for AgentReceiver {
    fn drop(&mut self) {
        self.0.is_receiver_gone.store(true, Ordering::Release);
    }
}

impl AgentChannel {
    fn lock_queue(&self) -> MutexGuard<'_, MessageQueue> {
        // A message is added or removed in one step, so the queue is consistent after a panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_arrive_in_order_until_the_last_sender_is_dropped() {
        let (outlet, mut interim) = AgentSender::channel();
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
        assert_eq!(AgentReceiver::closed().recv().await, None);
    }

    #[test]
    fn a_full_queue_refuses_messages() {
        let (outlet, mut interim) = AgentSender::channel();
        for number in 0..MAX_QUEUED_MESSAGES {
            assert!(outlet.send(number.to_string()));
        }
        assert!(!outlet.send("too many".to_owned()));
        assert!(outlet.answer("an answer".to_owned()));
        while interim.try_recv().is_some() {}
        let large = "x".repeat(MAX_QUEUED_BYTES);
        assert!(outlet.send(large.clone() + "any size, while none waits"));
        assert!(!outlet.send("too large".to_owned()));
        assert!(outlet.answer("an answer".to_owned()));
        while interim.try_recv().is_some() {}
        let answers = "x".repeat(MAX_RESPONSE_BYTES);
        assert!(outlet.answer(answers));
        assert!(!outlet.answer("more than any agent will read".to_owned()));
        while interim.try_recv().is_some() {}
        assert!(outlet.send(large));
        drop(interim);
        assert!(!outlet.is_open() && !outlet.send(String::new()) && !outlet.answer(String::new()));
        assert!(!AgentSender::closed().send(String::new()));
    }
}
