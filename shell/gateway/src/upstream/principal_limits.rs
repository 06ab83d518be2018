//! Limits per principal on the use of a server, so that no principal makes it unavailable to others.
//!
//! Every principal has a share of the requests in flight and its own circuit breaker. The server's breaker opens
//! only if several principals are affected.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolwarden_settings::{BreakerSettings, ServerSettings};

use super::LinkKey;
use super::breaker::{Admission, CircuitBreaker};

/// From this number of principals on, those without requests or failures are forgotten.
const PRUNE_THRESHOLD: usize = 1_024;

/// The principals that use one server.
#[derive(Debug)]
pub(super) struct PrincipalLimits {
    breaker: BreakerSettings,
    max_in_flight: usize,
    /// The most connections that one principal may use; `None` means no limit.
    max_links: Option<NonZeroU32>,
    known: Mutex<KnownPrincipal>,
}

#[derive(Debug, Default)]
struct KnownPrincipal {
    by_name: BTreeMap<Arc<str>, Entry>,
    /// The principals whose requests failed since the server last responded to any.
    failing: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    breaker: CircuitBreaker,
    slots: Arc<Semaphore>,
    /// Its requests to this server, including waiting ones.
    requests: usize,
    /// Its requests by conversation; each conversation has its own connection.
    conversations: BTreeMap<Arc<str>, usize>,
}

/// Why a request of a principal is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrincipalRefusal {
    /// Its requests failed too often; the principal must wait this long.
    BreakerOpen { retry_after: Duration },
    /// It already uses this many connections.
    TooManyLinks { limit: u32 },
}

/// A request of a principal; it counts until this is dropped.
#[derive(Debug)]
pub(super) struct PrincipalRequest<'p> {
    principals: &'p PrincipalLimits,
    name: Arc<str>,
    conversation: Option<Arc<str>>,
    slots: Arc<Semaphore>,
    admission: Admission,
}

/// The consequences of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailureEffect {
    /// Whether the principal's requests are refused from now on.
    pub(super) opens_breaker: bool,
    /// Whether so many principals are affected that the cause must be the server.
    pub(super) is_server_fault: bool,
    /// Whether no other principal uses the server.
    pub(super) is_only_principal: bool,
}

impl PrincipalLimits {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            breaker: settings.breaker,
            max_in_flight: usize::try_from(settings.principal_request_limit().get())
                .unwrap_or(usize::MAX)
                .min(Semaphore::MAX_PERMITS),
            max_links: settings.principal_link_limit(),
            known: Mutex::default(),
        }
    }

    /// Begins a request of a principal.
    ///
    /// # Errors
    /// Its requests failed too often, or it uses its share of connections.
    pub(super) fn admit(
        &self,
        name: &str,
        key: &LinkKey,
        stands: bool,
        now: Instant,
    ) -> Result<PrincipalRequest<'_>, PrincipalRefusal> {
        let mut known = self.lock();
        if known.by_name.len() >= PRUNE_THRESHOLD && !known.by_name.contains_key(name) {
            let is_of_interest = |it: &Entry| it.requests > 0 || !it.breaker.is_forgettable(now);
            known.by_name.retain(|_, entry| is_of_interest(entry));
        }
        let name: Arc<str> = match known.by_name.get_key_value(name) {
            Some((name, _)) => Arc::clone(name),
            None => name.into(),
        };
        let entry = known
            .by_name
            .entry(Arc::clone(&name))
            .or_insert_with(|| Entry {
                breaker: CircuitBreaker::new(self.breaker),
                slots: Arc::new(Semaphore::new(self.max_in_flight)),
                requests: 0,
                conversations: BTreeMap::new(),
            });
        let conversation = match key {
            LinkKey::Conversation(conversation) => Some(Arc::clone(conversation)),
            LinkKey::Main | LinkKey::Variant(_) => None,
        };
        if let (Some(conversation), Some(links)) = (&conversation, self.max_links)
            && !entry.conversations.contains_key(conversation)
            && entry.conversations.len() >= usize::try_from(links.get()).unwrap_or(usize::MAX)
        {
            let limit = links.get();
            return Err(PrincipalRefusal::TooManyLinks { limit });
        }
        let admission = if stands {
            entry.breaker.admit_long_lived(now)
        } else {
            entry.breaker.admit(now)
        };
        let admission =
            admission.map_err(|retry_after| PrincipalRefusal::BreakerOpen { retry_after })?;
        entry.requests += 1;
        if let Some(conversation) = &conversation {
            let of_conversation = entry.conversations.entry(Arc::clone(conversation));
            *of_conversation.or_default() += 1;
        }
        Ok(PrincipalRequest {
            principals: self,
            conversation,
            slots: Arc::clone(&entry.slots),
            admission,
            name,
        })
    }

    /// Forgets failures, because there is a reason to try again.
    pub(super) fn allow_trials(&self, now: Instant) {
        for entry in self.lock().by_name.values_mut() {
            entry.breaker.allow_trial(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownPrincipal> {
        // Every change is made in one step, so the map is consistent after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrincipalRequest<'_> {
    /// The semaphore that limits the principal's requests in flight.
    pub(super) const fn slots(&self) -> &Arc<Semaphore> {
        &self.slots
    }

    /// Records that the server responded.
    pub(super) fn record_success(&mut self) {
        self.admission = Admission::Normal;
        let mut known = self.principals.lock();
        known.failing.clear();
        if let Some(entry) = known.by_name.get_mut(&self.name) {
            entry.breaker.record_success();
        }
    }

    /// Records that the server failed.
    pub(super) fn record_failure(&mut self, now: Instant) -> FailureEffect {
        self.admission = Admission::Normal;
        let mut known = self.principals.lock();
        known.failing.insert(Arc::clone(&self.name));
        let entry = known.by_name.get_mut(&self.name);
        let trips = entry.is_some_and(|entry| entry.breaker.record_failure(now));
        let refused = known.failing.iter().filter(|name| {
            let entry = known.by_name.get(*name);
            entry.is_some_and(|it| !it.breaker.is_forgettable(now))
        });
        let refused = refused.count();
        let enough = usize::try_from(self.principals.breaker.failures.get());
        let enough = enough.unwrap_or(usize::MAX).max(2);
        let is_other =
            |(name, entry): (&Arc<str>, &Entry)| *name != self.name && entry.requests > 0;
        FailureEffect {
            opens_breaker: trips,
            is_server_fault: trips && refused > 1 || known.failing.len() >= enough,
            is_only_principal: !known.by_name.iter().any(is_other),
        }
    }
}

impl Drop for PrincipalRequest<'_> {
    fn drop(&mut self) {
        let mut known = self.principals.lock();
        let Some(entry) = known.by_name.get_mut(&self.name) else {
            return;
        };
        entry.requests = entry.requests.saturating_sub(1);
        if let Some(conversation) = &self.conversation
            && let Some(left) = entry.conversations.get_mut(conversation)
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                entry.conversations.remove(conversation);
            }
        }
        if self.admission == Admission::Trial {
            entry.breaker.abandon_trial(Instant::now());
        }
        if entry.requests == 0 && entry.breaker.is_healthy() {
            known.by_name.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use toolwarden_mcp::Endpoint;

    use super::*;

    fn principals() -> PrincipalLimits {
        let mut settings = ServerSettings::new("s", Endpoint::url("http://localhost/mcp").unwrap());
        settings.breaker.failures = NonZeroU32::new(3).unwrap();
        settings.concurrency = NonZeroU32::new(4).unwrap();
        PrincipalLimits::new(&settings)
    }

    fn open<'p>(
        all: &'p PrincipalLimits,
        name: &str,
        now: Instant,
    ) -> Result<PrincipalRequest<'p>, PrincipalRefusal> {
        all.admit(name, &LinkKey::Main, false, now)
    }

    fn fail(all: &PrincipalLimits, name: &str, now: Instant) -> FailureEffect {
        open(all, name, now).unwrap().record_failure(now)
    }

    #[test]
    fn one_principal_is_refused_alone() {
        let (all, now) = (principals(), Instant::now());
        assert!(!fail(&all, "eve", now).opens_breaker);
        assert!(!fail(&all, "eve", now).opens_breaker);
        let last = fail(&all, "eve", now);
        assert!(last.opens_breaker && !last.is_server_fault && last.is_only_principal);
        assert!(open(&all, "eve", now).is_err());
        open(&all, "ada", now).unwrap().record_success();
        assert!(open(&all, "eve", now).is_err());
        all.allow_trials(now);
        open(&all, "eve", now).unwrap().record_success();
        assert!(all.lock().by_name.is_empty());
    }

    #[test]
    fn several_principals_make_it_the_fault_of_the_server() {
        let (all, now) = (principals(), Instant::now());
        for name in ["ada", "ben"] {
            assert!(!fail(&all, name, now).is_server_fault);
        }
        assert!(fail(&all, "eve", now).is_server_fault);
        let all = principals();
        for _ in 0..3 {
            assert!(!fail(&all, "ada", now).is_server_fault);
        }
        for _ in 0..2 {
            assert!(!fail(&all, "eve", now).is_server_fault);
        }
        assert!(fail(&all, "eve", now).is_server_fault);
    }

    #[test]
    fn a_principal_has_a_share_of_the_turns() {
        let (all, now) = (principals(), Instant::now());
        let eve = open(&all, "eve", now).unwrap();
        assert_eq!(eve.slots().available_permits(), 3);
    }

    #[test]
    fn a_principal_has_a_share_of_the_connections() {
        let (all, now) = (principals(), Instant::now());
        let admit = |principal: &str, at: usize| {
            let key = LinkKey::Conversation(at.to_string().into());
            all.admit(principal, &key, false, now)
        };
        let limit = all.max_links.unwrap().get();
        let mut open: Vec<_> = (0..192).map(|at| admit("eve", at).unwrap()).collect();
        assert_eq!(
            admit("eve", 192).unwrap_err(),
            PrincipalRefusal::TooManyLinks { limit }
        );
        open.push(admit("eve", 0).unwrap());
        open.push(admit("ada", 192).unwrap());
        drop(open);
        assert!(all.lock().by_name.is_empty());
    }
}
