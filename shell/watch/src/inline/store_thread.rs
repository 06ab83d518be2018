//! The thread that owns the store, and its caches.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::MissedTickBehavior;
use toolwarden_drift::{ToolDrift, drift_json};
use toolwarden_model::Fingerprint;
use toolwarden_store::{AlertNovelty, PinsRevision, ServerKey, Store, StoreError};

use super::alert::{WatchAlert, WatchCounter, WatchCounters};
use super::comparison_pool::{ComparisonJob, ComparisonPool};
use super::error::WatchError;
use super::observed::{ChangeSummary, ListCheck, ReceivedList};
use super::options::InlineOptions;
use super::parsed_list::ParsedList;
use crate::DEFAULT_SCOPE;
use crate::alert::{severity, summary_line};
use crate::record::{AlertsByTool, RaisedAlert, RecordOutcome};
use toolwarden_settings::WatchSettings;

/// A job for the store thread.
pub(super) type StoreJob = Box<dyn FnOnce(&mut StoreThread) + Send>;

/// How many answers are cached per server: agents with other capabilities may see other lists.
const MAX_CACHED_CHECKS: usize = 8;

/// The store thread's data.
#[derive(Debug)]
pub(super) struct StoreThread {
    pub(super) store: Store,
    pub(super) options: InlineOptions,
    pub(super) counters: Arc<WatchCounters>,
    pub(super) servers: BTreeMap<ServerKey, ServerCache>,
    /// Variants of clients that get the same list as the gateway.
    pub(super) plain_variants: BTreeSet<ServerKey>,
    /// When the results of a tool were last compared with their shape.
    pub(super) last_checked: BTreeMap<(String, String), u64>,
    pub(super) revision: PinsRevision,
    data_version: i64,
    has_written: bool,
    revisions: watch::Sender<u64>,
    alerts: broadcast::Sender<Arc<WatchAlert>>,
    pub(super) jobs: mpsc::WeakSender<StoreJob>,
    pub(super) comparison_pool: ComparisonPool,
}

/// The cached data of a server.
#[derive(Debug, Default)]
pub(super) struct ServerCache {
    /// The answers given under the current pins.
    cached_checks: Vec<CachedCheck>,
    /// The latest observed definitions, by name.
    pub(super) texts: BTreeMap<String, Box<RawValue>>,
    pub(super) settings: Option<Arc<WatchSettings>>,
}

#[derive(Debug)]
struct CachedCheck {
    fingerprint: Fingerprint,
    settings: Arc<WatchSettings>,
    at: u64,
    checked: Arc<ListCheck>,
}

impl StoreThread {
    pub(super) fn new(
        store: Store,
        options: InlineOptions,
        figures: Arc<WatchCounters>,
        (revisions, notices): (watch::Sender<u64>, broadcast::Sender<Arc<WatchAlert>>),
        (jobs, comparisons): (mpsc::WeakSender<StoreJob>, ComparisonPool),
    ) -> Result<Self, StoreError> {
        store.set_busy_timeout(options.busy_timeout)?;
        let data_version = store.data_version()?;
        let revision = store.pins_revision()?;
        Ok(Self {
            store,
            options,
            counters: figures,
            servers: BTreeMap::new(),
            plain_variants: BTreeSet::new(),
            last_checked: BTreeMap::new(),
            revision,
            data_version,
            has_written: false,
            revisions,
            alerts: notices,
            jobs,
            comparison_pool: comparisons,
        })
    }

    /// Runs until all senders are gone.
    pub(super) fn run(mut self, runtime: &Runtime, mut jobs: mpsc::Receiver<StoreJob>) {
        runtime.block_on(async {
            let mut tick =
                tokio::time::interval(self.options.poll_interval.max(Duration::from_millis(1)));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    job = jobs.recv() => match job {
                        Some(job) => self.run_job(job),
                        None => return,
                    },
                    _ = tick.tick() => self.tick(),
                }
            }
        });
    }

    /// Runs one job. If it panics, only its caller is left without an answer.
    fn run_job(&mut self, job: StoreJob) {
        let done = catch_unwind(AssertUnwindSafe(|| job(self)));
        if done.is_err() {
            self.counters.count(WatchCounter::Failure);
            self.clear_cache();
        }
    }

    fn tick(&mut self) {
        if self.poll().is_err() {
            // While the pins are unknown, no cached answer is valid.
            self.counters.count(WatchCounter::Failure);
            self.clear_cache();
        }
    }

    /// Has another thread compare definitions of a server.
    pub(super) fn submit(&self, server: &str, comparison: ComparisonJob) -> Result<(), WatchError> {
        if self.comparison_pool.submit(server, comparison) {
            return Ok(());
        }
        Err(WatchError::Busy {
            server: server.to_owned(),
        })
    }

    /// Detects new pins and approvals, including those of other processes.
    pub(super) fn poll(&mut self) -> Result<(), StoreError> {
        self.store.require_same_file()?;
        let data_version = self.store.data_version()?;
        if data_version == self.data_version && !self.has_written {
            return Ok(());
        }
        let revision = self.store.pins_revision()?;
        self.data_version = data_version;
        self.has_written = false;
        if revision != self.revision {
            self.revision = revision;
            self.clear_cache();
            self.revisions.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Notes that pins were made here.
    pub(super) fn pins_written(&mut self) -> Result<(), StoreError> {
        self.has_written = true;
        self.poll()
    }

    fn clear_cache(&mut self) {
        for known in self.servers.values_mut() {
            known.cached_checks.clear();
        }
    }

    pub(super) fn clear_server_cache(&mut self, key: &ServerKey) {
        if let Some(known) = self.servers.get_mut(key) {
            known.cached_checks.clear();
        }
    }

    /// The cached answer to the same list, while it is valid.
    pub(super) fn cached_check(
        &self,
        seen: &ReceivedList,
        fingerprint: Fingerprint,
    ) -> Option<Arc<ListCheck>> {
        let known = self.servers.get(&seen.key())?;
        let fresh = u64::try_from(self.options.cache_ttl.as_nanos()).unwrap_or(u64::MAX);
        let now = self.options.clock.monotonic();
        let found = known.cached_checks.iter().find(|it| {
            it.fingerprint == fingerprint
                && now.saturating_sub(it.at) < fresh
                && it.settings == seen.settings
        })?;
        Some(Arc::clone(&found.checked))
    }

    pub(super) fn cache_check(
        &mut self,
        seen: ReceivedList,
        fingerprint: Fingerprint,
        read: &ParsedList,
        checked: &Arc<ListCheck>,
    ) {
        let at = self.options.clock.monotonic();
        let known = self.servers.entry(seen.key()).or_default();
        let tools = seen.tools.into_iter().enumerate();
        let named = tools.filter_map(|(place, tool)| {
            let name = read.single_name(place)?;
            Some((name.to_owned(), tool))
        });
        known.texts = named.collect();
        known.settings = Some(Arc::clone(&seen.settings));
        // The list that was judged last determines the pending approvals and open alerts. Only lists
        // without drift leave none.
        let leaves_nothing = |checked: &ListCheck| checked.changes.is_empty();
        let both = |it: &CachedCheck| leaves_nothing(checked) && leaves_nothing(&it.checked);
        known
            .cached_checks
            .retain(|it| it.fingerprint != fingerprint && both(it));
        if known.cached_checks.len() >= MAX_CACHED_CHECKS {
            known.cached_checks.remove(0);
        }
        known.cached_checks.push(CachedCheck {
            fingerprint,
            settings: seen.settings,
            at,
            checked: Arc::clone(checked),
        });
    }

    /// The latest observation of a tool: in the gateway's own list, else in that of a variant.
    pub(super) fn find_source(
        &self,
        server: &str,
        tool: &str,
    ) -> Option<(&ServerKey, &ServerCache)> {
        let default = server_key(server);
        let base = self.servers.get_key_value(&default);
        let others = self.servers.iter().filter(|(key, _)| key.name == server);
        let mut sources = base.into_iter().chain(others);
        sources.find(|(_, known)| known.texts.contains_key(tool))
    }

    /// Publishes alerts that were raised for the first time.
    pub(super) fn publish_alerts(
        &self,
        key: &ServerKey,
        drift: &[ToolDrift],
        recorded: &RecordOutcome,
    ) {
        let news = |it: &&RaisedAlert| it.raised == AlertNovelty::New;
        let mut by_tool: BTreeMap<&str, &ToolDrift> = BTreeMap::new();
        for drift in drift {
            by_tool.entry(drift.tool()).or_insert(drift);
        }
        for alert in recorded.alerts.iter().filter(news) {
            let Some(drift) = by_tool.get(alert.tool.as_str()) else {
                continue;
            };
            self.publish_alert(WatchAlert {
                id: alert.id.clone(),
                server: key.name.clone(),
                variant: variant_of(key),
                tool: alert.tool.clone(),
                severity: severity(drift),
                class: drift.class(),
                change_type: drift.change_type(),
                summary: summary(drift),
                at: self.options.clock.wall(),
                drift: drift_json::tool(drift),
            });
        }
    }

    pub(super) fn publish_alert(&self, notice: WatchAlert) {
        // A notice without subscribers is dropped.
        let _unheard = self.alerts.send(Arc::new(notice));
    }
}

/// The key of a configured server in the store.
pub(super) fn server_key(server: &str) -> ServerKey {
    ServerKey {
        name: server.to_owned(),
        scope: DEFAULT_SCOPE.to_owned(),
    }
}

/// The variant of clients that a scope stands for; `None` for the gateway itself.
pub(super) fn variant_of(key: &ServerKey) -> Option<String> {
    (key.scope != DEFAULT_SCOPE).then(|| key.scope.clone())
}

/// A summary of the drift of a tool.
pub(super) fn summarize(drift: &ToolDrift, alerts: &AlertsByTool<'_>) -> ChangeSummary {
    let alert = alerts.get(drift.tool());
    ChangeSummary {
        tool: drift.tool().to_owned(),
        class: drift.class(),
        severity: severity(drift),
        change_type: drift.change_type(),
        summary: summary(drift),
        alert: alert.map(|it| it.id.clone()),
        is_new: alert.is_some_and(|it| it.raised == AlertNovelty::New),
    }
}

fn summary(drift: &ToolDrift) -> String {
    toolwarden_drift::text::printable(&summary_line(drift))
}
