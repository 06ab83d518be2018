//! Attempts to open a link. Whoever wants the same link waits for the same attempt.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};
use toolwarden_mcp::{Era, Face, Link, McpError};

use super::backoff::luck;
use super::held::HeldLink;
use super::life::{HandshakeSupport, Life, Slot};
use super::task::OwnedTask;
use super::{Busy, LinkKey, Upstream, UpstreamChange, UpstreamError};

/// How long an attempt waits for the end of a link whose place it is to take.
const PLACE_WAIT: Duration = Duration::from_secs(10);
/// How long a server whose handshake failed is spoken to in the stateless era alone.
const HANDSHAKE_AGAIN: Duration = Duration::from_secs(60);
/// How long the keeper waits when there is no place for the main link.
const KEEPER_BUSY: Duration = Duration::from_secs(1);

/// A link on its way. Dropping it gives up, and ends what was started.
#[derive(Debug)]
pub(super) struct Attempt {
    number: u64,
    /// Whether one was lost before.
    again: bool,
    outcome: watch::Receiver<Option<Result<(), UpstreamError>>>,
    _task: OwnedTask,
}

/// How an attempt ends.
pub(super) struct Outcome(watch::Receiver<Option<Result<(), UpstreamError>>>);

/// Whether an idle link may be closed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Make,
    Find,
}

struct Opening {
    number: u64,
    key: LinkKey,
    face: Face,
    room: Room,
}

enum Failure {
    Link(McpError),
    NoPlace,
}

impl Attempt {
    pub(super) fn outcome(&self) -> Outcome {
        Outcome(self.outcome.clone())
    }
}

impl Outcome {
    /// Waits for it; nothing if the attempt was given up.
    pub(super) async fn known(mut self) -> Option<Result<(), UpstreamError>> {
        let told = self.0.wait_for(Option::is_some).await.ok()?;
        told.clone()
    }
}

impl Upstream {
    /// Starts to open a link.
    pub(super) fn start(&self, life: &mut Life, key: &LinkKey, face: &Face, room: Room) -> Outcome {
        let again = matches!(life.slots.get(key), Some(Slot::Lost));
        let opening = Opening {
            number: life.next_attempt(),
            key: key.clone(),
            face: face.clone(),
            room,
        };
        let number = opening.number;
        let (tell, outcome) = watch::channel(None);
        let task = OwnedTask(tokio::spawn(attempt(self.me.clone(), opening, tell)));
        let attempt = Attempt {
            number,
            again,
            outcome,
            _task: task,
        };
        let outcome = attempt.outcome();
        life.slots.insert(key.clone(), Slot::Opening(attempt));
        outcome
    }

    fn opened(
        &self,
        opening: Opening,
        link: Link,
        place: OwnedSemaphorePermit,
    ) -> Result<(), UpstreamError> {
        let key = opening.key;
        let handshake = link.server().era == Era::Handshake;
        let preference = self.preference(&key);
        let held = Arc::new(HeldLink::new(key.clone(), link, place));
        let replaced = {
            let mut life = self.life();
            match life.take_attempt(&key, opening.number) {
                None => None,
                Some(attempt) => {
                    let now = Instant::now();
                    life.restarts += u64::from(attempt.again);
                    life.describe(&key, preference, held.server().clone());
                    life.failed = None;
                    life.unreachable = None;
                    life.backoff.opened();
                    life.breaker.eased(now);
                    life.slots
                        .insert(key.clone(), Slot::Open(Arc::clone(&held)));
                    Some(attempt)
                }
            }
        };
        if replaced.is_none() {
            self.retire(held);
            return Err(self.is_closed());
        }
        if handshake && !held.is_channel() {
            held.link().listen();
        }
        // The connection of one conversation says nothing of the requests of others.
        if key == LinkKey::Main {
            self.principals.ease(Instant::now());
        }
        self.watch(&held);
        self.moved();
        self.tell(UpstreamChange::Connected { key });
        Ok(())
    }

    fn not_opened(&self, opening: &Opening, failure: Failure) -> UpstreamError {
        let now = Instant::now();
        let mut life = self.life();
        let Some(attempt) = life.take_attempt(&opening.key, opening.number) else {
            return self.is_closed();
        };
        if attempt.again {
            life.slots.insert(opening.key.clone(), Slot::Lost);
        }
        let error = match failure {
            // The main link serves meanwhile: a server that is well is not down for this.
            Failure::Link(error) if life.is_handshake_attempt(&opening.key) => {
                life.handshake = Some(HandshakeSupport::Refused {
                    until: Some(now + HANDSHAKE_AGAIN),
                });
                self.is_down(Arc::new(error), None)
            }
            Failure::NoPlace => {
                if opening.room == Room::Find {
                    life.backoff.postpone(now, KEEPER_BUSY);
                }
                UpstreamError::Busy {
                    server: Arc::clone(&self.name),
                    what: Busy::Links {
                        limit: self.settings.max_links.get(),
                    },
                }
            }
            Failure::Link(error) if error.is_permanent() => {
                let error = Arc::new(error);
                life.note_permanent(Arc::clone(&error), now);
                self.is_failed(&life, now)
                    .unwrap_or_else(|| self.is_closed())
            }
            Failure::Link(error) => {
                let error = Arc::new(error);
                life.backoff.failed(now, luck());
                life.breaker.failed(now);
                life.note_error(&error);
                life.unreachable = Some(Arc::clone(&error));
                self.is_down(error, life.backoff.wait(now))
            }
        };
        drop(life);
        self.moved();
        error
    }

    /// The refusal to try a server again that cannot be used.
    pub(super) fn is_failed(&self, life: &Life, now: Instant) -> Option<UpstreamError> {
        let (source, again) = life.failed.as_ref()?;
        let retry_after = again.saturating_duration_since(now);
        (!retry_after.is_zero()).then(|| UpstreamError::Permanent {
            server: Arc::clone(&self.name),
            retry_after,
            source: Arc::clone(source),
        })
    }

    pub(super) fn is_down(&self, source: Arc<McpError>, wait: Option<Duration>) -> UpstreamError {
        UpstreamError::Down {
            server: Arc::clone(&self.name),
            retry_after: wait.unwrap_or(self.settings.restart.first),
            source,
        }
    }

    pub(super) fn is_closed(&self) -> UpstreamError {
        UpstreamError::Closed {
            server: Arc::clone(&self.name),
        }
    }
}

impl Life {
    /// Takes an attempt out if it is still wanted.
    fn take_attempt(&mut self, key: &LinkKey, number: u64) -> Option<Attempt> {
        match self.slots.remove(key) {
            Some(Slot::Opening(attempt)) if attempt.number == number => Some(attempt),
            Some(other) => {
                self.slots.insert(key.clone(), other);
                None
            }
            None => None,
        }
    }
}

async fn attempt(
    upstream: Weak<Upstream>,
    opening: Opening,
    tell: watch::Sender<Option<Result<(), UpstreamError>>>,
) {
    let connected = connect(&upstream, &opening).await;
    // Nothing is awaited from here on: the owner of this task, taken out, ends it where it next waits.
    let Some(upstream) = upstream.upgrade() else {
        return;
    };
    let outcome = match connected {
        Ok((link, place)) => upstream.opened(opening, link, place),
        Err(failure) => Err(upstream.not_opened(&opening, failure)),
    };
    tell.send_replace(Some(outcome));
}

/// Does not keep the upstream alive.
async fn connect(
    upstream: &Weak<Upstream>,
    opening: &Opening,
) -> Result<(Link, OwnedSemaphorePermit), Failure> {
    let place = place(upstream, opening).await.ok_or(Failure::NoPlace)?;
    let Some(live) = upstream.upgrade() else {
        return Err(Failure::Link(McpError::Closed));
    };
    let audience = live.hearing.audience(&live, &opening.key);
    let (settings, limits) = (live.settings(), live.limits.clone());
    let preference = live.preference(&opening.key);
    drop(live);
    // The largest future here; on the heap it does not grow the task.
    let link = Box::pin(Link::open_in(
        &settings.endpoint,
        &limits,
        &opening.face,
        audience,
        preference,
    ))
    .await;
    Ok((link.map_err(Failure::Link)?, place))
}

async fn place(upstream: &Weak<Upstream>, opening: &Opening) -> Option<OwnedSemaphorePermit> {
    let places = {
        let live = upstream.upgrade()?;
        let places = Arc::clone(&live.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Some(place);
        }
        let made = opening.room == Room::Make && live.make_room(&opening.key);
        if !made && !live.is_closing_links() {
            return None;
        }
        places
    };
    timeout(PLACE_WAIT, places.acquire_owned()).await.ok()?.ok()
}
