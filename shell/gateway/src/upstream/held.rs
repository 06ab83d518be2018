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
    /// Milliseconds from its opening to its last use.
    used: AtomicU64,
    /// Its place among the links of the server, given back when it is closed.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    watcher: OnceLock<OwnedTask>,
}

/// A link that is in use, and is not taken for idle.
#[derive(Debug)]
pub(super) struct Using(Arc<HeldLink>);

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
        Self(Arc::clone(held))
    }

    pub(super) const fn held(&self) -> &Arc<HeldLink> {
        &self.0
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.0.touch();
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
