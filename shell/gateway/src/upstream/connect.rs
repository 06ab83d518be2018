//! Attempts to open a link. All requests that need the same link wait for the same attempt.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};
use toolwarden_mcp::{ClientInfo, Era, McpError, ServerConnection};

use super::backoff::random_fraction;
use super::lifecycle::{HandshakeSupport, Lifecycle, LinkSlot};
use super::open_link::OpenLink;
use super::task::OwnedTask;
use super::{BusyReason, LinkKey, Upstream, UpstreamChange, UpstreamError};

/// How long an attempt waits for another link to close and release its permit.
const SLOT_WAIT: Duration = Duration::from_secs(10);
/// How long the gateway uses only the stateless era with a server whose handshake failed.
const HANDSHAKE_RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long the keeper waits when the link limit leaves no room for the main link.
const RECONNECT_BUSY_WAIT: Duration = Duration::from_secs(1);

/// A link that is being opened. Dropping it cancels the attempt and ends what it started.
#[derive(Debug)]
pub(super) struct ConnectAttempt {
    number: u64,
    /// Whether a link of this key was lost before.
    is_reconnect: bool,
    outcome: watch::Receiver<Option<Result<(), UpstreamError>>>,
    _task: OwnedTask,
}

/// The outcome of an attempt.
pub(super) struct ConnectOutcome(watch::Receiver<Option<Result<(), UpstreamError>>>);

/// Whether an idle link may be closed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleEviction {
    Allowed,
    Forbidden,
}

struct ConnectRequest {
    number: u64,
    key: LinkKey,
    client_info: ClientInfo,
    eviction: IdleEviction,
}

enum ConnectFailure {
    Link(McpError),
    NoSlot,
}

impl ConnectAttempt {
    pub(super) fn outcome(&self) -> ConnectOutcome {
        ConnectOutcome(self.outcome.clone())
    }
}

impl ConnectOutcome {
    /// Waits for the outcome; `None` if the attempt was cancelled.
    pub(super) async fn wait(mut self) -> Option<Result<(), UpstreamError>> {
        let told = self.0.wait_for(Option::is_some).await.ok()?;
        told.clone()
    }
}

impl Upstream {
    /// Starts to open a link.
    pub(super) fn start_connect(
        &self,
        lifecycle: &mut Lifecycle,
        key: &LinkKey,
        client_info: &ClientInfo,
        room: IdleEviction,
    ) -> ConnectOutcome {
        let again = matches!(lifecycle.slots.get(key), Some(LinkSlot::Lost));
        let connect_request = ConnectRequest {
            number: lifecycle.next_attempt(),
            key: key.clone(),
            client_info: client_info.clone(),
            eviction: room,
        };
        let number = connect_request.number;
        let (tell, outcome) = watch::channel(None);
        let task = OwnedTask(tokio::spawn(run_attempt(
            self.me.clone(),
            connect_request,
            tell,
        )));
        let attempt = ConnectAttempt {
            number,
            is_reconnect: again,
            outcome,
            _task: task,
        };
        let outcome = attempt.outcome();
        lifecycle
            .slots
            .insert(key.clone(), LinkSlot::Opening(attempt));
        outcome
    }

    fn on_connected(
        &self,
        connect_request: ConnectRequest,
        link: ServerConnection,
        place: OwnedSemaphorePermit,
    ) -> Result<(), UpstreamError> {
        let key = connect_request.key;
        let handshake = link.server().era == Era::Handshake;
        let preference = self.era_preference(&key);
        let open_link = Arc::new(OpenLink::new(key.clone(), link, place));
        let replaced = {
            let mut lifecycle = self.lifecycle();
            match lifecycle.take_attempt(&key, connect_request.number) {
                None => None,
                Some(attempt) => {
                    let now = Instant::now();
                    lifecycle.restarts += u64::from(attempt.is_reconnect);
                    lifecycle.record_description(&key, preference, open_link.server().clone());
                    lifecycle.permanent_failure = None;
                    lifecycle.last_connect_error = None;
                    lifecycle.backoff.record_success();
                    lifecycle.breaker.allow_trial(now);
                    lifecycle
                        .slots
                        .insert(key.clone(), LinkSlot::Open(Arc::clone(&open_link)));
                    Some(attempt)
                }
            }
        };
        if replaced.is_none() {
            self.close_in_background(open_link);
            return Err(self.closed_error());
        }
        if handshake && !open_link.is_channel() {
            open_link.link().listen();
        }
        // The connection of one conversation says nothing about the requests of others.
        if key == LinkKey::Main {
            self.principals.allow_trials(Instant::now());
        }
        self.spawn_watcher(&open_link);
        self.notify_change();
        self.report_change(UpstreamChange::Connected { key });
        Ok(())
    }

    fn on_connect_failed(
        &self,
        connect_request: &ConnectRequest,
        failure: ConnectFailure,
    ) -> UpstreamError {
        let now = Instant::now();
        let mut lifecycle = self.lifecycle();
        let Some(attempt) = lifecycle.take_attempt(&connect_request.key, connect_request.number)
        else {
            return self.closed_error();
        };
        if attempt.is_reconnect {
            lifecycle
                .slots
                .insert(connect_request.key.clone(), LinkSlot::Lost);
        }
        let error = match failure {
            // The main link serves in the meantime: this does not make a healthy server count as down.
            ConnectFailure::Link(error) if lifecycle.is_handshake_attempt(&connect_request.key) => {
                lifecycle.handshake = Some(HandshakeSupport::Refused {
                    until: Some(now + HANDSHAKE_RETRY_AFTER),
                });
                self.down_error(Arc::new(error), None)
            }
            ConnectFailure::NoSlot => {
                if connect_request.eviction == IdleEviction::Forbidden {
                    lifecycle.backoff.postpone(now, RECONNECT_BUSY_WAIT);
                }
                UpstreamError::Busy {
                    server: Arc::clone(self.name.as_arc()),
                    what: BusyReason::Links {
                        limit: self.settings.max_links.get(),
                    },
                }
            }
            ConnectFailure::Link(error) if error.is_permanent() => {
                let error = Arc::new(error);
                lifecycle.record_permanent_failure(Arc::clone(&error), now);
                self.permanent_failure_error(&lifecycle, now)
                    .unwrap_or_else(|| self.closed_error())
            }
            ConnectFailure::Link(error) => {
                let error = Arc::new(error);
                lifecycle.backoff.record_failure(now, random_fraction());
                lifecycle.breaker.record_failure(now);
                lifecycle.record_error(&error);
                lifecycle.last_connect_error = Some(Arc::clone(&error));
                self.down_error(error, lifecycle.backoff.wait(now))
            }
        };
        drop(lifecycle);
        self.notify_change();
        error
    }

    /// The error for a server that cannot be used and is not due to be tried again.
    pub(super) fn permanent_failure_error(
        &self,
        lifecycle: &Lifecycle,
        now: Instant,
    ) -> Option<UpstreamError> {
        let (source, again) = lifecycle.permanent_failure.as_ref()?;
        let retry_after = again.saturating_duration_since(now);
        (!retry_after.is_zero()).then(|| UpstreamError::Permanent {
            server: Arc::clone(self.name.as_arc()),
            retry_after,
            source: Arc::clone(source),
        })
    }

    pub(super) fn down_error(
        &self,
        source: Arc<McpError>,
        wait: Option<Duration>,
    ) -> UpstreamError {
        UpstreamError::Down {
            server: Arc::clone(self.name.as_arc()),
            retry_after: wait.unwrap_or(self.settings.restart.first),
            source,
        }
    }

    pub(super) fn closed_error(&self) -> UpstreamError {
        UpstreamError::Closed {
            server: Arc::clone(self.name.as_arc()),
        }
    }
}

impl Lifecycle {
    /// Removes an attempt if it is still wanted.
    fn take_attempt(&mut self, key: &LinkKey, number: u64) -> Option<ConnectAttempt> {
        match self.slots.remove(key) {
            Some(LinkSlot::Opening(attempt)) if attempt.number == number => Some(attempt),
            Some(other) => {
                self.slots.insert(key.clone(), other);
                None
            }
            None => None,
        }
    }
}

async fn run_attempt(
    upstream: Weak<Upstream>,
    connect_request: ConnectRequest,
    tell: watch::Sender<Option<Result<(), UpstreamError>>>,
) {
    let connected = connect(&upstream, &connect_request).await;
    // No await from here on: once the owner of this task is removed, the task ends at its next await.
    let Some(upstream) = upstream.upgrade() else {
        return;
    };
    let outcome = match connected {
        Ok((link, place)) => upstream.on_connected(connect_request, link, place),
        Err(failure) => Err(upstream.on_connect_failed(&connect_request, failure)),
    };
    tell.send_replace(Some(outcome));
}

/// Does not keep the upstream alive.
async fn connect(
    upstream: &Weak<Upstream>,
    connect_request: &ConnectRequest,
) -> Result<(ServerConnection, OwnedSemaphorePermit), ConnectFailure> {
    let place = wait_for_link_slot(upstream, connect_request)
        .await
        .ok_or(ConnectFailure::NoSlot)?;
    let Some(live) = upstream.upgrade() else {
        return Err(ConnectFailure::Link(McpError::Closed));
    };
    let audience = live.observer.audience(&live, &connect_request.key);
    let (settings, limits) = (live.settings(), live.limits.clone());
    let preference = live.era_preference(&connect_request.key);
    drop(live);
    // The largest future here; boxing keeps the task small.
    let link = Box::pin(ServerConnection::open_in_era(
        &settings.endpoint,
        &limits,
        &connect_request.client_info,
        audience,
        preference,
    ))
    .await;
    Ok((link.map_err(ConnectFailure::Link)?, place))
}

async fn wait_for_link_slot(
    upstream: &Weak<Upstream>,
    connect_request: &ConnectRequest,
) -> Option<OwnedSemaphorePermit> {
    let places = {
        let live = upstream.upgrade()?;
        let places = Arc::clone(&live.link_slots);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Some(place);
        }
        let made = connect_request.eviction == IdleEviction::Allowed
            && live.evict_idle_link(&connect_request.key);
        if !made && !live.is_closing_links() {
            return None;
        }
        places
    };
    timeout(SLOT_WAIT, places.acquire_owned()).await.ok()?.ok()
}
