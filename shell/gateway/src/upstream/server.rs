use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolwarden_mcp::{ClientInfo, ConnectionLimits, Era, EraPreference, ServerDescription};
use toolwarden_model::ServerName;
use toolwarden_settings::{ProtocolChoice, ServerSettings};

use super::lifecycle::{HandshakeSupport, Lifecycle, LinkSlot};
use super::principal_limits::PrincipalLimits;
use super::task::OwnedTask;
use super::{LinkKey, UpstreamChange, UpstreamObserver, UpstreamStatus, gateway_client_info};

/// One configured server with its connections and status.
///
/// Dropping it ends its links at once; [`Upstream::close`] closes them gracefully.
pub struct Upstream {
    pub(super) me: Weak<Self>,
    pub(super) name: ServerName,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) limits: ConnectionLimits,
    pub(super) client_info: ArcSwap<ClientInfo>,
    /// The era of the only agent, which the main link follows; `None` if there are many agents.
    agent_era: ArcSwapOption<Era>,
    pub(super) observer: Arc<dyn UpstreamObserver>,
    // INVARIANT: no callback or other foreign code runs while it is locked.
    lifecycle: Mutex<Lifecycle>,
    /// Limits the requests in flight.
    pub(super) request_slots: Semaphore,
    /// The limits per principal.
    pub(super) principals: PrincipalLimits,
    /// Limits the open links.
    pub(super) link_slots: Arc<Semaphore>,
    /// Counts status changes; wakes the keeper.
    changes: watch::Sender<u64>,
    pub(super) closing: Mutex<Vec<JoinHandle<()>>>,
    pub(super) reconnect_task: Mutex<Option<OwnedTask>>,
    /// Microseconds; 0 before the first answer.
    latency: AtomicU64,
}

impl Upstream {
    /// A server to which no link is open yet.
    #[must_use]
    pub fn new(settings: Arc<ServerSettings>, hearing: Arc<dyn UpstreamObserver>) -> Arc<Self> {
        Self::with_client_info(settings, hearing, gateway_client_info())
    }

    /// Like [`Self::new`], with the gateway's description of itself over its own link.
    #[must_use]
    pub fn with_client_info(
        settings: Arc<ServerSettings>,
        hearing: Arc<dyn UpstreamObserver>,
        client_info: ClientInfo,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            name: ServerName::new(settings.name.as_str()),
            limits: limits(&settings),
            client_info: ArcSwap::from_pointee(client_info),
            agent_era: ArcSwapOption::empty(),
            observer: hearing,
            lifecycle: Mutex::new(Lifecycle::new(&settings)),
            request_slots: Semaphore::new(count(settings.concurrency.get())),
            principals: PrincipalLimits::new(&settings),
            link_slots: Arc::new(Semaphore::new(count(settings.max_links.get()))),
            changes: watch::Sender::new(0),
            closing: Mutex::default(),
            reconnect_task: Mutex::default(),
            latency: AtomicU64::new(0),
            settings,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Its name, as a name of a server.
    #[must_use]
    pub const fn server_name(&self) -> &ServerName {
        &self.name
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.settings)
    }

    /// How the gateway describes itself over its own link.
    #[must_use]
    pub fn client_info(&self) -> Arc<ClientInfo> {
        self.client_info.load_full()
    }

    /// Presents the only agent over the main link, with its capabilities and its era, from the next time the link
    /// is opened.
    pub fn set_client_info(&self, client_info: &ClientInfo, era: Era) {
        self.client_info.store(Arc::new(client_info.clone()));
        self.agent_era.store(Some(Arc::new(era)));
    }

    /// How the server described itself when the main link was last opened.
    #[must_use]
    pub fn description(&self) -> Option<Arc<ServerDescription>> {
        self.lifecycle().description.clone()
    }

    /// How the server described itself to agents of an era, if it speaks that era; otherwise its description over
    /// the main link.
    #[must_use]
    pub fn description_for(&self, era: Era) -> Option<Arc<ServerDescription>> {
        let lifecycle = self.lifecycle();
        match (&lifecycle.handshake, era) {
            (Some(HandshakeSupport::Supported(said)), Era::Handshake) => Some(Arc::clone(said)),
            _ => lifecycle.description.clone(),
        }
    }

    /// Whether a server whose main link is stateless also speaks the handshake era; `None` until that was tried.
    pub(crate) fn handshake_support(&self) -> Option<bool> {
        match self.settings.protocol {
            ProtocolChoice::Handshake => return Some(true),
            ProtocolChoice::Stateless => return Some(false),
            ProtocolChoice::Auto => {}
        }
        match self.lifecycle().handshake {
            Some(HandshakeSupport::Supported(_)) => Some(true),
            Some(HandshakeSupport::Refused { until: Some(until) }) if until <= Instant::now() => {
                None
            }
            Some(HandshakeSupport::Refused { .. }) => Some(false),
            None => None,
        }
    }

    /// The era in which the link of a key is opened.
    pub(super) fn era_preference(&self, key: &LinkKey) -> EraPreference {
        match (self.settings.protocol, key) {
            (ProtocolChoice::Handshake, _) => EraPreference::Only(Era::Handshake),
            (ProtocolChoice::Stateless, _) => EraPreference::Only(Era::Stateless),
            (ProtocolChoice::Auto, LinkKey::Variant(_) | LinkKey::Conversation(_)) => {
                EraPreference::Handshake
            }
            (ProtocolChoice::Auto, LinkKey::Main) => match self.agent_era.load().as_deref() {
                Some(Era::Handshake) => EraPreference::Handshake,
                Some(Era::Stateless) | None => EraPreference::Newest,
            },
        }
    }

    /// Whether it responds with event streams, as far as its open links know.
    pub(crate) fn is_streaming(&self) -> bool {
        self.lifecycle()
            .open_links()
            .any(|open_link| open_link.link().is_streaming())
    }

    /// The share of its `concurrency` that is in use, from 0 to 1.
    #[must_use]
    pub fn load(&self) -> f64 {
        let all = self.settings.concurrency.get();
        let free = u32::try_from(self.request_slots.available_permits()).unwrap_or(all);
        f64::from(all.saturating_sub(free)) / f64::from(all)
    }

    /// Its current status.
    #[must_use]
    pub fn status(&self) -> UpstreamStatus {
        let latency = self.latency.load(Ordering::Relaxed);
        let lifecycle = self.lifecycle();
        let description = lifecycle.description.as_ref();
        UpstreamStatus {
            health: lifecycle.health,
            since: lifecycle.since,
            links: lifecycle.open_links().count(),
            in_flight: lifecycle
                .open_links()
                .map(|open_link| open_link.in_flight())
                .sum(),
            restarts: lifecycle.restarts,
            breaker: lifecycle.breaker.status(Instant::now()),
            last_error: lifecycle.last_error.clone(),
            era: description.map(|it| it.era),
            protocol_version: description.map(|it| it.protocol_version.clone()),
            pids: lifecycle
                .open_links()
                .filter_map(|open_link| open_link.pid())
                .collect(),
            latency: (latency > 0).then(|| Duration::from_micros(latency)),
        }
    }

    /// Forgets failures, so that the next request, or the keeper at once, tries again.
    pub fn retry(&self) {
        {
            let mut lifecycle = self.lifecycle();
            lifecycle.permanent_failure = None;
            lifecycle.backoff.reset();
            lifecycle.breaker.allow_trial(Instant::now());
        }
        self.principals.allow_trials(Instant::now());
        self.notify_change();
    }

    /// Ends all links and programs without waiting for requests in flight. Nothing is opened afterwards.
    pub async fn close(&self) {
        drop(lock(&self.reconnect_task).take());
        let slots = {
            let mut lifecycle = self.lifecycle();
            lifecycle.closed = true;
            std::mem::take(&mut lifecycle.slots)
        };
        for slot in slots.into_values() {
            match slot {
                LinkSlot::Open(open_link) => self.close_in_background(open_link),
                // An attempt is cancelled when it is dropped.
                LinkSlot::Opening(_) | LinkSlot::Lost => {}
            }
        }
        self.notify_change();
        loop {
            let closing = std::mem::take(&mut *lock(&self.closing));
            if closing.is_empty() {
                return;
            }
            for task in closing {
                // A task that panicked has dropped its link.
                let _panicked = task.await;
            }
        }
    }

    pub(super) fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        lock(&self.lifecycle)
    }

    /// Wakes the tasks that wait for a status change.
    pub(super) fn notify_change(&self) {
        let news = self.lifecycle().update_health();
        self.changes
            .send_modify(|moves| *moves = moves.wrapping_add(1));
        if news {
            self.report_change(UpstreamChange::Health);
        }
    }

    pub(super) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn report_change(&self, what: UpstreamChange) {
        if let Some(me) = self.me.upgrade() {
            self.observer.changed(&me, what);
        }
    }

    /// Stores a fault in an answer of the server whose connection works.
    pub(crate) fn record_fault(&self, fault: &dyn fmt::Display) {
        self.lifecycle().record_error(fault);
    }

    pub(super) fn record_latency(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let before = self.latency.load(Ordering::Relaxed);
        // A lost update loses one sample.
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

fn limits(settings: &ServerSettings) -> ConnectionLimits {
    let limits = settings.limits();
    ConnectionLimits {
        // If the server does not know the first request, the second has the rest of the time.
        probe: limits.probe.min(limits.start / 2),
        ..limits
    }
}

fn count(number: u32) -> usize {
    usize::try_from(number)
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}
