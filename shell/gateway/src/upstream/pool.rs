//! The links of a server: found, watched, lost, closed.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::protocol::STATELESS_VERSION;
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

/// How long a link that is for lists alone is kept without use.
const LIST_IDLE: Duration = Duration::from_secs(30);

const ENDED: &str = "the connection ended";
const DISCONNECTED: &str = "the gateway closed the connection";
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
    /// The link for a key, opened if there is none. For a server without a handshake, or one whose
    /// sessions are shared, every conversation has the main link, opened with the gateway's own face.
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

    /// Whether the server answers the handshake over a link of this key, which is opened where that is not
    /// known. A link that turns out to be of the stateless era is closed: the main link serves for it.
    ///
    /// # Errors
    /// It cannot be opened, or not now.
    pub(crate) async fn speaks_handshake(
        &self,
        key: &LinkKey,
        face: &Face,
    ) -> Result<bool, UpstreamError> {
        if let Some(known) = self.handshake_support() {
            return Ok(known);
        }
        let era = match self.using_exactly(key, face).await {
            Ok(using) => using.held().server().era,
            // Where the attempt failed, the main link serves for a while.
            Err(_) if self.handshake_support() == Some(false) => return Ok(false),
            Err(error) => return Err(error),
        };
        if era == Era::Stateless {
            self.release(key);
        }
        Ok(era == Era::Handshake)
    }

    /// Whether the link of a key is open.
    pub(crate) fn is_open(&self, key: &LinkKey) -> bool {
        self.open_link(key).is_some()
    }

    /// Whether a link is open under this very key.
    pub(crate) fn has_own_link(&self, key: &LinkKey) -> bool {
        matches!(self.life().slots.get(key), Some(Slot::Open(_)))
    }

    /// Whether conversations share links.
    pub(crate) fn is_shared(&self) -> bool {
        self.settings.sessions == SessionSharing::Shared
    }

    /// The conversation ended: its link is closed in the background.
    pub fn release(&self, key: &LinkKey) {
        // The main link belongs to no conversation.
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
        let own = match whose {
            Some(own) if *own != LinkKey::Main => own,
            Some(_) | None => return self.using_exactly(&LinkKey::Main, &self.face()).await,
        };
        let using = self.using_exactly(own, face).await?;
        if using.held().server().era == Era::Handshake {
            return Ok(using);
        }
        // Another version of the server gave the handshake up; the next request goes over the main link.
        drop(using);
        self.release(key);
        let offered = vec![STATELESS_VERSION.to_owned()];
        Err(self.is_down(Arc::new(McpError::NoCommonVersion { offered }), None))
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
                self.lost(&held, None);
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

    /// A link ended by itself. How its program ended and what it wrote last may say why.
    pub(super) fn lost(&self, held: &Arc<HeldLink>, status: Option<ExitStatus>) {
        let link = held.link();
        let noted = match (link.excess(), status) {
            (Some(excess), _) => format!("{DISCONNECTED}: {excess}"),
            (None, Some(status)) => format!("it exited ({status}){}", link.evidence()),
            (None, None) => format!("{ENDED}{}", link.evidence()),
        };
        self.give_up_noting(held, ENDED, &noted);
    }

    /// A link ended under a request, which knows more.
    pub(super) fn lost_by(&self, held: &Arc<HeldLink>, error: &McpError) {
        self.give_up_noting(held, ENDED, &error.to_string());
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
        let idle = match held.key() {
            // Lists are kept without it.
            LinkKey::Variant(_) if !self.is_shared() => self.settings.timeouts.idle.min(LIST_IDLE),
            _ => self.settings.timeouts.idle,
        };
        let idle = (!stays).then_some(idle);
        let (weak, link) = (Arc::downgrade(held), held.link().clone());
        let watcher = tokio::spawn(watch(self.me.clone(), weak, link, idle));
        held.watched_by(OwnedTask(watcher));
    }

    async fn using_exactly(&self, key: &LinkKey, face: &Face) -> Result<Using, UpstreamError> {
        for _ in 0..ROUNDS {
            let room = match key {
                // A list is not worth the session of another conversation.
                LinkKey::Variant(_) if !self.is_shared() => Room::Find,
                _ => Room::Make,
            };
            match self.find(key, face, room)? {
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
        match key {
            LinkKey::Main | LinkKey::Variant(_) => return Some(key),
            LinkKey::Of(_) if self.is_shared() => return Some(&LinkKey::Main),
            LinkKey::Of(_) => {}
        }
        let main_era = self.life().description.as_ref()?.era;
        match (main_era, self.handshake_support()) {
            (Era::Handshake, _) | (Era::Stateless, Some(true)) => Some(key),
            (Era::Stateless, Some(false) | None) => Some(&LinkKey::Main),
        }
    }

    fn give_up(&self, held: &Arc<HeldLink>, reason: &str) {
        self.give_up_noting(held, reason, reason);
    }

    fn give_up_noting(&self, held: &Arc<HeldLink>, reason: &str, noted: &str) {
        {
            let mut life = self.life();
            if !life.has(held) {
                return;
            }
            life.slots.insert(held.key().clone(), Slot::Lost);
            if *held.key() == LinkKey::Main && reason != EXPIRED {
                life.backoff.ended(Instant::now(), held.up(), luck());
            }
            life.note_error(&noted);
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
            unused: reason == IDLE || reason == NO_ROOM,
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
            upstream.lost(&held, link.exit_status().await);
            return;
        }
        if idle.is_some_and(|idle| upstream.close_if_idle(&held, idle)) {
            return;
        }
    }
}
