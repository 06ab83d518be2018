//! The thread that records deliveries, and hands notices to their targets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use toolwarden_store::{
    Delivery, DeliveryFilter, DeliveryStatus, Store, StoreError, StoredAttempt,
};

use super::delivery_command::{DeliveryCommand, DeliveryLogStatus};
use super::error::DeliveryError;
use super::http_post::error_chain;
use super::notice::Notice;
use super::retry::RetryPolicy;
use super::target_client::{TargetClient, display_host};
use super::target_queue::{NoticeQueue, QueuedNotice, TargetWorker};
use super::target_status::{
    AttemptReport, DeliveryOutcome, FailedDelivery, FailedDeliveryHook, LastDeliveryError,
    TargetStatus,
};
use toolwarden_live_guard::Clock;
use toolwarden_settings::AlertTarget;

/// How many deliveries are known without a query to the store.
const MAX_RECENT: usize = 4_096;

/// How long the store keeps settled deliveries.
const RETENTION: SignedDuration = SignedDuration::from_hours(24 * 30);

/// After how many notices old ones are removed from the store.
const PRUNE_INTERVAL: u64 = 1_000;

/// Records deliveries.
pub(super) struct DeliveryLog {
    pub(super) store: Option<Store>,
    pub(super) store_error: Option<String>,
    pub(super) targets: BTreeMap<String, ActiveTarget>,
    pub(super) recent: RecentDeliveries,
    pub(super) accepted: u64,
    pub(super) overflowed: u64,
    pub(super) repeated: u64,
    pub(super) context: DeliveryContext,
}

/// The dependencies of the thread.
pub(super) struct DeliveryContext {
    pub(super) runtime: Handle,
    pub(super) retry: RetryPolicy,
    pub(super) clock: Arc<Clock>,
    pub(super) capacity: usize,
    pub(super) hook: Option<FailedDeliveryHook>,
    pub(super) commands: mpsc::WeakSender<DeliveryCommand>,
    /// The number of pending deliveries.
    pub(super) pending: watch::Sender<usize>,
}

/// One target, its queue and its worker.
pub(super) struct ActiveTarget {
    settings: AlertTarget,
    queue: Arc<NoticeQueue>,
    worker: AbortHandle,
    status: TargetStatus,
}

/// The deliveries that were started recently.
#[derive(Default)]
pub(super) struct RecentDeliveries {
    known: BTreeSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl DeliveryLog {
    pub(super) fn new(store: Option<Store>, context: DeliveryContext) -> Self {
        Self {
            store,
            store_error: None,
            targets: BTreeMap::new(),
            recent: RecentDeliveries::default(),
            accepted: 0,
            overflowed: 0,
            repeated: 0,
            context,
        }
    }

    /// Runs until it gets the request to end, or all senders are gone.
    pub(super) fn run(
        mut self,
        targets: Vec<AlertTarget>,
        mut told: mpsc::Receiver<DeliveryCommand>,
    ) {
        self.set_targets(targets);
        self.resume();
        let mut ended = None;
        while let Some(news) = told.blocking_recv() {
            match news {
                DeliveryCommand::Deliver(notice) => self.dispatch(*notice),
                DeliveryCommand::RecordAttempt(tried) => self.record_attempt(tried),
                DeliveryCommand::SetTargets(targets) => self.set_targets(targets),
                DeliveryCommand::GetStatus(answer) => drop(answer.send(self.status())),
                DeliveryCommand::ListDeliveries(filter, answer) => {
                    drop(answer.send(self.deliveries(&filter)))
                }
                DeliveryCommand::Flush(answer) => drop(answer.send(())),
                DeliveryCommand::Shutdown(answer) => {
                    self.stop();
                    // Messages that workers sent before they stopped are still recorded.
                    told.close();
                    ended = Some(answer);
                }
            }
        }
        self.stop();
        // The drop signals to the waiting caller that everything is written.
        drop(ended);
    }

    fn stop(&self) {
        for lane in self.targets.values() {
            lane.worker.abort();
        }
    }

    /// Queues a notice for every target that should get it, once.
    fn dispatch(&mut self, notice: Notice) {
        if self.accepted.is_multiple_of(PRUNE_INTERVAL) {
            self.prune();
        }
        self.accepted += 1;
        let notice = Arc::new(notice);
        let targets: Vec<String> = self
            .targets
            .values()
            .filter(|lane| lane.settings.min_severity <= notice.severity)
            .map(|lane| lane.settings.name.clone())
            .collect();
        for target in targets {
            if self.is_new_delivery(&target, &notice) {
                self.enqueue(
                    &target,
                    QueuedNotice {
                        notice: Arc::clone(&notice),
                        tries: 0,
                    },
                );
            } else {
                self.repeated += 1;
            }
        }
    }

    fn is_new_delivery(&mut self, target: &str, notice: &Notice) -> bool {
        if !self.recent.add(target, &notice.id) {
            return false;
        }
        let at = self.context.clock.wall();
        let document = Value::Object(notice.document()).to_string();
        let kept = self.with_store(|store| store.queue_delivery(target, &notice.id, &document, at));
        // A failing store must not suppress alerts.
        kept.unwrap_or(true)
    }

    fn enqueue(&mut self, target: &str, waiting: QueuedNotice) {
        let capacity = self.context.capacity;
        let Some(lane) = self.targets.get(target) else {
            return;
        };
        let (notice, tries) = (waiting.notice.id.clone(), waiting.tries);
        self.context.pending.send_modify(|pending| *pending += 1);
        if !lane.queue.push(waiting, capacity) {
            self.overflowed += 1;
            self.give_up(target, notice, tries, DeliveryError::QueueFull { capacity });
        }
    }

    fn give_up(&mut self, target: &str, notice: String, tries: u32, error: DeliveryError) {
        self.record_attempt(AttemptReport {
            target: target.to_owned(),
            notice,
            tries,
            at: self.context.clock.wall(),
            outcome: DeliveryOutcome::Failed(error),
        });
    }

    /// Records the outcome of an attempt.
    fn record_attempt(&mut self, tried: AttemptReport) {
        let (status, error) = match &tried.outcome {
            DeliveryOutcome::Delivered => (DeliveryStatus::Delivered, None),
            DeliveryOutcome::Retry(error, _) => (DeliveryStatus::Pending, Some(error.to_string())),
            DeliveryOutcome::Failed(error) => (DeliveryStatus::Failed, Some(error.to_string())),
        };
        self.with_store(|store| {
            store.record_attempt(&StoredAttempt {
                target: &tried.target,
                notice: &tried.notice,
                status,
                tries: tried.tries,
                error: error.as_deref(),
                at: tried.at,
            })
        });
        if let Some(lane) = self.targets.get_mut(&tried.target) {
            lane.record_attempt(&tried, error);
        }
        if status != DeliveryStatus::Pending {
            let settled = |pending: &mut usize| *pending = pending.saturating_sub(1);
            self.context.pending.send_modify(settled);
        }
        if let DeliveryOutcome::Failed(error) = tried.outcome {
            // If the notice is sent again, it is tried again.
            self.recent.forget(&tried.target, &tried.notice);
            if let Some(hook) = &self.context.hook {
                hook(&FailedDelivery {
                    target: tried.target,
                    notice: tried.notice,
                    tries: tried.tries,
                    error,
                });
            }
        }
    }

    /// Replaces the targets. Pending notices for a target that stays are kept.
    fn set_targets(&mut self, targets: Vec<AlertTarget>) {
        let mut left = std::mem::take(&mut self.targets);
        let last = self.with_store(Store::last_deliveries).unwrap_or_default();
        for settings in targets {
            let name = settings.name.clone();
            let lane = match left.remove(&name) {
                Some(lane) if lane.settings == settings => lane,
                Some(lane) => {
                    lane.worker.abort();
                    self.start_target(settings, lane.queue, lane.status)
                }
                None => {
                    let last = last.iter().find(|it| it.target == name);
                    let failure = last.and_then(|it| it.failure.clone());
                    let status = TargetStatus {
                        name: name.clone(),
                        channel: "",
                        host: String::new(),
                        pending: 0,
                        delivered: 0,
                        failed: 0,
                        last_success: last.and_then(|it| it.success),
                        last_error: failure.map(|(at, error)| LastDeliveryError { at, error }),
                        next_attempt: None,
                    };
                    self.start_target(settings, Arc::default(), status)
                }
            };
            self.targets.insert(name, lane);
        }
        for (name, lane) in left {
            lane.worker.abort();
            for waiting in lane.queue.drain() {
                let notice = waiting.notice.id.clone();
                self.give_up(&name, notice, waiting.tries, DeliveryError::TargetRemoved);
            }
        }
    }

    fn start_target(
        &self,
        settings: AlertTarget,
        queue: Arc<NoticeQueue>,
        status: TargetStatus,
    ) -> ActiveTarget {
        let worker = TargetWorker {
            name: settings.name.clone(),
            target: TargetClient::new(&settings, self.context.retry.timeout),
            queue: Arc::clone(&queue),
            retry: self.context.retry,
            clock: Arc::clone(&self.context.clock),
            commands: self.context.commands.clone(),
        };
        let worker = self.context.runtime.spawn(worker.run()).abort_handle();
        let status = TargetStatus {
            channel: settings.channel.kind(),
            host: display_host(&settings.channel),
            ..status
        };
        ActiveTarget {
            settings,
            queue,
            worker,
            status,
        }
    }

    /// Resumes the deliveries that an earlier run did not finish.
    fn resume(&mut self) {
        let pending = self
            .with_store(Store::pending_deliveries)
            .unwrap_or_default();
        for delivery in pending {
            let (target, tries) = (delivery.target, delivery.tries);
            self.recent.add(&target, &delivery.notice);
            match Notice::parse(&delivery.document) {
                Some(notice) if self.targets.contains_key(&target) => {
                    let notice = Arc::new(notice);
                    self.enqueue(&target, QueuedNotice { notice, tries });
                }
                _ => self.give_up(
                    &target,
                    delivery.notice,
                    tries,
                    DeliveryError::TargetRemoved,
                ),
            }
        }
    }

    fn prune(&mut self) {
        let now = self.context.clock.wall();
        let before = now.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
        self.with_store(|store| store.prune_deliveries(before));
    }

    fn status(&self) -> DeliveryLogStatus {
        let targets = self.targets.values().map(|lane| TargetStatus {
            pending: lane.queue.len(),
            ..lane.status.clone()
        });
        DeliveryLogStatus {
            targets: targets.collect(),
            overflowed: self.overflowed,
            repeated: self.repeated,
            store_error: self.store_error.clone(),
        }
    }

    fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        match &self.store {
            Some(store) => store.deliveries(filter),
            None => Ok(Vec::new()),
        }
    }

    /// Uses the store; `None` if there is no store, or it failed.
    fn with_store<T>(&mut self, act: impl FnOnce(&Store) -> Result<T, StoreError>) -> Option<T> {
        match act(self.store.as_ref()?) {
            Ok(done) => {
                self.store_error = None;
                Some(done)
            }
            Err(error) => {
                self.store_error = Some(error_chain(&error));
                None
            }
        }
    }
}

impl ActiveTarget {
    fn record_attempt(&mut self, tried: &AttemptReport, error: Option<String>) {
        let status = &mut self.status;
        status.next_attempt = None;
        match &tried.outcome {
            DeliveryOutcome::Delivered => {
                status.delivered += 1;
                status.last_success = Some(tried.at);
            }
            DeliveryOutcome::Retry(_, due) => status.next_attempt = Some(*due),
            DeliveryOutcome::Failed(_) => status.failed += 1,
        }
        if let Some(error) = error {
            let at = tried.at;
            status.last_error = Some(LastDeliveryError { at, error });
        }
    }
}

impl RecentDeliveries {
    /// Adds a delivery; returns false if it is known.
    fn add(&mut self, target: &str, notice: &str) -> bool {
        let key = (target.to_owned(), notice.to_owned());
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    fn forget(&mut self, target: &str, notice: &str) {
        self.known.remove(&(target.to_owned(), notice.to_owned()));
    }
}
