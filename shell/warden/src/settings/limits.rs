//! How much agents and servers may use of the gateway.

use std::num::NonZeroU32;

/// How much one server may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// The bytes of one list, all pages together.
    pub list_bytes: usize,
    /// The entries of one list.
    pub list_entries: NonZeroU32,
    /// The pages of one list.
    pub list_pages: NonZeroU32,
    /// Notifications and requests over one connection in a minute.
    pub messages_per_minute: NonZeroU32,
    /// The bytes of those.
    pub bytes_per_minute: usize,
    /// Requests over one connection that agents have not answered yet.
    pub open_requests: NonZeroU32,
}

/// How much one conversation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Requests in flight.
    pub requests: NonZeroU32,
    /// Resources it is subscribed to.
    pub subscriptions: NonZeroU32,
    /// The bytes of requests in flight of one principal.
    pub in_flight_bytes: usize,
    /// The bytes of messages that are kept for an agent that lost its connection.
    pub replay_bytes: usize,
}

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 64 << 20,
            list_bytes: 64 << 20,
            list_entries: count(100_000),
            list_pages: count(1_000),
            messages_per_minute: count(60_000),
            bytes_per_minute: 256 << 20,
            open_requests: count(64),
        }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            requests: count(10_000),
            subscriptions: count(1_000),
            in_flight_bytes: 256 << 20,
            replay_bytes: 16 << 20,
        }
    }
}
