//! The thread that owns the store, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::MissedTickBehavior;
use toolwarden_drift::{ToolDrift, document};
use toolwarden_model::Fingerprint;
use toolwarden_store::{PinsRevision, Raised, ServerKey, Store, StoreError};

use super::comparisons::{Comparison, Comparisons};
use super::error::WatchError;
use super::list::ReadList;
use super::notice::{Figure, Figures, RaisedNotice};
use super::options::InlineOptions;
use super::seen::{ChangeSummary, Checked, SeenList};
use crate::DEFAULT_SCOPE;
use crate::alert::{first_words, severity};
use crate::record::{AlertsByTool, RaisedAlert, Recorded};
use crate::settings::WatchSettings;

/// Something to be done with the store.
pub(super) type Job = Box<dyn FnOnce(&mut Desk) + Send>;

/// How many answers are remembered per server: agents with other capabilities may see other lists.
const ANSWERS: usize = 8;

/// Where everything about the store happens.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) store: Store,
    pub(super) options: InlineOptions,
    pub(super) figures: Arc<Figures>,
    pub(super) servers: BTreeMap<ServerKey, Known>,
    /// Variants of clients that were offered just what the gateway is.
    pub(super) plain_variants: BTreeSet<ServerKey>,
    /// When the results of a tool were last held to their shape.
    pub(super) looked: BTreeMap<(String, String), u64>,
    pub(super) revision: PinsRevision,
    data_version: i64,
    wrote: bool,
    revisions: watch::Sender<u64>,
    notices: broadcast::Sender<Arc<RaisedNotice>>,
    pub(super) jobs: mpsc::WeakSender<Job>,
    pub(super) comparisons: Comparisons,
}

/// What is remembered of a server.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What was answered under the pins as they are.
    answers: Vec<Answer>,
    /// The definitions as they were seen last, by name.
    pub(super) texts: BTreeMap<String, Box<RawValue>>,
    pub(super) settings: Option<Arc<WatchSettings>>,
}

#[derive(Debug)]
struct Answer {
    fingerprint: Fingerprint,
    settings: Arc<WatchSettings>,
    at: u64,
    checked: Arc<Checked>,
}

impl Desk {
    pub(super) fn new(
        store: Store,
        options: InlineOptions,
        figures: Arc<Figures>,
        (revisions, notices): (watch::Sender<u64>, broadcast::Sender<Arc<RaisedNotice>>),
        (jobs, comparisons): (mpsc::WeakSender<Job>, Comparisons),
    ) -> Result<Self, StoreError> {
        store.set_patience(options.patience)?;
        let data_version = store.data_version()?;
        let revision = store.pins_revision()?;
        Ok(Self {
            store,
            options,
            figures,
            servers: BTreeMap::new(),
            plain_variants: BTreeSet::new(),
            looked: BTreeMap::new(),
            revision,
            data_version,
            wrote: false,
            revisions,
            notices,
            jobs,
            comparisons,
        })
    }

    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, runtime: &Runtime, mut jobs: mpsc::Receiver<Job>) {
        runtime.block_on(async {
            let mut tick = tokio::time::interval(self.options.poll.max(Duration::from_millis(1)));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    job = jobs.recv() => match job {
                        Some(job) => self.work(job),
                        None => return,
                    },
                    _ = tick.tick() => self.tick(),
                }
            }
        });
    }

    /// Does one job. One that panics leaves its asker without an answer, and nobody else.
    fn work(&mut self, job: Job) {
        let done = catch_unwind(AssertUnwindSafe(|| job(self)));
        if done.is_err() {
            self.figures.count(Figure::Failure);
            self.forget();
        }
    }

    fn tick(&mut self) {
        if self.poll().is_err() {
            // While nobody knows what is pinned, no earlier answer holds.
            self.figures.count(Figure::Failure);
            self.forget();
        }
    }

    /// Has definitions of a server compared by another thread.
    pub(super) fn submit(&self, server: &str, comparison: Comparison) -> Result<(), WatchError> {
        if self.comparisons.submit(server, comparison) {
            return Ok(());
        }
        Err(WatchError::Busy {
            server: server.to_owned(),
        })
    }

    /// Notices pins and approvals that are new, whoever made them.
    pub(super) fn poll(&mut self) -> Result<(), StoreError> {
        self.store.require_place()?;
        let data_version = self.store.data_version()?;
        if data_version == self.data_version && !self.wrote {
            return Ok(());
        }
        let revision = self.store.pins_revision()?;
        self.data_version = data_version;
        self.wrote = false;
        if revision != self.revision {
            self.revision = revision;
            self.forget();
            self.revisions.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Pins were made here.
    pub(super) fn pinned(&mut self) -> Result<(), StoreError> {
        self.wrote = true;
        self.poll()
    }

    fn forget(&mut self) {
        for known in self.servers.values_mut() {
            known.answers.clear();
        }
    }

    pub(super) fn forget_answers(&mut self, key: &ServerKey) {
        if let Some(known) = self.servers.get_mut(key) {
            known.answers.clear();
        }
    }

    /// The answer to the same list, while it holds.
    pub(super) fn answer(&self, seen: &SeenList, fingerprint: Fingerprint) -> Option<Arc<Checked>> {
        let known = self.servers.get(&seen.key())?;
        let fresh = u64::try_from(self.options.fresh_for.as_nanos()).unwrap_or(u64::MAX);
        let now = self.options.clock.monotonic();
        let found = known.answers.iter().find(|it| {
            it.fingerprint == fingerprint
                && now.saturating_sub(it.at) < fresh
                && it.settings == seen.settings
        })?;
        Some(Arc::clone(&found.checked))
    }

    pub(super) fn remember(
        &mut self,
        seen: SeenList,
        fingerprint: Fingerprint,
        read: &ReadList,
        checked: &Arc<Checked>,
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
        // What waits for approval, and which alerts are open, is as the list that was judged last left
        // it. Only lists without drift leave nothing.
        let leaves_nothing = |checked: &Checked| checked.changes.is_empty();
        let both = |it: &Answer| leaves_nothing(checked) && leaves_nothing(&it.checked);
        known
            .answers
            .retain(|it| it.fingerprint != fingerprint && both(it));
        if known.answers.len() >= ANSWERS {
            known.answers.remove(0);
        }
        known.answers.push(Answer {
            fingerprint,
            settings: seen.settings,
            at,
            checked: Arc::clone(checked),
        });
    }

    /// Where a tool of a server was seen last: in what the gateway is offered itself, else in a variant.
    pub(super) fn source(&self, server: &str, tool: &str) -> Option<(&ServerKey, &Known)> {
        let default = server_key(server);
        let base = self.servers.get_key_value(&default);
        let others = self.servers.iter().filter(|(key, _)| key.name == server);
        let mut sources = base.into_iter().chain(others);
        sources.find(|(_, known)| known.texts.contains_key(tool))
    }

    /// Publishes alerts that were raised for the first time.
    pub(super) fn tell(&self, key: &ServerKey, drift: &[ToolDrift], recorded: &Recorded) {
        let news = |it: &&RaisedAlert| it.raised == Raised::First;
        let mut by_tool: BTreeMap<&str, &ToolDrift> = BTreeMap::new();
        for drift in drift {
            by_tool.entry(drift.tool()).or_insert(drift);
        }
        for alert in recorded.alerts.iter().filter(news) {
            let Some(drift) = by_tool.get(alert.tool.as_str()) else {
                continue;
            };
            self.publish(RaisedNotice {
                id: alert.id.clone(),
                server: key.name.clone(),
                variant: variant_of(key),
                tool: alert.tool.clone(),
                severity: severity(drift),
                class: drift.class(),
                change_type: drift.change_type(),
                summary: summary(drift),
                at: self.options.clock.wall(),
                drift: document::tool(drift),
            });
        }
    }

    pub(super) fn publish(&self, notice: RaisedNotice) {
        // Nobody has to listen.
        let _unheard = self.notices.send(Arc::new(notice));
    }
}

/// A server of the settings, as the store knows it.
pub(super) fn server_key(server: &str) -> ServerKey {
    ServerKey {
        name: server.to_owned(),
        scope: DEFAULT_SCOPE.to_owned(),
    }
}

/// The variant of clients that a scope is for; none for the gateway itself.
pub(super) fn variant_of(key: &ServerKey) -> Option<String> {
    (key.scope != DEFAULT_SCOPE).then(|| key.scope.clone())
}

/// What became of a tool, in short.
pub(super) fn summarize(drift: &ToolDrift, alerts: &AlertsByTool<'_>) -> ChangeSummary {
    let alert = alerts.get(drift.tool());
    ChangeSummary {
        tool: drift.tool().to_owned(),
        class: drift.class(),
        severity: severity(drift),
        change_type: drift.change_type(),
        summary: summary(drift),
        alert: alert.map(|it| it.id.clone()),
        is_news: alert.is_some_and(|it| it.raised == Raised::First),
    }
}

fn summary(drift: &ToolDrift) -> String {
    toolwarden_drift::text::printable(&first_words(drift))
}
