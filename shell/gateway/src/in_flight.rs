//! The bytes of requests that are under way, by principal: what one caller sends is no one else's memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

/// Requests below this size are not counted: their number is bounded already, and counting has a price.
const LEAST: usize = 16 * 1024;

/// The bytes under way of all principals.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<Arc<str>, usize>>>);

/// The bytes of one request, until this is dropped.
#[derive(Debug)]
pub struct RequestBytes {
    in_flight: InFlight,
    principal: Arc<str>,
    bytes: usize,
}

/// A principal has too much under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuchInFlight;

impl InFlight {
    /// Counts a request; none where it is small.
    pub(crate) fn take(
        &self,
        principal: &Arc<str>,
        bytes: usize,
        most: usize,
    ) -> Result<Option<Arc<RequestBytes>>, TooMuchInFlight> {
        if bytes < LEAST {
            return Ok(None);
        }
        let mut all = self.lock();
        let own = all.get(principal).copied().unwrap_or(0);
        // One request is always let through, however large requests may be.
        if own > 0 && own.saturating_add(bytes) > most {
            return Err(TooMuchInFlight);
        }
        all.insert(Arc::clone(principal), own.saturating_add(bytes));
        drop(all);
        Ok(Some(Arc::new(RequestBytes {
            in_flight: self.clone(),
            principal: Arc::clone(principal),
            bytes,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        // A map that is changed in one step is whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestBytes {
    fn drop(&mut self) {
        let mut all = self.in_flight.lock();
        if let Some(own) = all.get_mut(&self.principal) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                all.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_principal_has_its_own_share() {
        let in_flight = InFlight::default();
        let (eve, bob): (Arc<str>, Arc<str>) = ("eve".into(), "bob".into());
        let take = |who, bytes| in_flight.take(who, bytes, 100_000);
        let first = take(&eve, 60_000).unwrap();
        assert!(first.is_some());
        assert_eq!(take(&eve, 60_000).unwrap_err(), TooMuchInFlight);
        assert!(take(&eve, 1_000).unwrap().is_none(), "small ones pass");
        assert!(take(&bob, 200_000).unwrap().is_some(), "one passes always");
        drop(first);
        assert!(take(&eve, 60_000).unwrap().is_some());
        assert!(in_flight.lock().is_empty());
    }
}
