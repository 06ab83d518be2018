//! Resource limits for agents and servers.

use std::num::NonZeroU32;

/// How much one server may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The maximum size of a message, in bytes.
    pub message_bytes: usize,
    /// The maximum size of one list in bytes, all pages together.
    pub list_bytes: usize,
    /// The maximum number of entries in one list.
    pub list_entries: NonZeroU32,
    /// The maximum number of pages of one list.
    pub list_pages: NonZeroU32,
    /// The maximum number of notifications and requests per minute on one connection.
    pub messages_per_minute: NonZeroU32,
    /// The maximum size of those, in bytes.
    pub bytes_per_minute: usize,
    /// The maximum number of requests on one connection that agents have not answered yet.
    pub open_requests: NonZeroU32,
}

/// How much one conversation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// The maximum number of requests in flight.
    pub requests: NonZeroU32,
    /// The maximum number of resource subscriptions.
    pub subscriptions: NonZeroU32,
    /// The maximum size of one principal's requests in flight, in bytes.
    pub in_flight_bytes: usize,
    /// The maximum size of the messages that are kept for an agent that lost its connection, in bytes.
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
