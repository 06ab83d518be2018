//! Keys that are fetched over the network, cached and refreshed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use toolwarden_http::display_url;
use toolwarden_settings::JwtSettings;

use super::key::VerificationKey;
use crate::identity::error::IdentityError;

mod fetch;

pub(super) use fetch::KeySource;
use fetch::{FetchError, fetch};

/// The intervals at which keys are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identity) struct Timing {
    /// The longest interval between two fetches when all is well: the settings of an issuer may lower it.
    pub(in crate::identity) refresh: Duration,
    /// The minimum time between two attempts, whatever their cause.
    pub(in crate::identity) between: Duration,
    /// How long keys stay valid when no newer ones can be fetched, at most.
    pub(in crate::identity) max_age: Duration,
    /// The timeout of one attempt.
    pub(in crate::identity) timeout: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            refresh: Duration::MAX,
            between: Duration::from_secs(10),
            max_age: Duration::MAX,
            timeout: Duration::from_secs(5),
        }
    }
}

impl Timing {
    /// The intervals with the settings of an issuer applied.
    pub(super) fn of(self, settings: &JwtSettings) -> Self {
        Self {
            refresh: self.refresh.min(settings.refresh),
            max_age: self.max_age.min(settings.max_stale),
            ..self
        }
    }
}

/// The status of an issuer whose keys are fetched over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerHealth {
    /// Its name, or the URL of its keys.
    pub issuer: String,
    /// Whether its tokens can be verified.
    pub usable: bool,
    /// Why the last attempt to fetch its keys failed, if it did.
    pub failure: Option<String>,
}

/// The latest keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySet {
    pub(super) keys: Vec<VerificationKey>,
    /// Counts the changes of the keys.
    pub(super) generation: u64,
    fetched: Instant,
}

/// The keys of an issuer, fetched over the network. A task refreshes them as long as the value lives.
pub(super) struct RemoteKeys {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    issuer: String,
    source: KeySource,
    timing: Timing,
    key_set: ArcSwapOption<KeySet>,
    failure: ArcSwapOption<FetchError>,
    /// When keys were last requested. It is locked during a request.
    last_attempt: Mutex<Option<Instant>>,
}

impl RemoteKeys {
    /// Checks that keys could be fetched: a system without root certificates is reported at once, and not with
    /// the first token.
    pub(super) fn check(source: &KeySource) -> Result<(), IdentityError> {
        drop(toolwarden_http::client(source.address())?);
        Ok(())
    }

    pub(super) fn start(
        issuer: Option<String>,
        source: KeySource,
        timing: Timing,
    ) -> Result<Self, IdentityError> {
        Self::check(&source)?;
        let shared = Arc::new(Shared {
            issuer: issuer.unwrap_or_else(|| display_url(source.address())),
            source,
            timing,
            key_set: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            last_attempt: Mutex::new(None),
        });
        let task = tokio::spawn(refresh_loop(Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    pub(super) fn timing(&self) -> Timing {
        self.shared.timing
    }

    pub(super) fn source(&self) -> &KeySource {
        &self.shared.source
    }

    /// The keys, if there are any that have not expired.
    pub(super) fn keys(&self) -> Option<Arc<KeySet>> {
        self.shared.keys()
    }

    /// Fetches the keys, unless they were fetched just now. Returns the current keys.
    pub(super) async fn refresh(&self) -> Option<Arc<KeySet>> {
        self.shared.refresh().await;
        self.shared.keys()
    }

    pub(super) fn health(&self) -> IssuerHealth {
        let failure = self.shared.failure.load_full();
        IssuerHealth {
            issuer: self.shared.issuer.clone(),
            usable: self.shared.keys().is_some_and(|held| !held.keys.is_empty()),
            failure: failure.map(|failure| failure.to_string()),
        }
    }
}

impl Drop for RemoteKeys {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for RemoteKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.health()).finish()
    }
}

impl Shared {
    fn keys(&self) -> Option<Arc<KeySet>> {
        let held = self.key_set.load_full();
        held.filter(|held| held.fetched.elapsed() < self.timing.max_age)
    }

    async fn refresh(&self) {
        let mut last_attempt = self.last_attempt.lock().await;
        if last_attempt.is_some_and(|last| last.elapsed() < self.timing.between) {
            return;
        }
        // Set before the response arrives: an attempt counts even if its caller stops waiting.
        *last_attempt = Some(Instant::now());
        let limit = self.timing.timeout;
        let outcome = timeout(limit, fetch(&self.source)).await;
        match outcome.unwrap_or(Err(FetchError::Timeout { limit })) {
            Ok(keys) => self.store_keys(keys),
            Err(failure) => {
                // An issuer that no longer publishes keys has withdrawn them.
                if matches!(failure, FetchError::NoKeys { .. }) {
                    self.store_keys(Vec::new());
                }
                self.failure.store(Some(Arc::new(failure)));
            }
        }
    }

    fn store_keys(&self, keys: Vec<VerificationKey>) {
        let generation = match self.key_set.load().as_deref() {
            Some(held) if held.keys == keys => held.generation,
            Some(held) => held.generation + 1,
            None => 1,
        };
        let fetched = Instant::now();
        self.failure.store(None);
        self.key_set.store(Some(Arc::new(KeySet {
            keys,
            generation,
            fetched,
        })));
    }
}

/// Refreshes keys in a loop: soon after a failure, then with growing delays.
async fn refresh_loop(shared: Arc<Shared>) {
    let Timing {
        refresh, between, ..
    } = shared.timing;
    let mut pause = between;
    loop {
        shared.refresh().await;
        if shared.failure.load().is_none() {
            pause = between;
            sleep(refresh).await;
        } else {
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(refresh);
        }
    }
}
