use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use toolwarden_mcp::{ServerConnection, ServerDescription};

use super::LinkKey;
use super::task::OwnedTask;

/// One open link. All messages over it go through its [`super::Upstream`], so that no call bypasses its
/// permit.
#[derive(Debug)]
pub struct OpenLink {
    key: LinkKey,
    link: ServerConnection,
    opened: Instant,
    in_flight: AtomicUsize,
    /// Requests that stay open while an agent listens.
    long_lived: AtomicUsize,
    /// Milliseconds from its opening to its last use.
    last_used: AtomicU64,
    /// Its permit among the links of the server, released when it is closed.
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    watcher: OnceLock<OwnedTask>,
}

/// A link that is in use.
#[derive(Debug)]
pub(super) struct LinkUse {
    open_link: Arc<OpenLink>,
    kind: LinkUseKind,
}

/// Which counter a use of a link belongs to.
#[derive(Clone, Copy, Debug)]
enum LinkUseKind {
    InFlight,
    LongLived,
    Uncounted,
}

impl OpenLink {
    /// Its owner.
    #[must_use]
    pub const fn key(&self) -> &LinkKey {
        &self.key
    }

    /// How the server described itself when the link was opened.
    #[must_use]
    pub fn server(&self) -> &ServerDescription {
        self.link.server()
    }

    /// Whether messages of the server cannot be attributed to a request.
    #[must_use]
    pub fn is_channel(&self) -> bool {
        self.link.has_shared_stream()
    }

    /// Whether it ended on its own.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.link.is_closed()
    }

    /// The process id of the program, if one was started.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.link.pid()
    }

    pub(super) fn new(key: LinkKey, link: ServerConnection, place: OwnedSemaphorePermit) -> Self {
        Self {
            key,
            link,
            opened: Instant::now(),
            in_flight: AtomicUsize::new(0),
            long_lived: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
            slot: Mutex::new(Some(place)),
            watcher: OnceLock::new(),
        }
    }

    pub(super) const fn link(&self) -> &ServerConnection {
        &self.link
    }

    /// Stores the task that watches the link; the task ends with the link.
    pub(super) fn set_watcher(&self, watcher: OwnedTask) {
        // If a watcher is already set, the new one is returned and ends here.
        drop(self.watcher.set(watcher));
    }

    pub(super) fn uptime(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Whether no request uses it.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.long_lived.load(Ordering::Acquire) == 0
    }

    fn count(&self, counted: LinkUseKind) -> Option<&AtomicUsize> {
        match counted {
            LinkUseKind::InFlight => Some(&self.in_flight),
            LinkUseKind::LongLived => Some(&self.long_lived),
            LinkUseKind::Uncounted => None,
        }
    }

    pub(super) fn last_used(&self) -> Instant {
        self.opened + Duration::from_millis(self.last_used.load(Ordering::Acquire))
    }

    pub(super) fn touch(&self) {
        let millis = u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX);
        self.last_used.fetch_max(millis, Ordering::AcqRel);
    }

    /// Ends the connection and releases its permit.
    pub(super) async fn close(&self, limit: Duration) {
        // The link limits its own shutdown; this timeout is for one that does not.
        let _late = tokio::time::timeout(limit, self.link.clone().close()).await;
        self.release_slot();
    }

    pub(super) fn release_slot(&self) {
        let mut place = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        *place = None;
    }
}

impl LinkUse {
    pub(super) fn new(open_link: &Arc<OpenLink>) -> Self {
        open_link.in_flight.fetch_add(1, Ordering::AcqRel);
        Self {
            open_link: Arc::clone(open_link),
            kind: LinkUseKind::InFlight,
        }
    }

    /// Turns the use into a standing one, for a request that stays open while an agent listens: it no longer
    /// counts as in flight. Unless `keeps` is set, the link is closed when it is otherwise idle.
    pub(super) fn mark_long_lived(&mut self, keeps: bool) {
        let counted = if keeps {
            LinkUseKind::LongLived
        } else {
            LinkUseKind::Uncounted
        };
        if let Some(count) = self.open_link.count(counted) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        let before = std::mem::replace(&mut self.kind, counted);
        self.decrement(before);
    }

    fn decrement(&self, counted: LinkUseKind) {
        if let Some(count) = self.open_link.count(counted) {
            count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) const fn open_link(&self) -> &Arc<OpenLink> {
        &self.open_link
    }
}

impl Drop for LinkUse {
    fn drop(&mut self) {
        self.open_link.touch();
        self.decrement(self.kind);
    }
}
