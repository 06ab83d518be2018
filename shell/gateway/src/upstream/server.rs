use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolwarden_mcp::{Era, EraPreference, Face, Limits, ServerDescription};
use toolwarden_warden::settings::{ProtocolChoice, ServerSettings};

use super::life::{HandshakeSupport, Life, Slot};
use super::principals::Principals;
use super::task::OwnedTask;
use super::{Hearing, LinkKey, UpstreamChange, UpstreamStatus, main_face};

/// One configured server with its life.
///
/// Dropping it ends its links at once; [`Upstream::close`] lets them end in order.
pub struct Upstream {
    pub(super) me: Weak<Self>,
    pub(super) name: Arc<str>,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) limits: Limits,
    pub(super) face: ArcSwap<Face>,
    /// The era of the only agent there is, which the main link follows; none where there are many.
    agent_era: ArcSwapOption<Era>,
    pub(super) hearing: Arc<dyn Hearing>,
    // INVARIANT: nothing foreign is called while it is held.
    life: Mutex<Life>,
    /// Turns for requests.
    pub(super) turns: Semaphore,
    /// What single principals use.
    pub(super) principals: Principals,
    /// Places for links.
    pub(super) places: Arc<Semaphore>,
    /// Counts what happens in the life; wakes the keeper.
    moves: watch::Sender<u64>,
    pub(super) closing: Mutex<Vec<JoinHandle<()>>>,
    pub(super) keeper: Mutex<Option<OwnedTask>>,
    /// Microseconds; 0 before the first answer.
    latency: AtomicU64,
}

impl Upstream {
    /// A server to which no link is open yet.
    #[must_use]
    pub fn new(settings: Arc<ServerSettings>, hearing: Arc<dyn Hearing>) -> Arc<Self> {
        Self::with_face(settings, hearing, main_face())
    }

    /// As [`Self::new`], with what the gateway says of itself over its own link.
    #[must_use]
    pub fn with_face(
        settings: Arc<ServerSettings>,
        hearing: Arc<dyn Hearing>,
        face: Face,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            name: settings.name.as_str().into(),
            limits: limits(&settings),
            face: ArcSwap::from_pointee(face),
            agent_era: ArcSwapOption::empty(),
            hearing,
            life: Mutex::new(Life::new(&settings)),
            turns: Semaphore::new(count(settings.concurrency.get())),
            principals: Principals::new(&settings),
            places: Arc::new(Semaphore::new(count(settings.max_links.get()))),
            moves: watch::Sender::new(0),
            closing: Mutex::default(),
            keeper: Mutex::default(),
            latency: AtomicU64::new(0),
            settings,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was configured with.
    #[must_use]
    pub fn settings(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.settings)
    }

    /// What the gateway says of itself over its own link.
    #[must_use]
    pub fn face(&self) -> Arc<Face> {
        self.face.load_full()
    }

    /// Presents the only agent there is over the main link, from the next time it is opened: its
    /// capabilities and its era.
    pub fn speak_as(&self, face: &Face, era: Era) {
        self.face.store(Arc::new(face.clone()));
        self.agent_era.store(Some(Arc::new(era)));
    }

    /// What the server said of itself when the main link was last opened.
    #[must_use]
    pub fn description(&self) -> Option<Arc<ServerDescription>> {
        self.life().description.clone()
    }

    /// What the server said of itself to agents of an era, where it speaks that era; else what it said
    /// over the main link.
    #[must_use]
    pub fn description_for(&self, era: Era) -> Option<Arc<ServerDescription>> {
        let life = self.life();
        match (&life.handshake, era) {
            (Some(HandshakeSupport::Spoken(said)), Era::Handshake) => Some(Arc::clone(said)),
            _ => life.description.clone(),
        }
    }

    /// Whether a server whose main link is stateless speaks the handshake era, too; none while that was
    /// not tried.
    pub(crate) fn handshake_support(&self) -> Option<bool> {
        match self.settings.protocol {
            ProtocolChoice::Handshake => return Some(true),
            ProtocolChoice::Stateless => return Some(false),
            ProtocolChoice::Auto => {}
        }
        match self.life().handshake {
            Some(HandshakeSupport::Spoken(_)) => Some(true),
            Some(HandshakeSupport::Refused { until: Some(until) }) if until <= Instant::now() => {
                None
            }
            Some(HandshakeSupport::Refused { .. }) => Some(false),
            None => None,
        }
    }

    /// In which era the link of a key is opened.
    pub(super) fn preference(&self, key: &LinkKey) -> EraPreference {
        match (self.settings.protocol, key) {
            (ProtocolChoice::Handshake, _) => EraPreference::Only(Era::Handshake),
            (ProtocolChoice::Stateless, _) => EraPreference::Only(Era::Stateless),
            (ProtocolChoice::Auto, LinkKey::Variant(_) | LinkKey::Of(_)) => {
                EraPreference::Handshake
            }
            (ProtocolChoice::Auto, LinkKey::Main) => match self.agent_era.load().as_deref() {
                Some(Era::Handshake) => EraPreference::Handshake,
                Some(Era::Stateless) | None => EraPreference::Newest,
            },
        }
    }

    /// Whether it answers by streams of events, as far as its open links know.
    pub(crate) fn is_streaming(&self) -> bool {
        self.life()
            .open_links()
            .any(|held| held.link().is_streaming())
    }

    /// The share of its `concurrency` that is in use, from 0 to 1.
    #[must_use]
    pub fn load(&self) -> f64 {
        let all = self.settings.concurrency.get();
        let free = u32::try_from(self.turns.available_permits()).unwrap_or(all);
        f64::from(all.saturating_sub(free)) / f64::from(all)
    }

    /// How it fares.
    #[must_use]
    pub fn status(&self) -> UpstreamStatus {
        let latency = self.latency.load(Ordering::Relaxed);
        let life = self.life();
        let description = life.description.as_ref();
        UpstreamStatus {
            health: life.health,
            since: life.since,
            links: life.open_links().count(),
            in_flight: life.open_links().map(|held| held.in_flight()).sum(),
            restarts: life.restarts,
            breaker: life.breaker.status(Instant::now()),
            last_error: life.last_error.clone(),
            era: description.map(|it| it.era),
            protocol_version: description.map(|it| it.protocol_version.clone()),
            pids: life.open_links().filter_map(|held| held.pid()).collect(),
            latency: (latency > 0).then(|| Duration::from_micros(latency)),
        }
    }

    /// Forgets failures: the next request, or the keeper at once, tries again.
    pub fn retry(&self) {
        {
            let mut life = self.life();
            life.failed = None;
            life.backoff.forget();
            life.breaker.eased(Instant::now());
        }
        self.principals.ease(Instant::now());
        self.moved();
    }

    /// Ends all links and programs, without waiting for requests under way. Nothing is opened any more.
    pub async fn close(&self) {
        drop(lock(&self.keeper).take());
        let slots = {
            let mut life = self.life();
            life.closed = true;
            std::mem::take(&mut life.slots)
        };
        for slot in slots.into_values() {
            match slot {
                Slot::Open(held) => self.retire(held),
                // An attempt ends when it is dropped.
                Slot::Opening(_) | Slot::Lost => {}
            }
        }
        self.moved();
        loop {
            let closing = std::mem::take(&mut *lock(&self.closing));
            if closing.is_empty() {
                return;
            }
            for task in closing {
                // One that panicked has dropped its link.
                let _panicked = task.await;
            }
        }
    }

    pub(super) fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life)
    }

    /// Tells whom it concerns that something happened in the life.
    pub(super) fn moved(&self) {
        let news = self.life().reassess();
        self.moves
            .send_modify(|moves| *moves = moves.wrapping_add(1));
        if news {
            self.tell(UpstreamChange::Health);
        }
    }

    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.moves.subscribe()
    }

    pub(super) fn tell(&self, what: UpstreamChange) {
        if let Some(me) = self.me.upgrade() {
            self.hearing.changed(&me, what);
        }
    }

    /// Notes what is wrong with an answer of the server, where the connection is well.
    pub(crate) fn note_fault(&self, fault: &dyn fmt::Display) {
        self.life().note_error(fault);
    }

    pub(super) fn note_latency(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let before = self.latency.load(Ordering::Relaxed);
        // A lost update costs one sample.
        let smoothed = if before == 0 {
            took
        } else {
            before - before / 8 + took / 8
        };
        self.latency.store(smoothed.max(1), Ordering::Relaxed);
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limits(settings: &ServerSettings) -> Limits {
    let limits = settings.limits();
    Limits {
        // A server that does not know the first request has the rest of the time for the second.
        probe: limits.probe.min(limits.start / 2),
        ..limits
    }
}

fn count(number: u32) -> usize {
    usize::try_from(number)
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}
