//! The links of a server: found, watched, lost, closed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::{Era, Face, Link, McpError};
use toolwarden_warden::settings::{SessionSharing, Start};

use super::backoff::luck;
use super::held::{HeldLink, Using};
use super::life::Slot;
use super::opening::{Outcome, Room};
use super::server::lock;
use super::task::OwnedTask;
use super::{LinkKey, Upstream, UpstreamChange, UpstreamError};

/// How often a link is opened for one request whose links end before they are used.
const ROUNDS: usize = 3;
/// How long a link may take to end.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

const ENDED: &str = "the connection ended";
const EXPIRED: &str = "the session expired";
const FAILING: &str = "it failed too often";
const IDLE: &str = "nobody used it";
const NO_ROOM: &str = "its place was needed";

/// What there is for a key.
pub(super) enum Found {
    Open(Using),
    Opening(Outcome),
}

impl Upstream {
    /// The link for a key, opened if there is none. For a server of the stateless era, or one whose
    /// sessions are shared, every key has the main link, opened with the gateway's own face.
    ///
    /// # Errors
    /// It cannot be opened, or not now.
    pub async fn link(
        self: &Arc<Self>,
        key: &LinkKey,
        face: &Face,
    ) -> Result<Arc<HeldLink>, UpstreamError> {
        let using = self.using(key, face).await?;
        Ok(Arc::clone(using.held()))
    }

    /// The conversation ended: its link is closed in the background.
    pub fn release(&self, key: &LinkKey) {
        // The main link is nobody's conversation.
        if *key == LinkKey::Main {
            return;
        }
        let slot = self.life().slots.remove(key);
        if let Some(Slot::Open(held)) = slot {
            self.retire(held);
        }
        self.moved();
    }

    pub(super) async fn using(&self, key: &LinkKey, face: &Face) -> Result<Using, UpstreamError> {
        let mut whose = self.whose(key);
        if whose.is_none() {
            // Only the server tells whether it has sessions.
            drop(self.using_exactly(&LinkKey::Main, &self.face()).await?);
            whose = self.whose(key);
        }
        match whose {
            Some(own) if own == key => self.using_exactly(own, face).await,
            Some(_) | None => self.using_exactly(&LinkKey::Main, &self.face()).await,
        }
    }

    /// The link for a key, if it is open.
    pub(super) fn open_link(&self, key: &LinkKey) -> Option<Using> {
        let key = self.whose(key)?;
        match self.life().slots.get(key) {
            Some(Slot::Open(held)) if !held.has_ended() => Some(Using::of(held)),
            Some(Slot::Open(_) | Slot::Opening(_) | Slot::Lost) | None => None,
        }
    }

    /// Finds a link, or starts to open it.
    pub(super) fn find(
        &self,
        key: &LinkKey,
        face: &Face,
        room: Room,
    ) -> Result<Found, UpstreamError> {
        let now = Instant::now();
        let mut life = self.life();
        if life.closed {
            return Err(self.is_closed());
        }
        match life.slots.get(key) {
            Some(Slot::Open(held)) if !held.has_ended() => return Ok(Found::Open(Using::of(held))),
            Some(Slot::Open(held)) => {
                let held = Arc::clone(held);
                drop(life);
                self.lost(&held);
                return self.find(key, face, room);
            }
            Some(Slot::Opening(attempt)) => return Ok(Found::Opening(attempt.outcome())),
            Some(Slot::Lost) | None => {}
        }
        if let Some(refusal) = self.is_failed(&life, now) {
            return Err(refusal);
        }
        if let Some(wait) = life.backoff.wait(now) {
            let why = life.unreachable.clone();
            let why = why.unwrap_or_else(|| Arc::new(McpError::Closed));
            return Err(self.is_down(why, Some(wait)));
        }
        let outcome = self.start(&mut life, key, face, room);
        drop(life);
        self.moved();
        Ok(Found::Opening(outcome))
    }

    /// A link ended by itself.
    pub(super) fn lost(&self, held: &Arc<HeldLink>) {
        self.give_up(held, ENDED);
    }

    /// The session of a link is gone. Its place is free at once, for the server has forgotten it.
    pub(super) fn expired(&self, held: &Arc<HeldLink>) {
        held.give_place_back();
        self.give_up(held, EXPIRED);
    }

    /// Requests over a link fail and fail.
    pub(super) fn abandon(&self, held: &Arc<HeldLink>) {
        self.give_up(held, FAILING);
    }

    /// Closes the idle link that was not used for the longest time; says whether there was one.
    pub(super) fn make_room(&self, but: &LinkKey) -> bool {
        let oldest = {
            let mut life = self.life();
            let oldest = life.oldest_idle(but);
            if let Some(held) = &oldest {
                life.slots.remove(held.key());
            }
            oldest
        };
        let Some(held) = oldest else {
            return false;
        };
        self.dismiss(held, NO_ROOM);
        true
    }

    pub(super) fn is_closing_links(&self) -> bool {
        let closing = lock(&self.closing);
        closing.iter().any(|task| !task.is_finished())
    }

    /// Closes a link that is no longer among the open ones, in the background.
    pub(super) fn retire(&self, held: Arc<HeldLink>) {
        let Ok(runtime) = Handle::try_current() else {
            // Without a runtime the link ends where it is dropped.
            held.give_place_back();
            return;
        };
        let task = runtime.spawn(async move { held.close(CLOSE_LIMIT).await });
        let mut closing = lock(&self.closing);
        closing.retain(|task| !task.is_finished());
        closing.push(task);
    }

    /// Notices the end of a link, and closes it when nobody uses it for long.
    pub(super) fn watch(&self, held: &Arc<HeldLink>) {
        let stays = *held.key() == LinkKey::Main && self.settings.start == Start::Eager;
        let idle = (!stays).then_some(self.settings.timeouts.idle);
        let (weak, link) = (Arc::downgrade(held), held.link().clone());
        let watcher = tokio::spawn(watch(self.me.clone(), weak, link, idle));
        held.watched_by(OwnedTask(watcher));
    }

    async fn using_exactly(&self, key: &LinkKey, face: &Face) -> Result<Using, UpstreamError> {
        for _ in 0..ROUNDS {
            match self.find(key, face, Room::Make)? {
                Found::Open(using) => return Ok(using),
                Found::Opening(outcome) => match Box::pin(outcome.known()).await {
                    Some(outcome) => outcome?,
                    None => return Err(self.is_closed()),
                },
            }
        }
        Err(self.is_down(Arc::new(McpError::Closed), None))
    }

    /// The key whose link serves a key; nothing while it is not known whether the server has sessions.
    fn whose<'k>(&self, key: &'k LinkKey) -> Option<&'k LinkKey> {
        if *key == LinkKey::Main || self.settings.sessions == SessionSharing::Shared {
            return Some(&LinkKey::Main);
        }
        match self.life().description.as_ref()?.era {
            Era::Stateless => Some(&LinkKey::Main),
            Era::Handshake => Some(key),
        }
    }

    fn give_up(&self, held: &Arc<HeldLink>, reason: &str) {
        {
            let mut life = self.life();
            if !life.has(held) {
                return;
            }
            life.slots.insert(held.key().clone(), Slot::Lost);
            if *held.key() == LinkKey::Main && reason != EXPIRED {
                life.backoff.ended(Instant::now(), held.up(), luck());
            }
            life.note_error(&reason);
        }
        self.dismiss(Arc::clone(held), reason);
    }

    fn close_if_idle(&self, held: &Arc<HeldLink>, idle: Duration) -> bool {
        {
            let mut life = self.life();
            if !life.has(held) {
                return true;
            }
            if !held.is_idle() || held.last_used().elapsed() < idle {
                return false;
            }
            life.slots.remove(held.key());
        }
        self.dismiss(Arc::clone(held), IDLE);
        true
    }

    fn dismiss(&self, held: Arc<HeldLink>, reason: &str) {
        let lost = UpstreamChange::Lost {
            key: held.key().clone(),
            reason: reason.to_owned(),
        };
        self.retire(held);
        self.moved();
        self.tell(lost);
    }
}

async fn watch(upstream: Weak<Upstream>, held: Weak<HeldLink>, link: Link, idle: Option<Duration>) {
    loop {
        let due = match (idle, held.upgrade()) {
            (_, None) => return,
            (None, Some(_)) => None,
            (Some(idle), Some(held)) if !held.is_idle() => Some(Instant::now() + idle),
            (Some(idle), Some(held)) => Some(held.last_used() + idle),
        };
        let passed = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            () = link.ended() => true,
            () = passed => false,
        };
        let (Some(upstream), Some(held)) = (upstream.upgrade(), held.upgrade()) else {
            return;
        };
        if ended {
            upstream.lost(&held);
            return;
        }
        if idle.is_some_and(|idle| upstream.close_if_idle(&held, idle)) {
            return;
        }
    }
}
