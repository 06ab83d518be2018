use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use toolwarden_drift::Severity;
use toolwarden_store::{Delivery, DeliveryFilter, Store};

use super::error::{DeliveryError, NotifyError};
use super::keeper::{Keeper, Told, With};
use super::lane::{GivenUpHook, TargetStatus};
use super::notice::{Notice, NoticeKind};
use super::pace::Pace;
use super::target::Target;
use crate::guard::Clock;
use crate::settings::AlertTarget;

/// How long the thread of deliveries waits for others that use the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// Delivers notices. A clone is the same notifier; it ends with its last clone.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<Shared>,
}

struct Shared {
    keeper: mpsc::Sender<Told>,
    targets: Mutex<Vec<AlertTarget>>,
    dropped: AtomicU64,
    pending: watch::Receiver<usize>,
    pace: Pace,
    clock: Arc<Clock>,
}

/// What a notifier is made of.
pub struct NotifierOptions {
    /// Where deliveries are kept; without it a restart forgets them.
    pub store: Option<PathBuf>,
    /// Who is told.
    pub targets: Vec<AlertTarget>,
    /// How deliveries are tried.
    pub pace: Pace,
    /// The clock.
    pub clock: Arc<Clock>,
    /// How many notices can wait, for each target and before they are handed to any.
    pub capacity: usize,
    /// Hears of deliveries that were given up, on the thread of deliveries; must not block.
    pub given_up: Option<GivenUpHook>,
}

/// What became of a notice that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Queued,
    /// Too many are waiting, or the notifier is closed. It is counted.
    Dropped,
}

/// How deliveries go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifierStatus {
    /// By target, in the order of their names.
    pub targets: Vec<TargetStatus>,
    /// Notices that nobody got because too many were waiting.
    pub dropped: u64,
    /// Deliveries that were given up because too many were waiting for the target.
    pub overflowed: u64,
    /// Deliveries that were not made because the target has the notice or is about to.
    pub repeated: u64,
    /// Why deliveries cannot be kept at present. They are still made.
    pub store_error: Option<String>,
}

/// What became of a test notice at one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The name of the target.
    pub target: String,
    /// Whether it arrived.
    pub outcome: Result<(), DeliveryError>,
}

impl fmt::Debug for Notifier {
    /// Targets hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({} targets)", self.shared.targets().len())
    }
}

impl fmt::Debug for NotifierOptions {
    /// Targets hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifierOptions")
            .field("store", &self.store)
            .field("targets", &self.targets.len())
            .field("pace", &self.pace)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Default for NotifierOptions {
    fn default() -> Self {
        Self {
            store: None,
            targets: Vec::new(),
            pace: Pace::default(),
            clock: Arc::default(),
            capacity: 1_000,
            given_up: None,
        }
    }
}

impl Notifier {
    /// Starts to deliver, first what an earlier run did not. Needs a tokio runtime, and opens the
    /// store, which may take a while.
    ///
    /// # Errors
    /// There is no runtime, or the store cannot be used.
    pub fn open(options: NotifierOptions) -> Result<Self, NotifyError> {
        let runtime = Handle::try_current().map_err(|_| NotifyError::NoRuntime)?;
        let store = options.store.as_deref().map(Store::open).transpose()?;
        if let Some(store) = &store {
            store.set_patience(PATIENCE)?;
        }
        let (keeper, told) = mpsc::channel(options.capacity.max(1));
        let (counted, pending) = watch::channel(0);
        let with = With {
            runtime,
            pace: options.pace,
            clock: Arc::clone(&options.clock),
            capacity: options.capacity,
            hook: options.given_up,
            workers_tell: keeper.downgrade(),
            pending: counted,
        };
        let shared = Shared {
            keeper,
            targets: Mutex::new(options.targets.clone()),
            dropped: AtomicU64::new(0),
            pending,
            pace: options.pace,
            clock: options.clock,
        };
        std::thread::Builder::new()
            .name("toolwarden-notify".to_owned())
            .spawn(move || Keeper::new(store, with).run(options.targets, told))
            .map_err(NotifyError::Thread)?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Takes a notice for every target whose least severity it has. Never blocks.
    pub fn send(&self, notice: Notice) -> Sent {
        let notice = notice.masked();
        let told = self.shared.keeper.try_send(Told::Notice(Box::new(notice)));
        if told.is_ok() {
            return Sent::Queued;
        }
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        Sent::Dropped
    }

    /// Puts these targets in the place of those there were. What waits for one that stays goes on;
    /// what waits for one that is gone is given up.
    ///
    /// # Errors
    /// The notifier is closed.
    pub async fn set_targets(&self, targets: Vec<AlertTarget>) -> Result<(), NotifyError> {
        self.shared.targets().clone_from(&targets);
        self.tell(Told::Targets(targets)).await
    }

    /// How deliveries go.
    ///
    /// # Errors
    /// The notifier is closed.
    pub async fn status(&self) -> Result<NotifierStatus, NotifyError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Status(answer)).await?;
        let kept = answered.await.map_err(|_| NotifyError::Closed)?;
        Ok(NotifierStatus {
            targets: kept.targets,
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            overflowed: kept.overflowed,
            repeated: kept.repeated,
            store_error: kept.store_error,
        })
    }

    /// The deliveries that are wanted, the newest first. Without a store none are known.
    ///
    /// # Errors
    /// The notifier is closed, or the store cannot be read.
    pub async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<Delivery>, NotifyError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Deliveries(filter, answer)).await?;
        let deliveries = answered.await.map_err(|_| NotifyError::Closed)?;
        Ok(deliveries?)
    }

    /// Sends a test notice to one target, or to all, at once and once, and waits for what becomes of
    /// it. It is not kept.
    ///
    /// # Errors
    /// There is no such target.
    pub async fn test(&self, target: Option<&str>) -> Result<Vec<Tested>, NotifyError> {
        let targets = self.shared.targets().clone();
        let now = self.shared.clock.wall();
        test(&targets, target, &self.shared.pace, now).await
    }

    /// Takes no more notices, waits for those that are on their way, but not longer than this, and
    /// ends. What was not delivered by then is resumed by the next run.
    pub async fn close(&self, grace: Duration) {
        let draining = async {
            let (flushed, flush) = oneshot::channel();
            self.tell(Told::Flush(flushed)).await.ok();
            flush.await.ok();
            let mut pending = self.shared.pending.clone();
            pending.wait_for(|pending| *pending == 0).await.ok();
        };
        tokio::time::timeout(grace, draining).await.ok();
        let (ended, end) = oneshot::channel();
        if self.tell(Told::End(ended)).await.is_ok() {
            end.await.ok();
        }
    }

    async fn tell(&self, told: Told) -> Result<(), NotifyError> {
        let sent = self.shared.keeper.send(told).await;
        sent.map_err(|_| NotifyError::Closed)
    }
}

impl Shared {
    fn targets(&self) -> MutexGuard<'_, Vec<AlertTarget>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a test notice to one of these targets, or to all, at once and once. Needs no notifier.
///
/// # Errors
/// There is no such target.
pub async fn test(
    targets: &[AlertTarget],
    target: Option<&str>,
    pace: &Pace,
    now: Timestamp,
) -> Result<Vec<Tested>, NotifyError> {
    let wanted = |it: &&AlertTarget| target.is_none_or(|name| it.name == name);
    let wanted: Vec<&AlertTarget> = targets.iter().filter(wanted).collect();
    if let Some(name) = target.filter(|_| wanted.is_empty()) {
        let name = name.to_owned();
        return Err(NotifyError::UnknownTarget { name });
    }
    let notice = Arc::new(test_notice(now));
    let mut trying = JoinSet::new();
    for (place, settings) in wanted.iter().enumerate() {
        let (target, notice) = (Target::new(settings, pace.timeout), Arc::clone(&notice));
        let name = settings.name.clone();
        trying.spawn(async move {
            let outcome = target.tell(&notice, now).await;
            (
                place,
                Tested {
                    target: name,
                    outcome,
                },
            )
        });
    }
    let mut tested = trying.join_all().await;
    tested.sort_by_key(|(place, _)| *place);
    Ok(tested.into_iter().map(|(_, tested)| tested).collect())
}

fn test_notice(now: Timestamp) -> Notice {
    let chance = getrandom::u32().unwrap_or_default();
    Notice {
        id: format!("test-{}-{chance:08x}", now.as_millisecond()),
        kind: NoticeKind::Test,
        server: "toolwarden".to_owned(),
        tool: None,
        severity: Severity::Low,
        title: "this is a test".to_owned(),
        text: "Somebody tried out whether alerts arrive here. They do.".to_owned(),
        at: now,
        details: Value::Null,
        link: None,
    }
}
