//! Calls that were allowed and whose end is still to be told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolwarden_warden::guard::OpenCall;

/// The most calls that wait, and the most of one caller, so that nobody takes everybody's place.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 1_000;

/// How often late calls are looked for, at least.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// Calls that were allowed and whose end is still to be told. One that is not told in time is put down
/// as abandoned.
#[derive(Debug)]
pub(super) struct Pending {
    calls: Mutex<Calls>,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Calls {
    held: BTreeMap<String, Held>,
    /// How many each caller has.
    of: BTreeMap<Arc<str>, usize>,
}

/// An allowed call.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) open: OpenCall,
    /// Who asked for it, and has to tell its end.
    pub(super) by: Arc<str>,
    /// Whom it is made for.
    pub(super) principal: Arc<str>,
    pub(super) session: Option<String>,
    /// When it counts as abandoned.
    pub(super) due: Instant,
}

impl Pending {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            calls: Mutex::default(),
            patience,
        }
    }

    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether one more call of a caller can be held.
    pub(super) fn has_room(&self, by: &str) -> bool {
        let calls = self.lock();
        let of_one = calls.of.get(by).copied().unwrap_or_default();
        calls.held.len() < MOST && of_one < MOST_OF_ONE
    }

    /// Holds a call under a name.
    pub(super) fn hold(&self, id: String, held: Held) {
        let mut calls = self.lock();
        *calls.of.entry(Arc::clone(&held.by)).or_default() += 1;
        calls.held.insert(id, held);
    }

    /// Takes a call out, if it is there, in time and the caller's to tell.
    pub(super) fn take(&self, id: &str, by: &str, admin: bool) -> Option<Held> {
        let mut calls = self.lock();
        let held = calls.held.get(id)?;
        if held.due <= Instant::now() || !(admin || *held.by == *by) {
            return None;
        }
        calls.remove(id)
    }

    /// Lets go of calls whose end was not told in time.
    fn expire(&self) {
        let now = Instant::now();
        let mut calls = self.lock();
        let late = calls.held.iter().filter(|(_, held)| held.due <= now);
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        let gone: Vec<Held> = late.iter().filter_map(|id| calls.remove(id)).collect();
        drop(calls);
        // Each is put down as abandoned, without keeping others waiting.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // What a panic could leave behind is a count that is off by one.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn remove(&mut self, id: &str) -> Option<Held> {
        let held = self.held.remove(id)?;
        if let Some(count) = self.of.get_mut(&held.by) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of.remove(&held.by);
            }
        }
        Some(held)
    }
}

/// Lets go of late calls while the others are held.
pub(super) fn expire_regularly(pending: &Arc<Pending>) {
    let every = (pending.patience / 4).clamp(Duration::from_millis(10), EXPIRE_EVERY);
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
