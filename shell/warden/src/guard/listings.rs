//! What was listed before, so that asking again costs nothing.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use toolwarden_guard::{Availability, RequestedGroups};

/// The most listings that are remembered; then all are forgotten, for they are quickly made again.
const MOST: usize = 1_024;

/// The longest request that is remembered, in bytes: clients choose the names of groups and states.
const LONGEST: usize = 4_096;

/// Listings of one policy, by who asks for what in which state. Only of a policy whose groups do not
/// depend on circumstances.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<HashMap<Asked, Arc<Availability>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) principal: Box<str>,
    pub(super) groups: RequestedGroups,
    pub(super) state: Box<str>,
    /// Whether the one call was permitted that the state allows.
    pub(super) state_used: bool,
    /// The variant of clients that definitions are for.
    pub(super) variant: Option<Box<str>>,
}

impl Asked {
    fn bytes(&self) -> usize {
        let groups: usize = self.groups.names().map(str::len).sum();
        let variant = self.variant.as_ref().map_or(0, |it| it.len());
        self.principal.len() + self.state.len() + variant + groups
    }
}

impl Listings {
    /// A listing as it was made before, or as it is made now.
    pub(super) fn get<E>(
        &self,
        asked: Asked,
        make: impl FnOnce() -> Result<Availability, E>,
    ) -> Result<Arc<Availability>, E> {
        // A map that is changed in one step is whole after a panic.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&asked) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        if asked.bytes() > LONGEST {
            return Ok(made);
        }
        let mut known = lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(asked, Arc::clone(&made));
        Ok(made)
    }
}
