use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use toolwarden_drift::shape::ValueKey;
use toolwarden_store::{Alert, AlertFilter, AlertStatus, Approval, Baseline, Server, Store};

use super::alert::{ResultFinding, WatchAlert, WatchCounter, WatchCounters};
use super::comparison_pool::ComparisonPool;
use super::error::WatchError;
use super::observed::{ListCheck, ReceivedList};
use super::options::InlineOptions;
use super::result_worker::{ObservedResult, ResultCommand, ResultWorker};
use super::store_thread::{StoreJob, StoreThread, server_key};
use crate::approval::{ApprovedItem, PendingApproval};
use crate::approve::{ApprovalSelection, approve, needs_comparison, pending_approvals};

/// The maximum number of queued jobs for the store.
const MAX_JOBS: usize = 256;
/// The queue name for reviews by people; no server has this name.
const REVIEW_QUEUE: &str = "";
/// How many notices a subscriber may lag behind.
const ALERT_BACKLOG: usize = 1024;
/// Schemas are compared recursively.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Watches inside the gateway. Clones share everything.
#[derive(Clone, Debug)]
pub struct InlineWatch {
    jobs: mpsc::Sender<StoreJob>,
    results: SyncSender<ResultCommand>,
    queued_bytes: Arc<AtomicUsize>,
    max_bytes: usize,
    counters: Arc<WatchCounters>,
    revisions: watch::Receiver<u64>,
    alerts: broadcast::Sender<Arc<WatchAlert>>,
    findings: broadcast::Sender<Arc<ResultFinding>>,
}

/// A summary of a server in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSummary {
    /// The server.
    pub server: Server,
    /// How many tools are pinned.
    pub pinned: usize,
    /// The number of tools that are pending approval.
    pub pending_approvals: usize,
    /// How many alerts are open.
    pub open_alerts: usize,
}

/// The pin of a tool, with the text of its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedDefinition {
    /// The baseline; the last one if the tool was retired.
    pub baseline: Baseline,
    /// The definition, if more than its hash is known.
    pub text: Option<String>,
}

/// Every pin that a tool ever had, and every alert about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolHistory {
    /// The oldest first.
    pub baselines: Vec<Baseline>,
    /// The oldest first.
    pub alerts: Vec<Alert>,
}

/// An approval to make.
#[derive(Clone, Debug, Default)]
pub struct ApprovalRequest {
    /// The server; `None` means all.
    pub server: Option<String>,
    /// The scope; `None` means all scopes: that of the gateway's own list and those of variants.
    pub scope: Option<String>,
    /// What to approve.
    pub selection: ApprovalSelection,
    /// Who approves it.
    pub by: String,
    /// The reason.
    pub why: Option<String>,
}

impl InlineWatch {
    /// Opens the store, creates it if it does not exist, and starts to watch.
    ///
    /// # Errors
    /// The store cannot be used, or a thread cannot be started.
    pub fn open(store: &Path, options: InlineOptions) -> Result<Self, WatchError> {
        let comparisons = ComparisonPool::start(store, &options)?;
        let store = Store::open(store)?;
        let key = ValueKey::new(store.value_key()?);
        let figures = Arc::new(WatchCounters::default());
        let (revised, revisions) = watch::channel(0);
        let (notices, _) = broadcast::channel(ALERT_BACKLOG);
        let (findings, _) = broadcast::channel(ALERT_BACKLOG);
        let (jobs, asked) = mpsc::channel(MAX_JOBS);
        let (results, told) = sync_channel(options.max_queued);
        let pending_approvals = Arc::new(AtomicUsize::new(0));
        let most_bytes = options.max_queued_bytes;
        let worker = ResultWorker::new(
            jobs.clone(),
            key,
            options.clone(),
            Arc::clone(&figures),
            Arc::clone(&pending_approvals),
            findings.clone(),
        );
        let desk = StoreThread::new(
            store,
            options,
            Arc::clone(&figures),
            (revised, notices.clone()),
            (jobs.downgrade(), comparisons),
        )?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(WatchError::Start)?;
        spawn_thread("watch-store", move || desk.run(&runtime, asked))?;
        spawn_thread("watch-results", move || worker.run(&told))?;
        Ok(Self {
            jobs,
            results,
            queued_bytes: pending_approvals,
            max_bytes: most_bytes,
            counters: figures,
            revisions,
            alerts: notices,
            findings,
        })
    }

    /// Compares the list of a server with its pins, and stores the result: pins of new tools, observations
    /// that need approval, and alerts. The same list is answered from the cache while the pins are
    /// unchanged.
    ///
    /// # Errors
    /// The store cannot be read or written. The gateway must then serve nothing from the list.
    pub async fn check(&self, seen: ReceivedList) -> Result<Arc<ListCheck>, WatchError> {
        let (reply, answer) = oneshot::channel();
        let job: StoreJob = Box::new(move |desk| desk.check(seen, reply));
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| WatchError::NoReply)?;
        answer.await.map_err(|_| WatchError::NoReply)?
    }

    /// Queues a result of a tool, as the server wrote it. It never waits: a result for which the queue has
    /// no room is dropped and counted.
    pub fn observe_result(&self, server: &str, tool: &str, result: Arc<str>) {
        let size = result.len();
        let pending_approvals = self.queued_bytes.fetch_add(size, Ordering::AcqRel);
        let observed = ObservedResult {
            server: server.to_owned(),
            tool: tool.to_owned(),
            text: result,
        };
        let has_room = pending_approvals.saturating_add(size) <= self.max_bytes;
        if !has_room
            || self
                .results
                .try_send(ResultCommand::Result(observed))
                .is_err()
        {
            self.queued_bytes.fetch_sub(size, Ordering::AcqRel);
            self.counters.count(WatchCounter::ResultDropped);
        }
    }

    /// Waits until every queued result is stored.
    ///
    /// # Errors
    /// The watch has ended.
    pub async fn flush(&self) -> Result<(), WatchError> {
        let (mut done, kept) = oneshot::channel();
        loop {
            match self.results.try_send(ResultCommand::Flush(done)) {
                Ok(()) => break,
                Err(TrySendError::Full(ResultCommand::Flush(back))) => {
                    done = back;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(_) => return Err(WatchError::NoReply),
            }
        }
        kept.await.map_err(|_| WatchError::NoReply)
    }

    /// Changes when a process changes pins or approvals.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revisions.clone()
    }

    /// A receiver of every alert from now on.
    #[must_use]
    pub fn subscribe_alerts(&self) -> broadcast::Receiver<Arc<WatchAlert>> {
        self.alerts.subscribe()
    }

    /// A receiver of every finding in results from now on.
    #[must_use]
    pub fn subscribe_findings(&self) -> broadcast::Receiver<Arc<ResultFinding>> {
        self.findings.subscribe()
    }

    /// The counters of the watch.
    #[must_use]
    pub fn counters(&self) -> &WatchCounters {
        &self.counters
    }

    /// The alerts that match the filter, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn alerts(&self, filter: AlertFilter) -> Result<Vec<Alert>, WatchError> {
        self.run_on_store_thread(move |desk| Ok(desk.store.alerts(&filter)?))
            .await
    }

    /// The alert with an id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn alert(&self, id: String) -> Result<Option<Alert>, WatchError> {
        self.run_on_store_thread(move |desk| Ok(desk.store.alert(&id)?))
            .await
    }

    /// Every server in the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn servers(&self) -> Result<Vec<ServerSummary>, WatchError> {
        self.run_on_store_thread(|desk| {
            let open = desk.store.alerts(&AlertFilter {
                status: Some(AlertStatus::Open),
                ..AlertFilter::default()
            })?;
            let servers = desk.store.servers()?.into_iter().map(|server| {
                Ok(ServerSummary {
                    pinned: desk.store.baselines(server.id)?.len(),
                    pending_approvals: desk.store.sightings(server.id)?.len(),
                    open_alerts: open.iter().filter(|it| it.server == server.key).count(),
                    server,
                })
            });
            servers.collect()
        })
        .await
    }

    /// The baselines of the tools of a server.
    ///
    /// # Errors
    /// No server has the name, or the store cannot be read.
    pub async fn baselines(&self, server: String) -> Result<Vec<Baseline>, WatchError> {
        self.run_on_store_thread(move |desk| {
            let server = desk.find_server(&server)?;
            Ok(desk.store.baselines(server.id)?)
        })
        .await
    }

    /// The pin of one tool.
    ///
    /// # Errors
    /// The tool was never pinned, or the store cannot be read.
    pub async fn pinned_definition(
        &self,
        server: String,
        tool: String,
    ) -> Result<PinnedDefinition, WatchError> {
        let history = self.history(server, tool.clone()).await?;
        let last = history.baselines.into_iter().next_back();
        let baseline = last.ok_or(WatchError::UnknownTool {
            tool,
            suggestion: String::new(),
        })?;
        self.run_on_store_thread(move |desk| {
            let text = match baseline.definition {
                Some(kept) => Some(desk.store.definition(kept.fingerprint)?),
                None => None,
            };
            Ok(PinnedDefinition { baseline, text })
        })
        .await
    }

    /// Every pin that a tool ever had, and every alert about it.
    ///
    /// # Errors
    /// The tool is unknown, or the store cannot be read.
    pub async fn history(&self, server: String, tool: String) -> Result<ToolHistory, WatchError> {
        self.run_on_store_thread(move |desk| {
            let server = desk.find_server(&server)?;
            let baselines = desk.store.history(server.id, &tool)?;
            let mut alerts = desk.store.alerts(&AlertFilter {
                tools: vec![tool.clone()],
                servers: vec![server.key.name.clone()],
                ..AlertFilter::default()
            })?;
            alerts.retain(|it| it.server == server.key);
            if baselines.is_empty() && alerts.is_empty() {
                let known = desk.store.tools(server.id)?;
                let known = known.iter().map(String::as_str);
                let suggestion = toolwarden_model::did_you_mean(&tool, known);
                return Err(WatchError::UnknownTool { tool, suggestion });
            }
            Ok(ToolHistory { baselines, alerts })
        })
        .await
    }

    /// The pending approvals of one server, or of all.
    ///
    /// # Errors
    /// No server has the name, or the store cannot be read.
    pub async fn pending_approvals(
        &self,
        server: Option<String>,
    ) -> Result<Vec<PendingApproval>, WatchError> {
        let servers = self
            .run_on_store_thread(move |desk| desk.servers_named(server.as_deref()))
            .await?;
        self.run_comparison(move |store| Ok(pending_approvals(store, &servers)?))
            .await
    }

    /// Approves the selection, all of it or nothing.
    ///
    /// # Errors
    /// A selected item is not pending, or the store cannot be written.
    pub async fn approve(
        &self,
        approving: ApprovalRequest,
    ) -> Result<Vec<ApprovedItem>, WatchError> {
        let ApprovalRequest {
            server,
            scope,
            selection,
            by,
            why,
        } = approving;
        let found = self.run_on_store_thread(move |desk| {
            let mut servers = desk.servers_named(server.as_deref())?;
            servers.retain(|it| scope.as_ref().is_none_or(|scope| it.key.scope == *scope));
            let at = desk.options.clock.wall();
            let approval = Approval { by, at, why };
            let compares = needs_comparison(&desk.store, &servers, &selection)?;
            Ok((servers, selection, approval, compares))
        });
        let (servers, selection, approval, compares) = found.await?;
        if compares {
            let approved = self
                .run_comparison(move |store| Ok(approve(store, &servers, &selection, &approval)?));
            let approved = approved.await?;
            self.run_on_store_thread(|desk| Ok(desk.pins_written()?))
                .await?;
            return Ok(approved);
        }
        self.run_on_store_thread(move |desk| {
            let approved = approve(&desk.store, &servers, &selection, &approval)?;
            desk.pins_written()?;
            Ok(approved)
        })
        .await
    }

    /// Runs a comparison for a person on the comparison pool.
    async fn run_comparison<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<T, WatchError> {
        let (reply, answer) = oneshot::channel();
        self.run_on_store_thread(move |desk| {
            let comparison = Box::new(move |store: &Store| {
                let _unheard = reply.send(work(store));
            });
            desk.submit(REVIEW_QUEUE, comparison)
        })
        .await?;
        answer.await.map_err(|_| WatchError::NoReply)?
    }

    /// Runs a job on the store thread.
    async fn run_on_store_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut StoreThread) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<T, WatchError> {
        let (reply, answer) = oneshot::channel();
        let job: StoreJob = Box::new(move |desk| {
            // The caller may have gone.
            let _unheard = reply.send(job(desk));
        });
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| WatchError::NoReply)?;
        answer.await.map_err(|_| WatchError::NoReply)?
    }
}

impl StoreThread {
    fn find_server(&self, name: &str) -> Result<Server, WatchError> {
        match self.store.server(&server_key(name))? {
            Some(server) => Ok(server),
            None => Err(self.unknown_server(name)?),
        }
    }

    /// The servers with a name, in every scope; all servers without a name.
    fn servers_named(&self, name: Option<&str>) -> Result<Vec<Server>, WatchError> {
        let mut servers = self.store.servers()?;
        let Some(name) = name else {
            return Ok(servers);
        };
        servers.retain(|it| it.key.name == name);
        if servers.is_empty() {
            return Err(self.unknown_server(name)?);
        }
        Ok(servers)
    }

    fn unknown_server(&self, name: &str) -> Result<WatchError, WatchError> {
        let servers = self.store.servers()?;
        let known = servers.iter().map(|it| it.key.name.as_str());
        Ok(WatchError::UnknownServer {
            name: name.to_owned(),
            suggestion: toolwarden_model::did_you_mean(name, known),
        })
    }
}

pub(super) fn spawn_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), WatchError> {
    let builder = thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES);
    builder.spawn(work).map_err(WatchError::Start)?;
    Ok(())
}
