//! The bytes of requests in flight, by principal, so that no caller uses up the memory of the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

/// Smaller requests are not counted: their number is already bounded, and counting costs time.
const MIN_COUNTED_BYTES: usize = 16 * 1024;

/// The bytes in flight of all principals.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlightBytes(Arc<Mutex<HashMap<Arc<str>, usize>>>);

/// The bytes of one request, until this is dropped.
#[derive(Debug)]
pub struct RequestBytes {
    in_flight: InFlightBytes,
    principal: Arc<str>,
    bytes: usize,
}

/// A principal has too many bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuchInFlight;

impl InFlightBytes {
    /// Counts a request; returns `None` for a small one.
    pub(crate) fn take(
        &self,
        principal: &Arc<str>,
        bytes: usize,
        most: usize,
    ) -> Result<Option<Arc<RequestBytes>>, TooMuchInFlight> {
        if bytes < MIN_COUNTED_BYTES {
            return Ok(None);
        }
        let mut all = self.lock();
        let own = all.get(principal).copied().unwrap_or(0);
        // A caller's only request always passes, whatever its size.
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
        // The map changes in one step, so it is consistent after a panic.
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
        let in_flight = InFlightBytes::default();
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
