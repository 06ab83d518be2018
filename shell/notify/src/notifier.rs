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
use toolwarden_model::Severity;
use toolwarden_store::{Delivery, DeliveryFilter, Store};

use super::delivery_command::DeliveryCommand;
use super::delivery_log::{DeliveryContext, DeliveryLog};
use super::error::{DeliveryError, NotifyError};
use super::notice::{Notice, NoticeKind};
use super::retry::RetryPolicy;
use super::target_client::TargetClient;
use super::target_status::{FailedDeliveryHook, TargetStatus};
use toolwarden_live_guard::Clock;
use toolwarden_settings::AlertTarget;

/// How long the delivery thread waits for other processes that lock the store.
const STORE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Delivers notices. Clones share one notifier; it ends with its last clone.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<Shared>,
}

struct Shared {
    commands: mpsc::Sender<DeliveryCommand>,
    targets: Mutex<Vec<AlertTarget>>,
    dropped: AtomicU64,
    pending: watch::Receiver<usize>,
    retry: RetryPolicy,
    clock: Arc<Clock>,
}

/// The options of a notifier.
pub struct NotifierOptions {
    /// The store of deliveries; without it a restart loses them.
    pub store: Option<PathBuf>,
    /// The targets.
    pub targets: Vec<AlertTarget>,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The clock.
    pub clock: Arc<Clock>,
    /// The maximum number of pending notices, for each target and before they are handed to any.
    pub capacity: usize,
    /// A callback for deliveries that were given up. It runs on the delivery thread and must not block.
    pub on_failed_delivery: Option<FailedDeliveryHook>,
}

/// Whether a notice was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The notice is queued.
    Queued,
    /// The queue is full, or the notifier is closed. The notice is counted.
    Dropped,
}

/// The status of deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifierStatus {
    /// By target, in the order of their names.
    pub targets: Vec<TargetStatus>,
    /// Notices that were delivered to no target because the queue was full.
    pub dropped: u64,
    /// Deliveries that were given up because the target's queue was full.
    pub overflowed: u64,
    /// Deliveries that were skipped because the target has the notice, or it is pending there.
    pub repeated: u64,
    /// Why deliveries cannot currently be stored. They are still made.
    pub store_error: Option<String>,
}

/// The result of a test notice at one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestDelivery {
    /// The name of the target.
    pub target: String,
    /// Whether it arrived.
    pub outcome: Result<(), DeliveryError>,
}

impl fmt::Debug for Notifier {
    /// Omits the targets, which contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({} targets)", self.shared.targets().len())
    }
}

impl fmt::Debug for NotifierOptions {
    /// Omits the targets, which contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifierOptions")
            .field("store", &self.store)
            .field("targets", &self.targets.len())
            .field("pace", &self.retry)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Default for NotifierOptions {
    fn default() -> Self {
        Self {
            store: None,
            targets: Vec::new(),
            retry: RetryPolicy::default(),
            clock: Arc::default(),
            capacity: 1_000,
            on_failed_delivery: None,
        }
    }
}

impl Notifier {
    /// Starts to deliver, beginning with pending deliveries of an earlier run. Needs a Tokio runtime, and
    /// opens the store, which may take a while.
    ///
    /// # Errors
    /// There is no runtime, or the store cannot be used.
    pub fn open(options: NotifierOptions) -> Result<Self, NotifyError> {
        let runtime = Handle::try_current().map_err(|_| NotifyError::NoRuntime)?;
        let store = options.store.as_deref().map(Store::open).transpose()?;
        if let Some(store) = &store {
            store.set_busy_timeout(STORE_BUSY_TIMEOUT)?;
        }
        let (keeper, told) = mpsc::channel(options.capacity.max(1));
        let (counted, pending) = watch::channel(0);
        let with = DeliveryContext {
            runtime,
            retry: options.retry,
            clock: Arc::clone(&options.clock),
            capacity: options.capacity,
            hook: options.on_failed_delivery,
            commands: keeper.downgrade(),
            pending: counted,
        };
        let shared = Shared {
            commands: keeper,
            targets: Mutex::new(options.targets.clone()),
            dropped: AtomicU64::new(0),
            pending,
            retry: options.retry,
            clock: options.clock,
        };
        std::thread::Builder::new()
            .name("toolwarden-notify".to_owned())
            .spawn(move || DeliveryLog::new(store, with).run(options.targets, told))
            .map_err(NotifyError::Thread)?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Queues a notice for every target whose minimum severity it meets. Never blocks.
    pub fn send(&self, notice: Notice) -> SendOutcome {
        let notice = notice.redacted();
        let told = self
            .shared
            .commands
            .try_send(DeliveryCommand::Deliver(Box::new(notice)));
        if told.is_ok() {
            return SendOutcome::Queued;
        }
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        SendOutcome::Dropped
    }

    /// Replaces the targets. Pending notices for a target that stays are kept; those for a removed target
    /// are given up.
    ///
    /// # Errors
    /// The notifier is closed.
    pub async fn set_targets(&self, targets: Vec<AlertTarget>) -> Result<(), NotifyError> {
        self.shared.targets().clone_from(&targets);
        self.send_command(DeliveryCommand::SetTargets(targets))
            .await
    }

    /// The status of deliveries.
    ///
    /// # Errors
    /// The notifier is closed.
    pub async fn status(&self) -> Result<NotifierStatus, NotifyError> {
        let (answer, answered) = oneshot::channel();
        self.send_command(DeliveryCommand::GetStatus(answer))
            .await?;
        let kept = answered.await.map_err(|_| NotifyError::Closed)?;
        Ok(NotifierStatus {
            targets: kept.targets,
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            overflowed: kept.overflowed,
            repeated: kept.repeated,
            store_error: kept.store_error,
        })
    }

    /// The deliveries that match the filter, the newest first. Without a store there are none.
    ///
    /// # Errors
    /// The notifier is closed, or the store cannot be read.
    pub async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<Delivery>, NotifyError> {
        let (answer, answered) = oneshot::channel();
        self.send_command(DeliveryCommand::ListDeliveries(filter, answer))
            .await?;
        let deliveries = answered.await.map_err(|_| NotifyError::Closed)?;
        Ok(deliveries?)
    }

    /// Sends a test notice to one target, or to all, immediately and without retries, and waits for the
    /// result. It is not stored.
    ///
    /// # Errors
    /// The target does not exist.
    pub async fn test(&self, target: Option<&str>) -> Result<Vec<TestDelivery>, NotifyError> {
        let targets = self.shared.targets().clone();
        let now = self.shared.clock.wall();
        test(&targets, target, &self.shared.retry, now).await
    }

    /// Stops accepting notices, waits for pending deliveries up to the given time, and ends. The next run
    /// resumes deliveries that were not finished.
    pub async fn close(&self, grace: Duration) {
        let draining = async {
            let (flushed, flush) = oneshot::channel();
            self.send_command(DeliveryCommand::Flush(flushed))
                .await
                .ok();
            flush.await.ok();
            let mut pending = self.shared.pending.clone();
            pending.wait_for(|pending| *pending == 0).await.ok();
        };
        tokio::time::timeout(grace, draining).await.ok();
        let (ended, end) = oneshot::channel();
        if self
            .send_command(DeliveryCommand::Shutdown(ended))
            .await
            .is_ok()
        {
            end.await.ok();
        }
    }

    async fn send_command(&self, told: DeliveryCommand) -> Result<(), NotifyError> {
        let sent = self.shared.commands.send(told).await;
        sent.map_err(|_| NotifyError::Closed)
    }
}

impl Shared {
    fn targets(&self) -> MutexGuard<'_, Vec<AlertTarget>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a test notice to one of these targets, or to all, immediately and without retries. Needs no
/// notifier.
///
/// # Errors
/// The target does not exist.
pub async fn test(
    targets: &[AlertTarget],
    target: Option<&str>,
    pace: &RetryPolicy,
    now: Timestamp,
) -> Result<Vec<TestDelivery>, NotifyError> {
    let wanted = |it: &&AlertTarget| target.is_none_or(|name| it.name == name);
    let wanted: Vec<&AlertTarget> = targets.iter().filter(wanted).collect();
    if let Some(name) = target.filter(|_| wanted.is_empty()) {
        let name = name.to_owned();
        return Err(NotifyError::UnknownTarget { name });
    }
    let notice = Arc::new(test_notice(now));
    let mut trying = JoinSet::new();
    for (place, settings) in wanted.iter().enumerate() {
        let (target, notice) = (
            TargetClient::new(settings, pace.timeout),
            Arc::clone(&notice),
        );
        let name = settings.name.clone();
        trying.spawn(async move {
            let outcome = target.deliver(&notice, now).await;
            (
                place,
                TestDelivery {
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
        severity: Severity::Info,
        title: "this is a test".to_owned(),
        text: "This is a test of alert delivery. Alerts arrive here.".to_owned(),
        at: now,
        details: Value::Null,
        link: None,
    }
}
