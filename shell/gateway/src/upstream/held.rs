use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use toolwarden_mcp::{Link, ServerDescription};

use super::LinkKey;
use super::task::OwnedTask;

/// One open link. What is sent over it goes through its [`super::Upstream`], so that no call gets past
/// a permit.
#[derive(Debug)]
pub struct HeldLink {
    key: LinkKey,
    link: Link,
    opened: Instant,
    in_flight: AtomicUsize,
    /// Requests that stay open for as long as anybody listens.
    standing: AtomicUsize,
    /// Milliseconds from its opening to its last use.
    used: AtomicU64,
    /// Its place among the links of the server, given back when it is closed.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    watcher: OnceLock<OwnedTask>,
}

/// A link that is in use.
#[derive(Debug)]
pub(super) struct Using {
    held: Arc<HeldLink>,
    counted: Counted,
}

/// Among what a use of a link is counted.
#[derive(Clone, Copy, Debug)]
enum Counted {
    InFlight,
    Standing,
    Nowhere,
}

impl HeldLink {
    /// Whose it is.
    #[must_use]
    pub const fn key(&self) -> &LinkKey {
        &self.key
    }

    /// What the server said of itself when it was opened.
    #[must_use]
    pub fn server(&self) -> &ServerDescription {
        self.link.server()
    }

    /// Whether messages of the server cannot be told apart by request.
    #[must_use]
    pub fn is_channel(&self) -> bool {
        self.link.is_channel()
    }

    /// Whether it ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.link.has_ended()
    }

    /// The program, where one was started.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.link.pid()
    }

    pub(super) fn new(key: LinkKey, link: Link, place: OwnedSemaphorePermit) -> Self {
        Self {
            key,
            link,
            opened: Instant::now(),
            in_flight: AtomicUsize::new(0),
            standing: AtomicUsize::new(0),
            used: AtomicU64::new(0),
            place: Mutex::new(Some(place)),
            watcher: OnceLock::new(),
        }
    }

    pub(super) const fn link(&self) -> &Link {
        &self.link
    }

    /// The task ends with the link.
    pub(super) fn watched_by(&self, watcher: OwnedTask) {
        // A second watcher would end here, with the value that is refused.
        drop(self.watcher.set(watcher));
    }

    pub(super) fn up(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Whether nobody would miss it.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.standing.load(Ordering::Acquire) == 0
    }

    fn count(&self, counted: Counted) -> Option<&AtomicUsize> {
        match counted {
            Counted::InFlight => Some(&self.in_flight),
            Counted::Standing => Some(&self.standing),
            Counted::Nowhere => None,
        }
    }

    pub(super) fn last_used(&self) -> Instant {
        self.opened + Duration::from_millis(self.used.load(Ordering::Acquire))
    }

    pub(super) fn touch(&self) {
        let millis = u64::try_from(self.up().as_millis()).unwrap_or(u64::MAX);
        self.used.fetch_max(millis, Ordering::AcqRel);
    }

    /// Ends the connection, and gives its place back.
    pub(super) async fn close(&self, limit: Duration) {
        // The link bounds its own end; the limit is for one that does not.
        let _late = tokio::time::timeout(limit, self.link.clone().close()).await;
        self.give_place_back();
    }

    pub(super) fn give_place_back(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = None;
    }
}

impl Using {
    pub(super) fn of(held: &Arc<HeldLink>) -> Self {
        held.in_flight.fetch_add(1, Ordering::AcqRel);
        Self {
            held: Arc::clone(held),
            counted: Counted::InFlight,
        }
    }

    /// Stays for as long as anybody listens: it is no longer among what is under way. Where it does not
    /// keep the link, that is closed as if nobody used it.
    pub(super) fn stand(&mut self, keeps: bool) {
        let counted = if keeps {
            Counted::Standing
        } else {
            Counted::Nowhere
        };
        if let Some(count) = self.held.count(counted) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        let before = std::mem::replace(&mut self.counted, counted);
        self.uncount(before);
    }

    fn uncount(&self, counted: Counted) {
        if let Some(count) = self.held.count(counted) {
            count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) const fn held(&self) -> &Arc<HeldLink> {
        &self.held
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.held.touch();
        self.uncount(self.counted);
    }
}
