//! Keeps the main link of a server open.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::connect::IdleEviction;
use super::pool::PooledLink;
use super::server::lock;
use super::task::OwnedTask;
use super::{LinkKey, Upstream, UpstreamError};

enum NextStep {
    /// The server was removed.
    Never,
    /// Nothing to do until the status changes.
    Change,
    /// It is too early to open the link.
    Wait(Duration),
}

impl Upstream {
    /// Opens the main link now and keeps it open as long as the upstream lives. A server that an operator must
    /// fix first is not tried again until [`Upstream::retry`].
    pub fn keep_open(self: &Arc<Self>) {
        let mut keeper = lock(&self.reconnect_task);
        if keeper.is_none() {
            let task = tokio::spawn(reconnect_loop(
                Arc::downgrade(self),
                self.subscribe_changes(),
            ));
            *keeper = Some(OwnedTask(task));
        }
    }

    fn next_step(&self) -> NextStep {
        {
            let lifecycle = self.lifecycle();
            if lifecycle.permanent_failure.is_some() {
                return NextStep::Change;
            }
            if let Some(wait) = lifecycle.backoff.reconnect_wait(Instant::now()) {
                return NextStep::Wait(wait);
            }
        }
        match self.find_link(&LinkKey::Main, &self.client_info(), IdleEviction::Forbidden) {
            Ok(PooledLink::Open(_) | PooledLink::Opening(_)) => NextStep::Change,
            Err(UpstreamError::Closed { .. }) => NextStep::Never,
            Err(error) => error.retry_after().map_or(NextStep::Change, NextStep::Wait),
        }
    }
}

async fn reconnect_loop(upstream: Weak<Upstream>, mut moves: watch::Receiver<u64>) {
    loop {
        // Changes from here on are seen below.
        moves.mark_unchanged();
        let next = match upstream.upgrade() {
            Some(live) => live.next_step(),
            None => return,
        };
        match next {
            NextStep::Never => return,
            NextStep::Change => {
                if moves.changed().await.is_err() {
                    return;
                }
            }
            NextStep::Wait(wait) => {
                tokio::select! {
                    () = sleep(wait) => {}
                    changed = moves.changed() => if changed.is_err() { return; },
                }
            }
        }
    }
}
