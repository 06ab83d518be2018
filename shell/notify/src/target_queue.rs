use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};

use super::delivery_command::DeliveryCommand;
use super::error::DeliveryError;
use super::notice::Notice;
use super::retry::RetryPolicy;
use super::target_client::TargetClient;
use super::target_status::{AttemptReport, DeliveryOutcome};
use toolwarden_live_guard::Clock;

/// The pending notices of one target, the oldest first. The first stays until it is settled.
#[derive(Debug, Default)]
pub(super) struct NoticeQueue {
    notices: Mutex<VecDeque<QueuedNotice>>,
    added: Notify,
}

#[derive(Clone, Debug)]
pub(super) struct QueuedNotice {
    pub(super) notice: Arc<Notice>,
    pub(super) tries: u32,
}

impl NoticeQueue {
    /// Adds a notice, unless the queue is full.
    pub(super) fn push(&self, waiting: QueuedNotice, capacity: usize) -> bool {
        let mut queue = self.lock();
        if queue.len() >= capacity {
            return false;
        }
        queue.push_back(waiting);
        drop(queue);
        self.added.notify_one();
        true
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn drain(&self) -> Vec<QueuedNotice> {
        self.lock().drain(..).collect()
    }

    async fn first(&self) -> QueuedNotice {
        loop {
            let first = self.lock().front().cloned();
            if let Some(first) = first {
                return first;
            }
            self.added.notified().await;
        }
    }

    /// Removes the first notice if it is still this one, or stores its number of attempts.
    fn finish_first(&self, notice: &str, tried_again: Option<u32>) {
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<QueuedNotice>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delivers the notices of one target, one after the other.
#[derive(Debug)]
pub(super) struct TargetWorker {
    pub(super) name: String,
    pub(super) target: TargetClient,
    pub(super) queue: Arc<NoticeQueue>,
    pub(super) retry: RetryPolicy,
    pub(super) clock: Arc<Clock>,
    /// Weak, so that the thread ends when all senders of notices are gone.
    pub(super) commands: mpsc::WeakSender<DeliveryCommand>,
}

impl TargetWorker {
    /// Runs until the thread is gone.
    pub(super) async fn run(self) {
        loop {
            let QueuedNotice { notice, tries } = self.queue.first().await;
            let told = self.target.deliver(&notice, self.clock.wall()).await;
            let tries = tries.saturating_add(1);
            let (outcome, pause) = self.classify_attempt(told, tries);
            let again = matches!(outcome, DeliveryOutcome::Retry(..)).then_some(tries);
            self.queue.finish_first(&notice.id, again);
            let tried = AttemptReport {
                target: self.name.clone(),
                notice: notice.id.clone(),
                tries,
                at: self.clock.wall(),
                outcome,
            };
            let Some(keeper) = self.commands.upgrade() else {
                return;
            };
            if keeper
                .send(DeliveryCommand::RecordAttempt(tried))
                .await
                .is_err()
            {
                return;
            }
            drop(keeper);
            tokio::time::sleep(pause).await;
        }
    }

    fn classify_attempt(
        &self,
        told: Result<(), DeliveryError>,
        tries: u32,
    ) -> (DeliveryOutcome, std::time::Duration) {
        let none = std::time::Duration::ZERO;
        match told {
            Ok(()) => (DeliveryOutcome::Delivered, none),
            Err(error) if error.is_transient() && tries < self.retry.max_attempts => {
                let pause = self.retry.delay(tries, error.retry_after());
                let due = self.clock.wall().checked_add(pause);
                (
                    DeliveryOutcome::Retry(error, due.unwrap_or(Timestamp::MAX)),
                    pause,
                )
            }
            Err(error) => (DeliveryOutcome::Failed(error), none),
        }
    }
}
