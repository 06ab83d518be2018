//! How much a server may send without being asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::audience::FromServer;
use crate::limits::Limits;

/// The time over which messages are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Counts the notifications and requests of one connection. A server that sends more than it may is
/// disconnected: to drop messages in silence would lose those that matter.
#[derive(Debug)]
pub(crate) struct FloodGate {
    messages: usize,
    bytes: usize,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    messages: usize,
    bytes: usize,
}

/// The server sent too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flooded;

impl FloodGate {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            messages: limits.messages_per_minute,
            bytes: limits.bytes_per_minute,
            window: Mutex::new(Window {
                began: Instant::now(),
                messages: 0,
                bytes: 0,
            }),
        }
    }

    /// Counts a message.
    pub(crate) fn admit(&self, message: &FromServer) -> Result<(), Flooded> {
        let (FromServer::Notification { method, params }
        | FromServer::Request { method, params, .. }) = message;
        let id = match message {
            FromServer::Request { id, .. } => id.get().len(),
            FromServer::Notification { .. } => 0,
        };
        let bytes = method.len() + id + params.as_ref().map_or(0, |it| it.get().len());
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now.duration_since(window.began) >= WINDOW {
            *window = Window {
                began: now,
                messages: 0,
                bytes: 0,
            };
        }
        window.messages = window.messages.saturating_add(1);
        window.bytes = window.bytes.saturating_add(bytes);
        if window.messages > self.messages || window.bytes > self.bytes {
            return Err(Flooded);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_their_bytes_are_bounded() {
        let message = |bytes: usize| FromServer::Notification {
            method: "m".repeat(bytes),
            params: None,
        };
        let gate = FloodGate::new(&Limits {
            messages_per_minute: 2,
            bytes_per_minute: 100,
            ..Limits::default()
        });
        assert_eq!(gate.admit(&message(1)), Ok(()));
        assert_eq!(gate.admit(&message(99)), Ok(()));
        assert_eq!(gate.admit(&message(0)), Err(Flooded));
        let gate = FloodGate::new(&Limits {
            bytes_per_minute: 100,
            ..Limits::default()
        });
        assert_eq!(gate.admit(&message(101)), Err(Flooded));
    }
}
