//! The links of a server: finds, watches and closes them.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::protocol::STATELESS_VERSION;
use toolwarden_mcp::{ClientInfo, Era, McpError, ServerConnection};
use toolwarden_settings::{SessionSharing, StartMode};

use super::backoff::random_fraction;
use super::connect::{ConnectOutcome, IdleEviction};
use super::lifecycle::LinkSlot;
use super::open_link::{LinkUse, OpenLink};
use super::server::lock;
use super::task::OwnedTask;
use super::{LinkKey, Upstream, UpstreamChange, UpstreamError};

/// How many links are opened for one request if each ends before it is used.
const MAX_OPEN_ATTEMPTS: usize = 3;
/// How long a link may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// How long an idle link that serves only lists is kept.
const LIST_IDLE: Duration = Duration::from_secs(30);

const ENDED: &str = "the connection ended";
const DISCONNECTED: &str = "the gateway closed the connection";
const EXPIRED: &str = "the session expired";
const FAILING: &str = "it failed too often";
const IDLE: &str = "it was idle";
const EVICTED: &str = "another connection needed its place";

/// What a lookup of a key found.
pub(super) enum PooledLink {
    Open(LinkUse),
    Opening(ConnectOutcome),
}

impl Upstream {
    /// The link for a key, opened if necessary. If a server has no handshake or its sessions are shared, every
    /// conversation uses the main link, which is opened with the gateway's own description.
    ///
    /// # Errors
    /// The link cannot be opened, or not now.
    pub async fn link(
        self: &Arc<Self>,
        key: &LinkKey,
        client_info: &ClientInfo,
    ) -> Result<Arc<OpenLink>, UpstreamError> {
        let using = self.acquire(key, client_info).await?;
        Ok(Arc::clone(using.open_link()))
    }

    /// Whether the server answers the handshake over a link of this key, which is opened if that is unknown. A
    /// link that turns out to be of the stateless era is closed, and the main link is used instead.
    ///
    /// # Errors
    /// The link cannot be opened, or not now.
    pub(crate) async fn speaks_handshake(
        &self,
        key: &LinkKey,
        client_info: &ClientInfo,
    ) -> Result<bool, UpstreamError> {
        if let Some(known) = self.handshake_support() {
            return Ok(known);
        }
        let era = match self.acquire_exact(key, client_info).await {
            Ok(using) => using.open_link().server().era,
            // After a failed attempt, the main link is used for a while.
            Err(_) if self.handshake_support() == Some(false) => return Ok(false),
            Err(error) => return Err(error),
        };
        if era == Era::Stateless {
            self.close_conversation_link(key);
        }
        Ok(era == Era::Handshake)
    }

    /// Whether the link of a key is open.
    pub(crate) fn is_open(&self, key: &LinkKey) -> bool {
        self.open_link(key).is_some()
    }

    /// Whether a link is open under exactly this key.
    pub(crate) fn has_own_link(&self, key: &LinkKey) -> bool {
        matches!(self.lifecycle().slots.get(key), Some(LinkSlot::Open(_)))
    }

    /// Whether conversations share links.
    pub(crate) fn is_shared(&self) -> bool {
        self.settings.sessions == SessionSharing::Shared
    }

    /// Closes the link of a conversation that ended, in the background.
    pub fn close_conversation_link(&self, key: &LinkKey) {
        // The main link belongs to no conversation.
        if *key == LinkKey::Main {
            return;
        }
        let slot = self.lifecycle().slots.remove(key);
        if let Some(LinkSlot::Open(open_link)) = slot {
            self.close_in_background(open_link);
        }
        self.notify_change();
    }

    pub(super) async fn acquire(
        &self,
        key: &LinkKey,
        client_info: &ClientInfo,
    ) -> Result<LinkUse, UpstreamError> {
        let mut whose = self.effective_key(key);
        if whose.is_none() {
            // Only an open link shows whether the server has sessions.
            drop(
                self.acquire_exact(&LinkKey::Main, &self.client_info())
                    .await?,
            );
            whose = self.effective_key(key);
        }
        let own = match whose {
            Some(own) if *own != LinkKey::Main => own,
            Some(_) | None => {
                return self
                    .acquire_exact(&LinkKey::Main, &self.client_info())
                    .await;
            }
        };
        let using = self.acquire_exact(own, client_info).await?;
        if using.open_link().server().era == Era::Handshake {
            return Ok(using);
        }
        // A new version of the server no longer speaks the handshake; the next request uses the main link.
        drop(using);
        self.close_conversation_link(key);
        let offered = vec![STATELESS_VERSION.to_owned()];
        Err(self.down_error(Arc::new(McpError::NoCommonVersion { offered }), None))
    }

    /// The link for a key, if it is open.
    pub(super) fn open_link(&self, key: &LinkKey) -> Option<LinkUse> {
        let key = self.effective_key(key)?;
        match self.lifecycle().slots.get(key) {
            Some(LinkSlot::Open(open_link)) if !open_link.has_ended() => {
                Some(LinkUse::new(open_link))
            }
            Some(LinkSlot::Open(_) | LinkSlot::Opening(_) | LinkSlot::Lost) | None => None,
        }
    }

    /// Finds a link, or starts to open it.
    pub(super) fn find_link(
        &self,
        key: &LinkKey,
        client_info: &ClientInfo,
        room: IdleEviction,
    ) -> Result<PooledLink, UpstreamError> {
        let now = Instant::now();
        let mut lifecycle = self.lifecycle();
        if lifecycle.closed {
            return Err(self.closed_error());
        }
        match lifecycle.slots.get(key) {
            Some(LinkSlot::Open(open_link)) if !open_link.has_ended() => {
                return Ok(PooledLink::Open(LinkUse::new(open_link)));
            }
            Some(LinkSlot::Open(open_link)) => {
                let open_link = Arc::clone(open_link);
                drop(lifecycle);
                self.on_link_lost(&open_link, None);
                return self.find_link(key, client_info, room);
            }
            Some(LinkSlot::Opening(attempt)) => return Ok(PooledLink::Opening(attempt.outcome())),
            Some(LinkSlot::Lost) | None => {}
        }
        if let Some(refusal) = self.permanent_failure_error(&lifecycle, now) {
            return Err(refusal);
        }
        if let Some(wait) = lifecycle.backoff.wait(now) {
            let why = lifecycle.last_connect_error.clone();
            let why = why.unwrap_or_else(|| Arc::new(McpError::Closed));
            return Err(self.down_error(why, Some(wait)));
        }
        let outcome = self.start_connect(&mut lifecycle, key, client_info, room);
        drop(lifecycle);
        self.notify_change();
        Ok(PooledLink::Opening(outcome))
    }

    /// Handles a link that ended on its own. The program's exit status and last output may say why.
    pub(super) fn on_link_lost(&self, open_link: &Arc<OpenLink>, status: Option<ExitStatus>) {
        let link = open_link.link();
        let noted = match (link.message_rate_error(), status) {
            (Some(excess), _) => format!("{DISCONNECTED}: {excess}"),
            (None, Some(status)) => format!("it exited ({status}){}", link.diagnostics()),
            (None, None) => format!("{ENDED}{}", link.diagnostics()),
        };
        self.discard_link_with_note(open_link, ENDED, &noted);
    }

    /// Handles a link that ended during a request, whose error says more.
    pub(super) fn on_link_error(&self, open_link: &Arc<OpenLink>, error: &McpError) {
        self.discard_link_with_note(open_link, ENDED, &error.to_string());
    }

    /// Handles an expired session. Its permit is released at once, because the server has forgotten the session.
    pub(super) fn on_session_expired(&self, open_link: &Arc<OpenLink>) {
        open_link.release_slot();
        self.discard_link(open_link, EXPIRED);
    }

    /// Gives up a link over which requests keep failing.
    pub(super) fn drop_failing_link(&self, open_link: &Arc<OpenLink>) {
        self.discard_link(open_link, FAILING);
    }

    /// Closes the idle link that was unused for the longest time; returns whether there was one.
    pub(super) fn evict_idle_link(&self, but: &LinkKey) -> bool {
        let oldest = {
            let mut lifecycle = self.lifecycle();
            let oldest = lifecycle.oldest_idle(but);
            if let Some(open_link) = &oldest {
                lifecycle.slots.remove(open_link.key());
            }
            oldest
        };
        let Some(open_link) = oldest else {
            return false;
        };
        self.finish_discard(open_link, EVICTED);
        true
    }

    pub(super) fn is_closing_links(&self) -> bool {
        let closing = lock(&self.closing);
        closing.iter().any(|task| !task.is_finished())
    }

    /// Closes, in the background, a link that is no longer among the open ones.
    pub(super) fn close_in_background(&self, open_link: Arc<OpenLink>) {
        let Ok(runtime) = Handle::try_current() else {
            // Without a runtime, the link ends when it is dropped.
            open_link.release_slot();
            return;
        };
        let task = runtime.spawn(async move { open_link.close(CLOSE_LIMIT).await });
        let mut closing = lock(&self.closing);
        closing.retain(|task| !task.is_finished());
        closing.push(task);
    }

    /// Starts a task that notices the end of a link and closes the link when it is idle for too long.
    pub(super) fn spawn_watcher(&self, open_link: &Arc<OpenLink>) {
        let stays = *open_link.key() == LinkKey::Main && self.settings.start == StartMode::Eager;
        let idle = match open_link.key() {
            // The cached lists do not need the link.
            LinkKey::Variant(_) if !self.is_shared() => self.settings.timeouts.idle.min(LIST_IDLE),
            _ => self.settings.timeouts.idle,
        };
        let idle = (!stays).then_some(idle);
        let (weak, link) = (Arc::downgrade(open_link), open_link.link().clone());
        let watcher = tokio::spawn(watch_link(self.me.clone(), weak, link, idle));
        open_link.set_watcher(OwnedTask(watcher));
    }

    async fn acquire_exact(
        &self,
        key: &LinkKey,
        client_info: &ClientInfo,
    ) -> Result<LinkUse, UpstreamError> {
        for _ in 0..MAX_OPEN_ATTEMPTS {
            let room = match key {
                // A link for lists does not displace the session of a conversation.
                LinkKey::Variant(_) if !self.is_shared() => IdleEviction::Forbidden,
                _ => IdleEviction::Allowed,
            };
            match self.find_link(key, client_info, room)? {
                PooledLink::Open(using) => return Ok(using),
                PooledLink::Opening(outcome) => match Box::pin(outcome.wait()).await {
                    Some(outcome) => outcome?,
                    None => return Err(self.closed_error()),
                },
            }
        }
        Err(self.down_error(Arc::new(McpError::Closed), None))
    }

    /// The key whose link serves a key; `None` until it is known whether the server has sessions.
    fn effective_key<'k>(&self, key: &'k LinkKey) -> Option<&'k LinkKey> {
        match key {
            LinkKey::Main | LinkKey::Variant(_) => return Some(key),
            LinkKey::Conversation(_) if self.is_shared() => return Some(&LinkKey::Main),
            LinkKey::Conversation(_) => {}
        }
        let main_era = self.lifecycle().description.as_ref()?.era;
        match (main_era, self.handshake_support()) {
            (Era::Handshake, _) | (Era::Stateless, Some(true)) => Some(key),
            (Era::Stateless, Some(false) | None) => Some(&LinkKey::Main),
        }
    }

    fn discard_link(&self, open_link: &Arc<OpenLink>, reason: &str) {
        self.discard_link_with_note(open_link, reason, reason);
    }

    fn discard_link_with_note(&self, open_link: &Arc<OpenLink>, reason: &str, noted: &str) {
        {
            let mut lifecycle = self.lifecycle();
            if !lifecycle.is_current(open_link) {
                return;
            }
            lifecycle
                .slots
                .insert(open_link.key().clone(), LinkSlot::Lost);
            if *open_link.key() == LinkKey::Main && reason != EXPIRED {
                lifecycle
                    .backoff
                    .record_end(Instant::now(), open_link.uptime(), random_fraction());
            }
            lifecycle.record_error(&noted);
        }
        self.finish_discard(Arc::clone(open_link), reason);
    }

    fn close_if_idle(&self, open_link: &Arc<OpenLink>, idle: Duration) -> bool {
        {
            let mut lifecycle = self.lifecycle();
            if !lifecycle.is_current(open_link) {
                return true;
            }
            if !open_link.is_idle() || open_link.last_used().elapsed() < idle {
                return false;
            }
            lifecycle.slots.remove(open_link.key());
        }
        self.finish_discard(Arc::clone(open_link), IDLE);
        true
    }

    fn finish_discard(&self, open_link: Arc<OpenLink>, reason: &str) {
        let lost = UpstreamChange::Lost {
            key: open_link.key().clone(),
            reason: reason.to_owned(),
            unused: reason == IDLE || reason == EVICTED,
        };
        self.close_in_background(open_link);
        self.notify_change();
        self.report_change(lost);
    }
}

async fn watch_link(
    upstream: Weak<Upstream>,
    open_link: Weak<OpenLink>,
    link: ServerConnection,
    idle: Option<Duration>,
) {
    loop {
        let due = match (idle, open_link.upgrade()) {
            (_, None) => return,
            (None, Some(_)) => None,
            (Some(idle), Some(open_link)) if !open_link.is_idle() => Some(Instant::now() + idle),
            (Some(idle), Some(open_link)) => Some(open_link.last_used() + idle),
        };
        let passed = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            () = link.closed() => true,
            () = passed => false,
        };
        let (Some(upstream), Some(open_link)) = (upstream.upgrade(), open_link.upgrade()) else {
            return;
        };
        if ended {
            upstream.on_link_lost(&open_link, link.exit_status().await);
            return;
        }
        if idle.is_some_and(|idle| upstream.close_if_idle(&open_link, idle)) {
            return;
        }
    }
}
