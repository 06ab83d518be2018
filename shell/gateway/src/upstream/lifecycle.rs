//! The mutable status of a server, under one lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolwarden_mcp::{Era, EraPreference, McpError, Secrets, ServerDescription};
use toolwarden_settings::ServerSettings;

use super::backoff::Backoff;
use super::breaker::CircuitBreaker;
use super::connect::ConnectAttempt;
use super::open_link::OpenLink;
use super::{BreakerStatus, LastUpstreamError, LinkKey, UpstreamHealth};

/// How long a server that cannot be used is not tried again, however many requests arrive.
const PERMANENT_RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Lifecycle {
    pub(super) slots: BTreeMap<LinkKey, LinkSlot>,
    pub(super) breaker: CircuitBreaker,
    pub(super) backoff: Backoff,
    /// Why the server cannot be used, and when it is tried again.
    pub(super) permanent_failure: Option<(Arc<McpError>, Instant)>,
    /// Why the last link could not be opened.
    pub(super) last_connect_error: Option<Arc<McpError>>,
    /// How the server described itself over the main link.
    pub(super) description: Option<Arc<ServerDescription>>,
    /// Whether a server whose main link is stateless also speaks the handshake era; `None` until that was tried.
    pub(super) handshake: Option<HandshakeSupport>,
    /// Whether the last request failed.
    pub(super) last_request_failed: bool,
    pub(super) restarts: u64,
    pub(super) last_error: Option<LastUpstreamError>,
    /// Secrets that errors must not reveal.
    secrets: Secrets,
    pub(super) health: UpstreamHealth,
    pub(super) since: Timestamp,
    pub(super) closed: bool,
    attempts: u64,
}

/// Whether a server speaks the handshake era in addition to the stateless one.
#[derive(Clone, Debug)]
pub(super) enum HandshakeSupport {
    /// It does, with this description.
    Supported(Arc<ServerDescription>),
    /// It refused the handshake, or an attempt failed.
    Refused {
        /// When it is tried again; `None` if the server refused permanently.
        until: Option<Instant>,
    },
}

/// The link of a key, or the attempt to open it.
#[derive(Debug)]
pub(super) enum LinkSlot {
    Opening(ConnectAttempt),
    Open(Arc<OpenLink>),
    /// A link was open and ended on its own.
    Lost,
}

impl Lifecycle {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            slots: BTreeMap::new(),
            breaker: CircuitBreaker::new(settings.breaker),
            backoff: Backoff::new(settings.restart),
            permanent_failure: None,
            last_connect_error: None,
            description: None,
            handshake: None,
            last_request_failed: false,
            restarts: 0,
            last_error: None,
            secrets: settings.endpoint.secrets(),
            health: UpstreamHealth::Idle,
            since: Timestamp::now(),
            closed: false,
            attempts: 0,
        }
    }

    /// A unique number for an attempt.
    pub(super) const fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    pub(super) fn open_links(&self) -> impl Iterator<Item = &Arc<OpenLink>> {
        self.slots.values().filter_map(|slot| match slot {
            LinkSlot::Open(open_link) => Some(open_link),
            LinkSlot::Opening(_) | LinkSlot::Lost => None,
        })
    }

    /// Whether this link is the current one of its key.
    pub(super) fn is_current(&self, open_link: &Arc<OpenLink>) -> bool {
        matches!(self.slots.get(open_link.key()), Some(LinkSlot::Open(open)) if Arc::ptr_eq(open, open_link))
    }

    /// The idle link that was unused for the longest time. The main link comes last, whatever its age.
    pub(super) fn oldest_idle(&self, but: &LinkKey) -> Option<Arc<OpenLink>> {
        self.open_links()
            .filter(|open_link| open_link.key() != but && open_link.is_idle())
            .min_by_key(|open_link| (*open_link.key() == LinkKey::Main, open_link.last_used()))
            .cloned()
    }

    /// Whether opening a link of this key would show if a stateless server also speaks the handshake era.
    pub(super) fn is_handshake_attempt(&self, key: &LinkKey) -> bool {
        let main_era = self.description.as_ref().map(|it| it.era);
        let is_known = matches!(self.handshake, Some(HandshakeSupport::Supported(_)));
        *key != LinkKey::Main && main_era == Some(Era::Stateless) && !is_known
    }

    /// Stores how a server described itself over a new link.
    pub(super) fn record_description(
        &mut self,
        key: &LinkKey,
        preference: EraPreference,
        said: ServerDescription,
    ) {
        let era = said.era;
        let said = Arc::new(said);
        let is_main = *key == LinkKey::Main;
        let main_era = self.description.as_ref().map(|it| it.era);
        // The watch checks the instructions that the main link returned, so no other link may replace them.
        if is_main || main_era.is_none() {
            self.description = Some(Arc::clone(&said));
        }
        if is_main {
            // Another version of the server may speak other eras.
            self.handshake = None;
        }
        match era {
            Era::Handshake if !is_main => self.handshake = Some(HandshakeSupport::Supported(said)),
            Era::Handshake => {}
            // A stateless link was not preferred here, so the server refused the handshake.
            Era::Stateless if !is_main || preference == EraPreference::Handshake => {
                self.handshake = Some(HandshakeSupport::Refused { until: None });
            }
            Era::Stateless => {}
        }
    }

    pub(super) fn record_permanent_failure(&mut self, error: Arc<McpError>, now: Instant) {
        self.record_error(&error);
        self.permanent_failure = Some((error, now + PERMANENT_RETRY_AFTER));
    }

    pub(super) fn record_error(&mut self, error: &dyn fmt::Display) {
        self.last_error = Some(LastUpstreamError {
            at: Timestamp::now(),
            text: self.secrets.mask(error.to_string()),
        });
    }

    /// Recomputes the health of the server; returns whether it changed.
    pub(super) fn update_health(&mut self) -> bool {
        let health = self.compute_health();
        if health == self.health {
            return false;
        }
        self.health = health;
        self.since = Timestamp::now();
        true
    }

    fn compute_health(&self) -> UpstreamHealth {
        if self.closed {
            return UpstreamHealth::Closed;
        }
        if let BreakerStatus::Open { .. } = self.breaker.status(Instant::now()) {
            return UpstreamHealth::Down;
        }
        if self.open_links().next().is_some() {
            let well = self.breaker.is_closed()
                && !self.last_request_failed
                && self.permanent_failure.is_none();
            return if well {
                UpstreamHealth::Up
            } else {
                UpstreamHealth::Degraded
            };
        }
        if self.permanent_failure.is_some() {
            return UpstreamHealth::Failed;
        }
        let lost = matches!(self.slots.get(&LinkKey::Main), Some(LinkSlot::Lost));
        if self.last_connect_error.is_some() || lost {
            return UpstreamHealth::Down;
        }
        let connect_request = |slot: &LinkSlot| matches!(slot, LinkSlot::Opening(_));
        if self.slots.values().any(connect_request) {
            UpstreamHealth::Starting
        } else {
            UpstreamHealth::Idle
        }
    }
}
