//! All that changes in the life of a server, under one lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolwarden_mcp::{Era, EraPreference, McpError, Secrets, ServerDescription};
use toolwarden_warden::settings::ServerSettings;

use super::backoff::Backoff;
use super::breaker::Breaker;
use super::held::HeldLink;
use super::opening::Attempt;
use super::{BreakerStatus, Health, LastError, LinkKey};

/// How long a server that cannot be used is not tried again, however often it is asked for.
const AFTER_PERMANENT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Life {
    pub(super) slots: BTreeMap<LinkKey, Slot>,
    pub(super) breaker: Breaker,
    pub(super) backoff: Backoff,
    /// Why it cannot be used, and when it is tried again.
    pub(super) failed: Option<(Arc<McpError>, Instant)>,
    /// Why the last link could not be opened.
    pub(super) unreachable: Option<Arc<McpError>>,
    /// What the server said of itself over the main link.
    pub(super) description: Option<Arc<ServerDescription>>,
    /// Whether a server whose main link is stateless speaks the handshake era, too; none while that was
    /// not tried.
    pub(super) handshake: Option<HandshakeSupport>,
    /// Whether the last request failed.
    pub(super) troubled: bool,
    pub(super) restarts: u64,
    pub(super) last_error: Option<LastError>,
    /// What no error may tell.
    secrets: Secrets,
    pub(super) health: Health,
    pub(super) since: Timestamp,
    pub(super) closed: bool,
    attempts: u64,
}

/// Whether a server speaks the handshake era beside the stateless one.
#[derive(Clone, Debug)]
pub(super) enum HandshakeSupport {
    /// It does, and describes itself so.
    Spoken(Arc<ServerDescription>),
    /// It refused the handshake, or an attempt failed.
    Refused {
        /// When it is tried again; none where it refused for good.
        until: Option<Instant>,
    },
}

/// What there is for a key.
#[derive(Debug)]
pub(super) enum Slot {
    Opening(Attempt),
    Open(Arc<HeldLink>),
    /// One was open and ended by itself.
    Lost,
}

impl Life {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            slots: BTreeMap::new(),
            breaker: Breaker::new(settings.breaker),
            backoff: Backoff::new(settings.restart),
            failed: None,
            unreachable: None,
            description: None,
            handshake: None,
            troubled: false,
            restarts: 0,
            last_error: None,
            secrets: Secrets::of(&settings.endpoint),
            health: Health::Idle,
            since: Timestamp::now(),
            closed: false,
            attempts: 0,
        }
    }

    /// A number no other attempt has.
    pub(super) const fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    pub(super) fn open_links(&self) -> impl Iterator<Item = &Arc<HeldLink>> {
        self.slots.values().filter_map(|slot| match slot {
            Slot::Open(held) => Some(held),
            Slot::Opening(_) | Slot::Lost => None,
        })
    }

    /// Whether this very link is the one of its key.
    pub(super) fn has(&self, held: &Arc<HeldLink>) -> bool {
        matches!(self.slots.get(held.key()), Some(Slot::Open(open)) if Arc::ptr_eq(open, held))
    }

    /// The idle link that was not used for the longest time. The main link comes last, whatever its age.
    pub(super) fn oldest_idle(&self, but: &LinkKey) -> Option<Arc<HeldLink>> {
        self.open_links()
            .filter(|held| held.key() != but && held.is_idle())
            .min_by_key(|held| (*held.key() == LinkKey::Main, held.last_used()))
            .cloned()
    }

    /// Whether a link of this key would find out that a stateless server speaks the handshake era, too.
    pub(super) fn is_handshake_attempt(&self, key: &LinkKey) -> bool {
        let main_era = self.description.as_ref().map(|it| it.era);
        let is_known = matches!(self.handshake, Some(HandshakeSupport::Spoken(_)));
        *key != LinkKey::Main && main_era == Some(Era::Stateless) && !is_known
    }

    /// Notes what a server said of itself over a new link.
    pub(super) fn describe(
        &mut self,
        key: &LinkKey,
        preference: EraPreference,
        said: ServerDescription,
    ) {
        let era = said.era;
        let said = Arc::new(said);
        let is_main = *key == LinkKey::Main;
        let main_era = self.description.as_ref().map(|it| it.era);
        // What servers tell models is checked as the main link says it, so that no other link replaces it.
        if is_main || main_era.is_none() {
            self.description = Some(Arc::clone(&said));
        }
        if is_main {
            // Another version of the server may speak other eras.
            self.handshake = None;
        }
        match era {
            Era::Handshake if !is_main => self.handshake = Some(HandshakeSupport::Spoken(said)),
            Era::Handshake => {}
            // A stateless link is not preferred here, so that the handshake was refused.
            Era::Stateless if !is_main || preference == EraPreference::Handshake => {
                self.handshake = Some(HandshakeSupport::Refused { until: None });
            }
            Era::Stateless => {}
        }
    }

    pub(super) fn note_permanent(&mut self, error: Arc<McpError>, now: Instant) {
        self.note_error(&error);
        self.failed = Some((error, now + AFTER_PERMANENT));
    }

    pub(super) fn note_error(&mut self, error: &dyn fmt::Display) {
        self.last_error = Some(LastError {
            at: Timestamp::now(),
            text: self.secrets.hidden(error.to_string()),
        });
    }

    /// Finds out how the server fares; says whether that is news.
    pub(super) fn reassess(&mut self) -> bool {
        let health = self.assessed();
        if health == self.health {
            return false;
        }
        self.health = health;
        self.since = Timestamp::now();
        true
    }

    fn assessed(&self) -> Health {
        if self.closed {
            return Health::Closed;
        }
        if let BreakerStatus::Open { .. } = self.breaker.status(Instant::now()) {
            return Health::Down;
        }
        if self.open_links().next().is_some() {
            let well = self.breaker.is_closed() && !self.troubled && self.failed.is_none();
            return if well { Health::Up } else { Health::Degraded };
        }
        if self.failed.is_some() {
            return Health::Failed;
        }
        let lost = matches!(self.slots.get(&LinkKey::Main), Some(Slot::Lost));
        if self.unreachable.is_some() || lost {
            return Health::Down;
        }
        let opening = |slot: &Slot| matches!(slot, Slot::Opening(_));
        if self.slots.values().any(opening) {
            Health::Starting
        } else {
            Health::Idle
        }
    }
}
