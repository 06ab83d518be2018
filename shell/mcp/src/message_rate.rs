//! Limits how much a server may send unasked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connection_limits::ConnectionLimits;

/// The window in which messages are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Counts the notifications and requests of one connection. A server that exceeds the limit is
/// disconnected: dropping messages silently would lose important ones.
#[derive(Debug)]
pub(crate) struct MessageRateLimit {
    messages: usize,
    bytes: usize,
    window: Mutex<RateWindow>,
}

#[derive(Debug)]
struct RateWindow {
    start: Instant,
    messages: usize,
    bytes: usize,
}

/// The server exceeded its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageRateExceeded;

impl MessageRateLimit {
    pub(crate) fn new(limits: &ConnectionLimits) -> Self {
        Self {
            messages: limits.messages_per_minute,
            bytes: limits.bytes_per_minute,
            window: Mutex::new(RateWindow {
                start: Instant::now(),
                messages: 0,
                bytes: 0,
            }),
        }
    }

    /// Counts a message of so many bytes against the limit.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), MessageRateExceeded> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now.duration_since(window.start) >= WINDOW {
            *window = RateWindow {
                start: now,
                messages: 0,
                bytes: 0,
            };
        }
        window.messages = window.messages.saturating_add(1);
        window.bytes = window.bytes.saturating_add(bytes);
        if window.messages > self.messages || window.bytes > self.bytes {
            return Err(MessageRateExceeded);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_their_bytes_are_bounded() {
        let gate = MessageRateLimit::new(&ConnectionLimits {
            messages_per_minute: 2,
            bytes_per_minute: 100,
            ..ConnectionLimits::default()
        });
        assert_eq!(gate.admit(1), Ok(()));
        assert_eq!(gate.admit(99), Ok(()));
        assert_eq!(gate.admit(0), Err(MessageRateExceeded));
        let gate = MessageRateLimit::new(&ConnectionLimits {
            bytes_per_minute: 100,
            ..ConnectionLimits::default()
        });
        assert_eq!(gate.admit(101), Err(MessageRateExceeded));
    }
}
