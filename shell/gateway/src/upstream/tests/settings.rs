use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use toolwarden_mcp::Endpoint;
use toolwarden_settings::{
    BreakerSettings, RestartSettings, ServerSettings, SessionSharing, StartMode, Timeouts,
};

/// Settings short enough for failures to show quickly, of a server that starts when it is needed.
pub(super) fn settings(endpoint: Endpoint) -> ServerSettings {
    ServerSettings {
        start: StartMode::Lazy,
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            start: Duration::from_secs(20),
            request: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            list: Duration::from_secs(10),
        },
        restart: RestartSettings {
            first: Duration::from_secs(20),
            max_delay: Duration::from_secs(20),
        },
        breaker: BreakerSettings {
            failures: number(100),
            pause: Duration::from_millis(500),
        },
        ..ServerSettings::new("s", endpoint)
    }
}

pub(super) fn shared(endpoint: Endpoint) -> ServerSettings {
    ServerSettings {
        sessions: SessionSharing::Shared,
        ..settings(endpoint)
    }
}

pub(super) const fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

pub(super) fn key(name: &str) -> crate::upstream::LinkKey {
    crate::upstream::LinkKey::Conversation(Arc::from(name))
}
