//! The thread that keeps what becomes of notices, and hands them to their targets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use toolwarden_store::{Delivery, DeliveryFilter, DeliveryStatus, Store, StoreError, Try};

use super::error::DeliveryError;
use super::lane::{
    GivenUp, GivenUpHook, LastError, Outcome, Queue, TargetStatus, Tried, Waiting, Worker,
};
use super::notice::Notice;
use super::pace::Pace;
use super::post::causes;
use super::target::{Target, shown_host};
use crate::guard::Clock;
use crate::settings::AlertTarget;

/// How many deliveries are known without looking into the store.
const RECENT: usize = 4_096;

/// How long the store remembers what was settled.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24 * 30);

/// After how many notices old ones are removed from the store.
const PRUNED_EVERY: u64 = 1_000;

/// What the keeper is told.
#[derive(Debug)]
pub(super) enum Told {
    Notice(Box<Notice>),
    Tried(Tried),
    Targets(Vec<AlertTarget>),
    Status(oneshot::Sender<Kept>),
    Deliveries(
        DeliveryFilter,
        oneshot::Sender<Result<Vec<Delivery>, StoreError>>,
    ),
    /// Everything that was sent before is on its way.
    Flush(oneshot::Sender<()>),
    /// The end.
    End(oneshot::Sender<()>),
}

/// What the keeper knows.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) targets: Vec<TargetStatus>,
    pub(super) overflowed: u64,
    pub(super) repeated: u64,
    pub(super) store_error: Option<String>,
}

/// Keeps what becomes of notices.
pub(super) struct Keeper {
    pub(super) store: Option<Store>,
    pub(super) store_error: Option<String>,
    pub(super) lanes: BTreeMap<String, Lane>,
    pub(super) recent: Recent,
    pub(super) taken: u64,
    pub(super) overflowed: u64,
    pub(super) repeated: u64,
    pub(super) with: With,
}

/// What the keeper works with.
pub(super) struct With {
    pub(super) runtime: Handle,
    pub(super) pace: Pace,
    pub(super) clock: Arc<Clock>,
    pub(super) capacity: usize,
    pub(super) hook: Option<GivenUpHook>,
    pub(super) workers_tell: mpsc::WeakSender<Told>,
    /// How many deliveries are still to be made.
    pub(super) pending: watch::Sender<usize>,
}

/// One target, its queue and its worker.
pub(super) struct Lane {
    settings: AlertTarget,
    queue: Arc<Queue>,
    worker: AbortHandle,
    status: TargetStatus,
}

/// The deliveries that were begun lately.
#[derive(Default)]
pub(super) struct Recent {
    known: BTreeSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl Keeper {
    pub(super) fn new(store: Option<Store>, with: With) -> Self {
        Self {
            store,
            store_error: None,
            lanes: BTreeMap::new(),
            recent: Recent::default(),
            taken: 0,
            overflowed: 0,
            repeated: 0,
            with,
        }
    }

    /// Works until it is told to end, or nobody is left to tell it anything.
    pub(super) fn run(mut self, targets: Vec<AlertTarget>, mut told: mpsc::Receiver<Told>) {
        self.retarget(targets);
        self.resume();
        let mut ended = None;
        while let Some(news) = told.blocking_recv() {
            match news {
                Told::Notice(notice) => self.take(*notice),
                Told::Tried(tried) => self.note(tried),
                Told::Targets(targets) => self.retarget(targets),
                Told::Status(answer) => drop(answer.send(self.kept())),
                Told::Deliveries(filter, answer) => drop(answer.send(self.deliveries(&filter))),
                Told::Flush(answer) => drop(answer.send(())),
                Told::End(answer) => {
                    self.stop();
                    // What workers told before they stopped is still kept.
                    told.close();
                    ended = Some(answer);
                }
            }
        }
        self.stop();
        // Whoever waits knows by this that everything is written.
        drop(ended);
    }

    fn stop(&self) {
        for lane in self.lanes.values() {
            lane.worker.abort();
        }
    }

    /// Tells every target that is to be told, once.
    fn take(&mut self, notice: Notice) {
        if self.taken.is_multiple_of(PRUNED_EVERY) {
            self.prune();
        }
        self.taken += 1;
        let notice = Arc::new(notice);
        let targets: Vec<String> = self
            .lanes
            .values()
            .filter(|lane| lane.settings.least <= notice.severity)
            .map(|lane| lane.settings.name.clone())
            .collect();
        for target in targets {
            if self.is_first(&target, &notice) {
                self.queue(
                    &target,
                    Waiting {
                        notice: Arc::clone(&notice),
                        tries: 0,
                    },
                );
            } else {
                self.repeated += 1;
            }
        }
    }

    fn is_first(&mut self, target: &str, notice: &Notice) -> bool {
        if !self.recent.add(target, &notice.id) {
            return false;
        }
        let at = self.with.clock.wall();
        let document = Value::Object(notice.document()).to_string();
        let kept = self.keep(|store| store.queue_delivery(target, &notice.id, &document, at));
        // A store that fails must not silence alerts.
        kept.unwrap_or(true)
    }

    fn queue(&mut self, target: &str, waiting: Waiting) {
        let capacity = self.with.capacity;
        let Some(lane) = self.lanes.get(target) else {
            return;
        };
        let (notice, tries) = (waiting.notice.id.clone(), waiting.tries);
        self.with.pending.send_modify(|pending| *pending += 1);
        if !lane.queue.push(waiting, capacity) {
            self.overflowed += 1;
            self.give_up(target, notice, tries, DeliveryError::Overflow { capacity });
        }
    }

    fn give_up(&mut self, target: &str, notice: String, tries: u32, error: DeliveryError) {
        self.note(Tried {
            target: target.to_owned(),
            notice,
            tries,
            at: self.with.clock.wall(),
            outcome: Outcome::GivenUp(error),
        });
    }

    /// Keeps the outcome of a try.
    fn note(&mut self, tried: Tried) {
        let (status, error) = match &tried.outcome {
            Outcome::Delivered => (DeliveryStatus::Delivered, None),
            Outcome::Again(error, _) => (DeliveryStatus::Pending, Some(error.to_string())),
            Outcome::GivenUp(error) => (DeliveryStatus::Failed, Some(error.to_string())),
        };
        self.keep(|store| {
            store.note_try(&Try {
                target: &tried.target,
                notice: &tried.notice,
                status,
                tries: tried.tries,
                error: error.as_deref(),
                at: tried.at,
            })
        });
        if let Some(lane) = self.lanes.get_mut(&tried.target) {
            lane.note(&tried, error);
        }
        if status != DeliveryStatus::Pending {
            let settled = |pending: &mut usize| *pending = pending.saturating_sub(1);
            self.with.pending.send_modify(settled);
        }
        if let Outcome::GivenUp(error) = tried.outcome {
            // When it comes again it is tried again.
            self.recent.forget(&tried.target, &tried.notice);
            if let Some(hook) = &self.with.hook {
                hook(&GivenUp {
                    target: tried.target,
                    notice: tried.notice,
                    tries: tried.tries,
                    error,
                });
            }
        }
    }

    /// Puts these targets in the place of those there were. What waits for one that stays goes on.
    fn retarget(&mut self, targets: Vec<AlertTarget>) {
        let mut left = std::mem::take(&mut self.lanes);
        let last = self.keep(Store::last_deliveries).unwrap_or_default();
        for settings in targets {
            let name = settings.name.clone();
            let lane = match left.remove(&name) {
                Some(lane) if lane.settings == settings => lane,
                Some(lane) => {
                    lane.worker.abort();
                    self.lane(settings, lane.queue, lane.status)
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
                        last_error: failure.map(|(at, error)| LastError { at, error }),
                        next_try: None,
                    };
                    self.lane(settings, Arc::default(), status)
                }
            };
            self.lanes.insert(name, lane);
        }
        for (name, lane) in left {
            lane.worker.abort();
            for waiting in lane.queue.drain() {
                let notice = waiting.notice.id.clone();
                self.give_up(&name, notice, waiting.tries, DeliveryError::Unconfigured);
            }
        }
    }

    fn lane(&self, settings: AlertTarget, queue: Arc<Queue>, status: TargetStatus) -> Lane {
        let worker = Worker {
            name: settings.name.clone(),
            target: Target::new(&settings, self.with.pace.timeout),
            queue: Arc::clone(&queue),
            pace: self.with.pace,
            clock: Arc::clone(&self.with.clock),
            keeper: self.with.workers_tell.clone(),
        };
        let worker = self.with.runtime.spawn(worker.run()).abort_handle();
        let status = TargetStatus {
            channel: settings.channel.kind(),
            host: shown_host(&settings.channel),
            ..status
        };
        Lane {
            settings,
            queue,
            worker,
            status,
        }
    }

    /// Goes on with what an earlier run did not deliver.
    fn resume(&mut self) {
        let pending = self.keep(Store::pending_deliveries).unwrap_or_default();
        for delivery in pending {
            let (target, tries) = (delivery.target, delivery.tries);
            self.recent.add(&target, &delivery.notice);
            match Notice::read(&delivery.document) {
                Some(notice) if self.lanes.contains_key(&target) => {
                    let notice = Arc::new(notice);
                    self.queue(&target, Waiting { notice, tries });
                }
                _ => self.give_up(&target, delivery.notice, tries, DeliveryError::Unconfigured),
            }
        }
    }

    fn prune(&mut self) {
        let now = self.with.clock.wall();
        let before = now.checked_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        self.keep(|store| store.prune_deliveries(before));
    }

    fn kept(&self) -> Kept {
        let targets = self.lanes.values().map(|lane| TargetStatus {
            pending: lane.queue.len(),
            ..lane.status.clone()
        });
        Kept {
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

    /// Does something with the store; none if there is no store, or it failed.
    fn keep<T>(&mut self, act: impl FnOnce(&Store) -> Result<T, StoreError>) -> Option<T> {
        match act(self.store.as_ref()?) {
            Ok(done) => {
                self.store_error = None;
                Some(done)
            }
            Err(error) => {
                self.store_error = Some(causes(&error));
                None
            }
        }
    }
}

impl Lane {
    fn note(&mut self, tried: &Tried, error: Option<String>) {
        let status = &mut self.status;
        status.next_try = None;
        match &tried.outcome {
            Outcome::Delivered => {
                status.delivered += 1;
                status.last_success = Some(tried.at);
            }
            Outcome::Again(_, due) => status.next_try = Some(*due),
            Outcome::GivenUp(_) => status.failed += 1,
        }
        if let Some(error) = error {
            let at = tried.at;
            status.last_error = Some(LastError { at, error });
        }
    }
}

impl Recent {
    /// Notes a delivery; false means that it is known.
    fn add(&mut self, target: &str, notice: &str) -> bool {
        let key = (target.to_owned(), notice.to_owned());
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > RECENT
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
