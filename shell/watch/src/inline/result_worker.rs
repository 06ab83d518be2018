//! The thread that reads and summarizes results.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};
use toolwarden_drift::shape::ValueKey;

use super::alert::{ResultFinding, WatchCounter, WatchCounters};
use super::options::InlineOptions;
use super::result_check::{ExpectedOutput, FlushGuard, SharedFlushGuard};
use super::result_findings;
use super::store_thread::{StoreJob, StoreThread};
use super::strip_hidden::decode_strings;
use crate::observed_results::ObservedResults;

/// How long the thread sleeps after it has read everything. A sender within this time need not wake it,
/// which would cost more than sending.
const IDLE_DELAY: Duration = Duration::from_millis(5);

/// A message to the thread.
pub(super) enum ResultCommand {
    /// A result of a tool.
    Result(ObservedResult),
    /// A request to store the collected results now.
    Flush(oneshot::Sender<()>),
}

/// A result of a tool.
pub(super) struct ObservedResult {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) text: Arc<str>,
}

/// Reads results and hands their shapes to the store thread.
pub(super) struct ResultWorker {
    pub(super) jobs: mpsc::Sender<StoreJob>,
    pub(super) key: ValueKey,
    pub(super) options: InlineOptions,
    pub(super) counters: Arc<WatchCounters>,
    /// The number of queued bytes.
    pub(super) queued_bytes: Arc<AtomicUsize>,
    pub(super) findings: broadcast::Sender<Arc<ResultFinding>>,
    /// The collected results; `None` for a tool whose results are not compared.
    pending_results: BTreeMap<String, BTreeMap<String, Option<ObservedResults>>>,
    /// The number of tools in it.
    pending_tools: usize,
    last_flush: Instant,
    /// When an alert about a server, a tool and a rule was last raised.
    last_alerts: BTreeMap<(String, String, &'static str), u64>,
}

/// Kinds of results that precede the actual result.
const UNFINISHED: [&str; 2] = ["input_required", "task"];

impl ResultWorker {
    pub(super) fn new(
        jobs: mpsc::Sender<StoreJob>,
        key: ValueKey,
        options: InlineOptions,
        counters: Arc<WatchCounters>,
        queued_bytes: Arc<AtomicUsize>,
        findings: broadcast::Sender<Arc<ResultFinding>>,
    ) -> Self {
        Self {
            jobs,
            key,
            options,
            counters,
            queued_bytes,
            findings,
            pending_results: BTreeMap::new(),
            pending_tools: 0,
            last_flush: Instant::now(),
            last_alerts: BTreeMap::new(),
        }
    }

    /// Runs until all senders are gone.
    pub(super) fn run(mut self, told: &Receiver<ResultCommand>) {
        let mut rested = true;
        loop {
            let next = if let Ok(next) = told.try_recv() {
                Ok(next)
            } else if !rested {
                std::thread::sleep(IDLE_DELAY);
                rested = true;
                continue;
            } else if self.pending_results.is_empty() {
                told.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                told.recv_timeout(self.flush_delay().saturating_sub(self.last_flush.elapsed()))
            };
            rested = false;
            match next {
                Ok(ResultCommand::Result(observed)) => self.read_result(&observed),
                Ok(ResultCommand::Flush(done)) => self.flush(Some(done)),
                Err(RecvTimeoutError::Timeout) => self.flush(None),
                Err(RecvTimeoutError::Disconnected) => return self.flush(None),
            }
            let is_due = self.last_flush.elapsed() >= self.flush_delay();
            if self.pending_tools >= self.options.max_tools
                || (is_due && !self.pending_results.is_empty())
            {
                self.flush(None);
            }
        }
    }

    /// How long results are collected.
    fn flush_delay(&self) -> Duration {
        let more = self.pending_tools / self.options.tools_per_flush_interval.max(1);
        let times = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1);
        self.options.flush_interval.saturating_mul(times)
    }

    /// Reads one result. A result that makes the parser panic counts as unreadable.
    fn read_result(&mut self, observed: &ObservedResult) {
        self.queued_bytes
            .fetch_sub(observed.text.len(), Ordering::AcqRel);
        let done = catch_unwind(AssertUnwindSafe(|| self.accept_result(observed)));
        let figure = match done {
            Ok(true) => WatchCounter::ResultRead,
            Ok(false) | Err(_) => WatchCounter::ResultUnreadable,
        };
        self.counters.count(figure);
    }

    fn accept_result(&mut self, observed: &ObservedResult) -> bool {
        let Ok(result) = serde_json::from_str::<Value>(&observed.text) else {
            // The agent may be able to read what this parser cannot.
            let texts = json!({"structuredContent": decode_strings(&observed.text)});
            self.report_findings(observed, &texts);
            return false;
        };
        let kind = result.get("resultType").and_then(Value::as_str);
        if kind.is_some_and(|kind| UNFINISHED.contains(&kind)) {
            // A request for input is not a result.
            return true;
        }
        self.report_findings(observed, &result);
        if kind.is_some_and(|kind| kind != "complete") {
            return true;
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            // The result of a failed call has a different shape.
            return true;
        }
        let ObservedResult { server, tool, .. } = observed;
        if self.pending_results.is_empty() {
            self.last_flush = Instant::now();
        }
        let known = self.pending_results.get(server).and_then(|it| it.get(tool));
        if known.is_none() {
            let results = self.expected_output(server, tool);
            let results = results.map(|it| ObservedResults::new(&self.key, it.schema.as_ref()));
            let of_server = self.pending_results.entry(server.clone()).or_default();
            of_server.insert(tool.clone(), results);
            self.pending_tools += 1;
        }
        let of_server = self.pending_results.get_mut(server);
        if let Some(Some(results)) = of_server.and_then(|it| it.get_mut(tool)) {
            results.observe(&result, &self.key);
        }
        true
    }

    /// Publishes the findings in a result, and raises alerts at a limited rate.
    fn report_findings(&mut self, observed: &ObservedResult, result: &Value) {
        for (rule, finding) in result_findings::scan_result(result) {
            let found = Arc::new(ResultFinding {
                server: observed.server.clone(),
                tool: observed.tool.clone(),
                rule,
                weight: finding.weight,
                excerpt: result_findings::excerpt(&finding),
                at: self.options.clock.wall(),
            });
            if self.should_alert(&found) {
                let found = Arc::clone(&found);
                self.run_on_store_thread(move |desk| {
                    if desk.raise_finding(&found).is_err() {
                        desk.counters.count(WatchCounter::Failure);
                    }
                });
            }
            // A finding without subscribers is dropped.
            let _unheard = self.findings.send(found);
        }
    }

    fn should_alert(&mut self, found: &ResultFinding) -> bool {
        let now = self.options.clock.monotonic();
        let pause = nanoseconds(self.options.finding_interval);
        self.last_alerts
            .retain(|_, at| now.saturating_sub(*at) < pause);
        let key = (found.server.clone(), found.tool.clone(), found.rule);
        let is_news = !self.last_alerts.contains_key(&key);
        if is_news {
            self.last_alerts.insert(key, now);
        }
        is_news
    }

    fn expected_output(&self, server: &str, tool: &str) -> Option<ExpectedOutput> {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        let promised = self.run_on_store_thread(move |desk| desk.expected_output(&server, &tool));
        promised?.ok()?
    }

    /// Hands over the collected results.
    fn flush(&mut self, done: Option<oneshot::Sender<()>>) {
        self.pending_tools = 0;
        let mut batch = BTreeMap::new();
        for (server, tools) in std::mem::take(&mut self.pending_results) {
            let tools = tools.into_iter();
            let seen = tools.filter_map(|(tool, results)| Some((tool, results?)));
            let seen: BTreeMap<String, ObservedResults> = seen.collect();
            if !seen.is_empty() {
                batch.insert(server, seen);
            }
        }
        let kept: SharedFlushGuard = Arc::new(done.map(FlushGuard::new));
        if !batch.is_empty() {
            self.run_on_store_thread(move |desk| desk.check_batch(batch, &kept));
        }
    }

    /// Runs a job on the store thread, and waits for it.
    fn run_on_store_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut StoreThread) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let job: StoreJob = Box::new(move |desk| {
            let _unheard = reply.send(job(desk));
        });
        self.jobs.blocking_send(job).ok()?;
        answer.blocking_recv().ok()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
