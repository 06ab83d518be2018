//! A cache of listings, so that repeated requests cost nothing.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use toolwarden_guard::{Availability, RequestedGroups};
use toolwarden_model::StateName;

/// The maximum number of cached listings; beyond it the cache is cleared, because listings are cheap to
/// rebuild.
const MAX_ENTRIES: usize = 1_024;

/// The maximum size of a cached request, in bytes: clients choose the names of groups and states.
const MAX_KEY_BYTES: usize = 4_096;

/// Listings under one policy, by request. Used only for a policy whose groups have no conditions.
#[derive(Debug, Default)]
pub(super) struct AvailabilityCache(Mutex<HashMap<AvailabilityKey, Arc<Availability>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AvailabilityKey {
    pub(super) principal: Box<str>,
    pub(super) groups: RequestedGroups,
    pub(super) state: StateName,
    /// Whether the single call that the state allows was permitted.
    pub(super) state_used: bool,
    /// The variant of clients.
    pub(super) variant: Option<Box<str>>,
}

impl AvailabilityKey {
    fn bytes(&self) -> usize {
        let groups: usize = self.groups.names().map(|it| it.as_str().len()).sum();
        let variant = self.variant.as_ref().map_or(0, |it| it.len());
        self.principal.len() + self.state.as_str().len() + variant + groups
    }
}

impl AvailabilityCache {
    /// The cached listing, or a new one.
    pub(super) fn get_or_compute<E>(
        &self,
        asked: AvailabilityKey,
        make: impl FnOnce() -> Result<Availability, E>,
    ) -> Result<Arc<Availability>, E> {
        // The map is changed atomically, so it is consistent after a panic.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&asked) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        if asked.bytes() > MAX_KEY_BYTES {
            return Ok(made);
        }
        let mut known = lock();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(asked, Arc::clone(&made));
        Ok(made)
    }
}
