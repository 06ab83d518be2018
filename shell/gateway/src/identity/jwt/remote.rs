//! Keys that come over the network: fetched, kept, refreshed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use toolwarden_http::shown;
use toolwarden_warden::settings::JwtSettings;

use super::key::Key;
use crate::identity::error::IdentityError;

mod fetch;

pub(super) use fetch::Source;
use fetch::{FetchError, fetch};

/// How often keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identity) struct Timing {
    /// Between two looks when all is well, at most: an issuer's own settings may say less.
    pub(in crate::identity) refresh: Duration,
    /// The least time between two tries, whoever asks.
    pub(in crate::identity) between: Duration,
    /// How long keys are good when no newer ones can be had, at most.
    pub(in crate::identity) keep: Duration,
    /// How long one try may take.
    pub(in crate::identity) limit: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            refresh: Duration::MAX,
            between: Duration::from_secs(10),
            keep: Duration::MAX,
            limit: Duration::from_secs(5),
        }
    }
}

impl Timing {
    /// As the settings of an issuer say.
    pub(super) fn of(self, settings: &JwtSettings) -> Self {
        Self {
            refresh: self.refresh.min(settings.refresh),
            keep: self.keep.min(settings.max_stale),
            ..self
        }
    }
}

/// How an issuer does whose keys come over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerHealth {
    /// Its name, or where its keys are.
    pub issuer: String,
    /// Whether its tokens can be checked.
    pub usable: bool,
    /// Why the last try to get its keys failed, if it did.
    pub failure: Option<String>,
}

/// The keys of an issuer, as they were fetched last.
#[derive(Debug)]
pub(super) struct KeySet {
    pub(super) keys: Vec<Key>,
    /// Counts the times that they were others than before.
    pub(super) generation: u64,
    fetched: Instant,
}

/// Keys over the network. A task looks after them for as long as the value lives.
pub(super) struct Remote {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    issuer: String,
    source: Source,
    timing: Timing,
    held: ArcSwapOption<KeySet>,
    failure: ArcSwapOption<FetchError>,
    /// When keys were last asked for. Whoever holds it is asking.
    asked: Mutex<Option<Instant>>,
}

impl Remote {
    pub(super) fn start(
        issuer: Option<String>,
        source: Source,
        timing: Timing,
    ) -> Result<Self, IdentityError> {
        // A system without certificates is told of at once, not with the first token.
        drop(toolwarden_http::client(source.address())?);
        let shared = Arc::new(Shared {
            issuer: issuer.unwrap_or_else(|| shown(source.address())),
            source,
            timing,
            held: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            asked: Mutex::new(None),
        });
        let task = tokio::spawn(look_after(Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    pub(super) fn timing(&self) -> Timing {
        self.shared.timing
    }

    pub(super) fn source(&self) -> &Source {
        &self.shared.source
    }

    /// The keys, if there are any that are not too old.
    pub(super) fn keys(&self) -> Option<Arc<KeySet>> {
        self.shared.keys()
    }

    /// Asks for the keys, unless they were asked for just now. Gives what there is then.
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

impl Drop for Remote {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.health()).finish()
    }
}

impl Shared {
    fn keys(&self) -> Option<Arc<KeySet>> {
        let held = self.held.load_full();
        held.filter(|held| held.fetched.elapsed() < self.timing.keep)
    }

    async fn refresh(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|last| last.elapsed() < self.timing.between) {
            return;
        }
        // Before the answer: a caller who leaves while it is awaited has asked, too.
        *asked = Some(Instant::now());
        let limit = self.timing.limit;
        let outcome = timeout(limit, fetch(&self.source)).await;
        match outcome.unwrap_or(Err(FetchError::Slow { limit })) {
            Ok(keys) => self.take(keys),
            Err(failure) => {
                // An issuer that shows no keys any more has withdrawn those it showed.
                if matches!(failure, FetchError::NoKeys { .. }) {
                    self.take(Vec::new());
                }
                self.failure.store(Some(Arc::new(failure)));
            }
        }
    }

    fn take(&self, keys: Vec<Key>) {
        let generation = match self.held.load().as_deref() {
            Some(held) if held.keys == keys => held.generation,
            Some(held) => held.generation + 1,
            None => 1,
        };
        let fetched = Instant::now();
        self.failure.store(None);
        self.held.store(Some(Arc::new(KeySet {
            keys,
            generation,
            fetched,
        })));
    }
}

/// Fetches keys again and again: soon after a failure, then ever later.
async fn look_after(shared: Arc<Shared>) {
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
