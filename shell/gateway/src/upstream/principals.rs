//! What single principals may use of a server, so that none of them shuts it for the others.
//!
//! Every principal has a share of the requests in flight and a breaker of its own. The breaker of the server
//! opens only where several principals are affected.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolwarden_warden::settings::{self, ServerSettings};

use super::LinkKey;
use super::breaker::{Admission, Breaker};

/// From so many principals on, those that are of no interest are forgotten.
const MANY: usize = 1_024;

/// The principals that use one server.
#[derive(Debug)]
pub(super) struct Principals {
    breaker: settings::Breaker,
    share: usize,
    /// The most connections of one principal in use; none is any number.
    links: Option<NonZeroU32>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: BTreeMap<Arc<str>, Entry>,
    /// Whose requests failed since the server last answered any.
    failing: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    breaker: Breaker,
    turns: Arc<Semaphore>,
    /// How many requests it has here, waiting ones included.
    requests: usize,
    /// How many of them are for each of its conversations, which have connections of their own.
    conversations: BTreeMap<Arc<str>, usize>,
}

/// Why a request of a principal is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its requests failed too often; not before this time has passed.
    Open { retry_after: Duration },
    /// It uses so many connections already.
    Links { limit: u32 },
}

/// A request of a principal, until this is dropped.
#[derive(Debug)]
pub(super) struct PrincipalRequest<'p> {
    principals: &'p Principals,
    name: Arc<str>,
    conversation: Option<Arc<str>>,
    turns: Arc<Semaphore>,
    admission: Admission,
}

/// What the failure of a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether the principal is refused from now on.
    pub(super) trips: bool,
    /// Whether so many principals are affected that the server must be at fault.
    pub(super) is_of_server: bool,
    /// Whether no other principal has requests here.
    pub(super) is_alone: bool,
}

impl Principals {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            breaker: settings.breaker,
            share: usize::try_from(settings.share().get())
                .unwrap_or(usize::MAX)
                .min(Semaphore::MAX_PERMITS),
            links: settings.link_share(),
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
    ) -> Result<PrincipalRequest<'_>, Refused> {
        let mut known = self.lock();
        if known.by_name.len() >= MANY && !known.by_name.contains_key(name) {
            let is_of_interest = |it: &Entry| it.requests > 0 || !it.breaker.is_rested(now);
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
                breaker: Breaker::new(self.breaker),
                turns: Arc::new(Semaphore::new(self.share)),
                requests: 0,
                conversations: BTreeMap::new(),
            });
        let conversation = match key {
            LinkKey::Of(conversation) => Some(Arc::clone(conversation)),
            LinkKey::Main | LinkKey::Variant(_) => None,
        };
        if let (Some(conversation), Some(links)) = (&conversation, self.links)
            && !entry.conversations.contains_key(conversation)
            && entry.conversations.len() >= usize::try_from(links.get()).unwrap_or(usize::MAX)
        {
            let limit = links.get();
            return Err(Refused::Links { limit });
        }
        let admission = if stands {
            entry.breaker.admit_standing(now)
        } else {
            entry.breaker.admit(now)
        };
        let admission = admission.map_err(|retry_after| Refused::Open { retry_after })?;
        entry.requests += 1;
        if let Some(conversation) = &conversation {
            let of_conversation = entry.conversations.entry(Arc::clone(conversation));
            *of_conversation.or_default() += 1;
        }
        Ok(PrincipalRequest {
            principals: self,
            conversation,
            turns: Arc::clone(&entry.turns),
            admission,
            name,
        })
    }

    /// Forgets failures: there is reason to try again.
    pub(super) fn ease(&self, now: Instant) {
        for entry in self.lock().by_name.values_mut() {
            entry.breaker.eased(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every change is made in one step, so what a panic leaves behind is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrincipalRequest<'_> {
    /// The turns of the principal.
    pub(super) const fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// The server answered.
    pub(super) fn succeeded(&mut self) {
        self.admission = Admission::Usual;
        let mut known = self.principals.lock();
        known.failing.clear();
        if let Some(entry) = known.by_name.get_mut(&self.name) {
            entry.breaker.succeeded();
        }
    }

    /// The server failed.
    pub(super) fn failed(&mut self, now: Instant) -> Failure {
        self.admission = Admission::Usual;
        let mut known = self.principals.lock();
        known.failing.insert(Arc::clone(&self.name));
        let entry = known.by_name.get_mut(&self.name);
        let trips = entry.is_some_and(|entry| entry.breaker.failed(now));
        let refused = known.failing.iter().filter(|name| {
            let entry = known.by_name.get(*name);
            entry.is_some_and(|it| !it.breaker.is_rested(now))
        });
        let refused = refused.count();
        let enough = usize::try_from(self.principals.breaker.failures.get());
        let enough = enough.unwrap_or(usize::MAX).max(2);
        let is_other =
            |(name, entry): (&Arc<str>, &Entry)| *name != self.name && entry.requests > 0;
        Failure {
            trips,
            is_of_server: trips && refused > 1 || known.failing.len() >= enough,
            is_alone: !known.by_name.iter().any(is_other),
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
            entry.breaker.undecided(Instant::now());
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

    fn principals() -> Principals {
        let mut settings = ServerSettings::new("s", Endpoint::url("http://localhost/mcp").unwrap());
        settings.breaker.failures = NonZeroU32::new(3).unwrap();
        settings.concurrency = NonZeroU32::new(4).unwrap();
        Principals::new(&settings)
    }

    fn open<'p>(
        all: &'p Principals,
        name: &str,
        now: Instant,
    ) -> Result<PrincipalRequest<'p>, Refused> {
        all.admit(name, &LinkKey::Main, false, now)
    }

    fn fail(all: &Principals, name: &str, now: Instant) -> Failure {
        open(all, name, now).unwrap().failed(now)
    }

    #[test]
    fn one_principal_is_refused_alone() {
        let (all, now) = (principals(), Instant::now());
        assert!(!fail(&all, "eve", now).trips);
        assert!(!fail(&all, "eve", now).trips);
        let last = fail(&all, "eve", now);
        assert!(last.trips && !last.is_of_server && last.is_alone);
        assert!(open(&all, "eve", now).is_err());
        open(&all, "ada", now).unwrap().succeeded();
        assert!(open(&all, "eve", now).is_err());
        all.ease(now);
        open(&all, "eve", now).unwrap().succeeded();
        assert!(all.lock().by_name.is_empty());
    }

    #[test]
    fn several_principals_make_it_the_fault_of_the_server() {
        let (all, now) = (principals(), Instant::now());
        for name in ["ada", "ben"] {
            assert!(!fail(&all, name, now).is_of_server);
        }
        assert!(fail(&all, "eve", now).is_of_server);
        let all = principals();
        for _ in 0..3 {
            assert!(!fail(&all, "ada", now).is_of_server);
        }
        for _ in 0..2 {
            assert!(!fail(&all, "eve", now).is_of_server);
        }
        assert!(fail(&all, "eve", now).is_of_server);
    }

    #[test]
    fn a_principal_has_a_share_of_the_turns() {
        let (all, now) = (principals(), Instant::now());
        let eve = open(&all, "eve", now).unwrap();
        assert_eq!(eve.turns().available_permits(), 3);
    }

    #[test]
    fn a_principal_has_a_share_of_the_connections() {
        let (all, now) = (principals(), Instant::now());
        let admit = |principal: &str, at: usize| {
            let key = LinkKey::Of(at.to_string().into());
            all.admit(principal, &key, false, now)
        };
        let limit = all.links.unwrap().get();
        let mut open: Vec<_> = (0..192).map(|at| admit("eve", at).unwrap()).collect();
        assert_eq!(admit("eve", 192).unwrap_err(), Refused::Links { limit });
        open.push(admit("eve", 0).unwrap());
        open.push(admit("ada", 192).unwrap());
        drop(open);
        assert!(all.lock().by_name.is_empty());
    }
}
