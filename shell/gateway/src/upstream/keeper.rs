//! Keeps the main link of a server open.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::opening::Room;
use super::pool::Found;
use super::server::lock;
use super::task::OwnedTask;
use super::{LinkKey, Upstream, UpstreamError};

enum Next {
    /// The server was taken away.
    Never,
    /// Nothing to do until something happens.
    Change,
    /// It is too early.
    After(Duration),
}

impl Upstream {
    /// Opens the main link now and keeps it open as long as the upstream lives. What cannot be used
    /// until somebody changes something is left alone until [`Upstream::retry`].
    pub fn keep_open(self: &Arc<Self>) {
        let mut keeper = lock(&self.keeper);
        if keeper.is_none() {
            let task = tokio::spawn(keep(Arc::downgrade(self), self.moves()));
            *keeper = Some(OwnedTask(task));
        }
    }

    fn tend(&self) -> Next {
        {
            let life = self.life();
            if life.failed.is_some() {
                return Next::Change;
            }
            if let Some(wait) = life.backoff.keeper_wait(Instant::now()) {
                return Next::After(wait);
            }
        }
        match self.find(&LinkKey::Main, &self.face(), Room::Find) {
            Ok(Found::Open(_) | Found::Opening(_)) => Next::Change,
            Err(UpstreamError::Closed { .. }) => Next::Never,
            Err(error) => error.retry_after().map_or(Next::Change, Next::After),
        }
    }
}

async fn keep(upstream: Weak<Upstream>, mut moves: watch::Receiver<u64>) {
    loop {
        // What happens from here on is seen below.
        moves.mark_unchanged();
        let next = match upstream.upgrade() {
            Some(live) => live.tend(),
            None => return,
        };
        match next {
            Next::Never => return,
            Next::Change => {
                if moves.changed().await.is_err() {
                    return;
                }
            }
            Next::After(wait) => {
                tokio::select! {
                    () = sleep(wait) => {}
                    changed = moves.changed() => if changed.is_err() { return; },
                }
            }
        }
    }
}
