//! Allowed calls whose outcome the caller has not reported yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolwarden_live_guard::OpenCall;

/// The most pending calls, and the most of one caller, so that no caller uses up the room of the others.
const MAX_CALLS: usize = 10_000;
const MAX_CALLS_PER_CALLER: usize = 1_000;

/// The longest interval between checks for expired calls.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(10);

/// Allowed calls whose outcome the caller has not reported yet. A call that is not reported in time is recorded
/// as abandoned.
#[derive(Debug)]
pub(super) struct PendingCalls {
    calls: Mutex<Calls>,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct Calls {
    by_id: BTreeMap<String, PendingCall>,
    /// The number of calls of each caller.
    counts: BTreeMap<Arc<str>, usize>,
}

/// An allowed call.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) open: OpenCall,
    /// The caller who requested it and must report its outcome.
    pub(super) caller: Arc<str>,
    /// The principal it is made for.
    pub(super) principal: Arc<str>,
    pub(super) session: Option<String>,
    /// When it expires and counts as abandoned.
    pub(super) deadline: Instant,
}

impl PendingCalls {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            calls: Mutex::default(),
            timeout,
        }
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether there is room for one more call of a caller.
    pub(super) fn has_room(&self, by: &str) -> bool {
        let calls = self.lock();
        let of_one = calls.counts.get(by).copied().unwrap_or_default();
        calls.by_id.len() < MAX_CALLS && of_one < MAX_CALLS_PER_CALLER
    }

    /// Stores a call under an id.
    pub(super) fn insert(&self, id: String, pending_call: PendingCall) {
        let mut calls = self.lock();
        *calls
            .counts
            .entry(Arc::clone(&pending_call.caller))
            .or_default() += 1;
        calls.by_id.insert(id, pending_call);
    }

    /// Removes a call and returns it, if it exists, is in time and this caller may report it.
    pub(super) fn take(&self, id: &str, by: &str, admin: bool) -> Option<PendingCall> {
        let mut calls = self.lock();
        let pending_call = calls.by_id.get(id)?;
        if pending_call.deadline <= Instant::now() || !(admin || *pending_call.caller == *by) {
            return None;
        }
        calls.remove(id)
    }

    /// Drops calls whose outcome was not reported in time.
    fn expire(&self) {
        let now = Instant::now();
        let mut calls = self.lock();
        let late = calls
            .by_id
            .iter()
            .filter(|(_, pending_call)| pending_call.deadline <= now);
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        let gone: Vec<PendingCall> = late.iter().filter_map(|id| calls.remove(id)).collect();
        drop(calls);
        // Dropping records each as abandoned, after the lock is released.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // A panic could leave only a count that is off by one.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn remove(&mut self, id: &str) -> Option<PendingCall> {
        let pending_call = self.by_id.remove(id)?;
        if let Some(count) = self.counts.get_mut(&pending_call.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&pending_call.caller);
            }
        }
        Some(pending_call)
    }
}

/// Starts a task that drops expired calls as long as the table exists.
pub(super) fn spawn_expiry(pending: &Arc<PendingCalls>) {
    let every = (pending.timeout / 4).clamp(Duration::from_millis(10), EXPIRE_INTERVAL);
    let pending = Arc::downgrade(pending);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            let Some(pending) = pending.upgrade() else {
                return;
            };
            pending.expire();
        }
    });
}
