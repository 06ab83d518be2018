//! Connection limits of the gateway.

use std::num::NonZeroU32;
use std::time::Duration;

/// Connection limits of the gateway. A connection counts as authenticated after one of its requests was
/// authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// The maximum number of concurrent connections.
    pub connections: NonZeroU32,
    /// The maximum number of concurrent connections from one address.
    pub per_address: NonZeroU32,
    /// The maximum number of concurrent connections of one principal.
    pub per_principal: NonZeroU32,
    /// The maximum number of concurrent unauthenticated connections; a new one closes the oldest.
    pub unauthenticated: NonZeroU32,
    /// The maximum number of unauthenticated connections from one address; a new one closes the oldest of
    /// that address.
    pub unauthenticated_per_address: NonZeroU32,
    /// How long a connection may take to authenticate.
    pub authenticate_within: Duration,
    /// How long an authenticated connection may be idle between requests.
    pub idle: Duration,
    /// How long the body of a request may take.
    pub body_within: Duration,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            connections: const { NonZeroU32::new(16_384).unwrap() },
            per_address: const { NonZeroU32::new(8_192).unwrap() },
            per_principal: const { NonZeroU32::new(4_096).unwrap() },
            unauthenticated: const { NonZeroU32::new(1_024).unwrap() },
            unauthenticated_per_address: const { NonZeroU32::new(512).unwrap() },
            authenticate_within: Duration::from_secs(10),
            // Clients reuse connections for a minute or more, and a closed one causes errors.
            idle: Duration::from_secs(120),
            body_within: Duration::from_secs(30),
        }
    }
}
