//! What connections to the gateway may cost.

use std::num::NonZeroU32;
use std::time::Duration;

/// What connections to the gateway may cost. A connection is authenticated once one of its requests was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// The most connections at a time.
    pub connections: NonZeroU32,
    /// The most connections of one address at a time.
    pub per_address: NonZeroU32,
    /// The most connections of one principal at a time.
    pub per_principal: NonZeroU32,
    /// The most connections at a time that are not authenticated; a newer one closes the oldest.
    pub unauthenticated: NonZeroU32,
    /// The most of them from one address; a newer one closes the oldest of that address.
    pub unauthenticated_per_address: NonZeroU32,
    /// How long a connection may take to be authenticated.
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
            // Clients keep connections for a minute or more, and do not like to find them closed.
            idle: Duration::from_secs(120),
            body_within: Duration::from_secs(30),
        }
    }
}
