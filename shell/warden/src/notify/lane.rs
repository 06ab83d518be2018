use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};

use super::error::DeliveryError;
use super::keeper::Told;
use super::notice::Notice;
use super::pace::Pace;
use super::target::Target;
use crate::guard::Clock;

/// How deliveries to one target go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    /// Its name.
    pub name: String,
    /// How it is told: `webhook`, `slack`, `feishu`, `dingtalk`, `wecom` or `smtp`.
    pub channel: &'static str,
    /// Where it is; the rest of the address may be a secret.
    pub host: String,
    /// How many notices wait for it.
    pub pending: usize,
    /// How many it got since the start.
    pub delivered: u64,
    /// How many were given up since the start.
    pub failed: u64,
    /// When it last got one.
    pub last_success: Option<Timestamp>,
    /// When and why it last did not.
    pub last_error: Option<LastError>,
    /// When the next try is due, after a failed one.
    pub next_try: Option<Timestamp>,
}

/// A failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: Timestamp,
    /// Why, without secrets.
    pub error: String,
}

/// A delivery that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The name of the target.
    pub target: String,
    /// The id of the notice.
    pub notice: String,
    /// How often it was tried.
    pub tries: u32,
    /// Why the last try failed.
    pub error: DeliveryError,
}

/// Hears of deliveries that were given up.
pub type GivenUpHook = Arc<dyn Fn(&GivenUp) + Send + Sync>;

/// The outcome of a try, as it is told to the keeper.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) target: String,
    pub(super) notice: String,
    pub(super) tries: u32,
    pub(super) at: Timestamp,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Delivered,
    /// It is tried again at a time.
    Again(DeliveryError, Timestamp),
    GivenUp(DeliveryError),
}

/// The notices that wait for one target, the oldest first. The first stays until it is settled.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    news: Notify,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) notice: Arc<Notice>,
    pub(super) tries: u32,
}

impl Queue {
    /// Adds a notice, unless so many wait already.
    pub(super) fn push(&self, waiting: Waiting, capacity: usize) -> bool {
        let mut queue = self.lock();
        if queue.len() >= capacity {
            return false;
        }
        queue.push_back(waiting);
        drop(queue);
        self.news.notify_one();
        true
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn drain(&self) -> Vec<Waiting> {
        self.lock().drain(..).collect()
    }

    async fn first(&self) -> Waiting {
        loop {
            let first = self.lock().front().cloned();
            if let Some(first) = first {
                return first;
            }
            self.news.notified().await;
        }
    }

    /// Takes the first away if it is still this one, or notes how often it was tried.
    fn settle(&self, notice: &str, tried_again: Option<u32>) {
        let mut queue = self.lock();
        if let Some(first) = queue.front_mut()
            && first.notice.id == notice
        {
            match tried_again {
                Some(tries) => first.tries = tries,
                None => drop(queue.pop_front()),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells one target, one notice after the other.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) queue: Arc<Queue>,
    pub(super) pace: Pace,
    pub(super) clock: Arc<Clock>,
    /// Weak, so that the keeper ends when nobody sends notices any more.
    pub(super) keeper: mpsc::WeakSender<Told>,
}

impl Worker {
    /// Works until the keeper is gone.
    pub(super) async fn run(self) {
        loop {
            let Waiting { notice, tries } = self.queue.first().await;
            let told = self.target.tell(&notice, self.clock.wall()).await;
            let tries = tries.saturating_add(1);
            let (outcome, pause) = self.judge(told, tries);
            let again = matches!(outcome, Outcome::Again(..)).then_some(tries);
            self.queue.settle(&notice.id, again);
            let tried = Tried {
                target: self.name.clone(),
                notice: notice.id.clone(),
                tries,
                at: self.clock.wall(),
                outcome,
            };
            let Some(keeper) = self.keeper.upgrade() else {
                return;
            };
            if keeper.send(Told::Tried(tried)).await.is_err() {
                return;
            }
            drop(keeper);
            tokio::time::sleep(pause).await;
        }
    }

    fn judge(&self, told: Result<(), DeliveryError>, tries: u32) -> (Outcome, std::time::Duration) {
        let none = std::time::Duration::ZERO;
        match told {
            Ok(()) => (Outcome::Delivered, none),
            Err(error) if error.is_passing() && tries < self.pace.tries => {
                let pause = self.pace.pause(tries, error.asked());
                let due = self.clock.wall().checked_add(pause);
                (Outcome::Again(error, due.unwrap_or(Timestamp::MAX)), pause)
            }
            Err(error) => (Outcome::GivenUp(error), none),
        }
    }
}
