//! All that changes in the life of a server, under one lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolwarden_mcp::{McpError, Secrets, ServerDescription};
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
    pub(super) description: Option<Arc<ServerDescription>>,
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
