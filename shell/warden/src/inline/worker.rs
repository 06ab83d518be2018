//! The thread that reads results.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};
use toolwarden_drift::shape::ValueKey;

use super::desk::{Desk, Job};
use super::findings;
use super::flush::{Kept, KeptSignal, Promised};
use super::hidden::texts;
use super::notice::{Figure, Figures, ResultFinding};
use super::options::InlineOptions;
use crate::results::Results;

/// How long the thread rests when it has read everything. Whoever tells it something meanwhile need not
/// wake it, which would cost more than to tell it.
const REST: Duration = Duration::from_millis(5);

/// What the thread is told.
pub(super) enum Told {
    /// A tool returned something.
    Result(Observed),
    /// What was gathered is to be kept now.
    Flush(oneshot::Sender<()>),
}

/// What a tool returned.
pub(super) struct Observed {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) text: Arc<str>,
}

/// Reads results and hands over what they amount to.
pub(super) struct Worker {
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) key: ValueKey,
    pub(super) options: InlineOptions,
    pub(super) figures: Arc<Figures>,
    /// How many bytes wait.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) findings: broadcast::Sender<Arc<ResultFinding>>,
    /// What was gathered; nothing for a tool whose results are not held to anything.
    gathered: BTreeMap<String, BTreeMap<String, Option<Results>>>,
    /// How many tools that are.
    tools: usize,
    since: Instant,
    /// When an alert about a server, a tool and a rule was raised last.
    told: BTreeMap<(String, String, &'static str), u64>,
}

/// Kinds of results after which the result proper is still to come.
const UNFINISHED: [&str; 2] = ["input_required", "task"];

impl Worker {
    pub(super) fn new(
        jobs: mpsc::Sender<Job>,
        key: ValueKey,
        options: InlineOptions,
        figures: Arc<Figures>,
        waiting: Arc<AtomicUsize>,
        findings: broadcast::Sender<Arc<ResultFinding>>,
    ) -> Self {
        Self {
            jobs,
            key,
            options,
            figures,
            waiting,
            findings,
            gathered: BTreeMap::new(),
            tools: 0,
            since: Instant::now(),
            told: BTreeMap::new(),
        }
    }

    /// Works until nobody can tell it anything any more.
    pub(super) fn run(mut self, told: &Receiver<Told>) {
        let mut rested = true;
        loop {
            let next = if let Ok(next) = told.try_recv() {
                Ok(next)
            } else if !rested {
                std::thread::sleep(REST);
                rested = true;
                continue;
            } else if self.gathered.is_empty() {
                told.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                told.recv_timeout(self.patience().saturating_sub(self.since.elapsed()))
            };
            rested = false;
            match next {
                Ok(Told::Result(observed)) => self.read(&observed),
                Ok(Told::Flush(done)) => self.flush(Some(done)),
                Err(RecvTimeoutError::Timeout) => self.flush(None),
                Err(RecvTimeoutError::Disconnected) => return self.flush(None),
            }
            let is_due = self.since.elapsed() >= self.patience();
            if self.tools >= self.options.most_tools || (is_due && !self.gathered.is_empty()) {
                self.flush(None);
            }
        }
    }

    /// How long results are gathered.
    fn patience(&self) -> Duration {
        let more = self.tools / self.options.flush_tools.max(1);
        let times = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1);
        self.options.flush_every.saturating_mul(times)
    }

    /// Reads one result. One that makes a reader panic is one that nobody can read.
    fn read(&mut self, observed: &Observed) {
        self.waiting
            .fetch_sub(observed.text.len(), Ordering::AcqRel);
        let done = catch_unwind(AssertUnwindSafe(|| self.take(observed)));
        let figure = match done {
            Ok(true) => Figure::Taken,
            Ok(false) | Err(_) => Figure::Unreadable,
        };
        self.figures.count(figure);
    }

    fn take(&mut self, observed: &Observed) -> bool {
        let Ok(result) = serde_json::from_str::<Value>(&observed.text) else {
            // The agent may read what this reader cannot.
            let texts = json!({"structuredContent": texts(&observed.text)});
            self.find(observed, &texts);
            return false;
        };
        let kind = result.get("resultType").and_then(Value::as_str);
        if kind.is_some_and(|kind| UNFINISHED.contains(&kind)) {
            // A question to the agent is no result.
            return true;
        }
        self.find(observed, &result);
        if kind.is_some_and(|kind| kind != "complete") {
            return true;
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            // A tool that fails does not return what it returns otherwise.
            return true;
        }
        let Observed { server, tool, .. } = observed;
        if self.gathered.is_empty() {
            self.since = Instant::now();
        }
        let known = self.gathered.get(server).and_then(|it| it.get(tool));
        if known.is_none() {
            let results = self.promised(server, tool);
            let results = results.map(|it| Results::new(&self.key, it.schema.as_ref()));
            let of_server = self.gathered.entry(server.clone()).or_default();
            of_server.insert(tool.clone(), results);
            self.tools += 1;
        }
        let of_server = self.gathered.get_mut(server);
        if let Some(Some(results)) = of_server.and_then(|it| it.get_mut(tool)) {
            results.observe(&result, &self.key);
        }
        true
    }

    /// Tells what the text of a result carries, and has alerts raised now and then.
    fn find(&mut self, observed: &Observed, result: &Value) {
        for (rule, finding) in findings::of_result(result) {
            let found = Arc::new(ResultFinding {
                server: observed.server.clone(),
                tool: observed.tool.clone(),
                rule,
                weight: finding.weight,
                excerpt: findings::excerpt(&finding),
                at: self.options.clock.wall(),
            });
            if self.is_news(&found) {
                let found = Arc::clone(&found);
                self.ask(move |desk| {
                    if desk.raise_finding(&found).is_err() {
                        desk.figures.count(Figure::Failure);
                    }
                });
            }
            // Nobody has to listen.
            let _unheard = self.findings.send(found);
        }
    }

    fn is_news(&mut self, found: &ResultFinding) -> bool {
        let now = self.options.clock.monotonic();
        let pause = nanoseconds(self.options.finding_every);
        self.told.retain(|_, at| now.saturating_sub(*at) < pause);
        let key = (found.server.clone(), found.tool.clone(), found.rule);
        let is_news = !self.told.contains_key(&key);
        if is_news {
            self.told.insert(key, now);
        }
        is_news
    }

    fn promised(&self, server: &str, tool: &str) -> Option<Promised> {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        let promised = self.ask(move |desk| desk.promised(&server, &tool));
        promised?.ok()?
    }

    /// Hands over what was gathered.
    fn flush(&mut self, done: Option<oneshot::Sender<()>>) {
        self.tools = 0;
        let mut batch = BTreeMap::new();
        for (server, tools) in std::mem::take(&mut self.gathered) {
            let tools = tools.into_iter();
            let seen = tools.filter_map(|(tool, results)| Some((tool, results?)));
            let seen: BTreeMap<String, Results> = seen.collect();
            if !seen.is_empty() {
                batch.insert(server, seen);
            }
        }
        let kept: Kept = Arc::new(done.map(KeptSignal::new));
        if !batch.is_empty() {
            self.ask(move |desk| desk.take(batch, &kept));
        }
    }

    /// Has something done by the thread of the store, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            let _unheard = reply.send(job(desk));
        });
        self.jobs.blocking_send(job).ok()?;
        answer.blocking_recv().ok()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
