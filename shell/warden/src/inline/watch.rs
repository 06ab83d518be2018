use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use toolwarden_drift::shape::ValueKey;
use toolwarden_store::{Alert, AlertFilter, AlertStatus, Approval, Baseline, Server, Store};

use super::comparisons::Comparisons;
use super::desk::{Desk, Job, server_key};
use super::error::WatchError;
use super::notice::{Figure, Figures, RaisedNotice, ResultFinding};
use super::options::InlineOptions;
use super::seen::{Checked, SeenList};
use super::worker::{Observed, Told, Worker};
use crate::approve::{Approved, Selection, Waiting, approve, needs_comparison, waiting};

/// How many questions may wait for the store.
const JOBS: usize = 256;
/// Whose turn it is when people review changes; no server is called that.
const REVIEWS: &str = "";
/// How many notices a listener may be behind.
const NOTICES: usize = 1024;
/// Schemas are compared by going down into them.
const STACK: usize = 16 * 1024 * 1024;

/// Watches inside the gateway. Clones share everything.
#[derive(Clone, Debug)]
pub struct InlineWatch {
    jobs: mpsc::Sender<Job>,
    results: SyncSender<Told>,
    waiting: Arc<AtomicUsize>,
    most_bytes: usize,
    figures: Arc<Figures>,
    revisions: watch::Receiver<u64>,
    notices: broadcast::Sender<Arc<RaisedNotice>>,
    findings: broadcast::Sender<Arc<ResultFinding>>,
}

/// A server that is kept, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSummary {
    /// The server.
    pub server: Server,
    /// How many tools are pinned.
    pub pinned: usize,
    /// How many tools wait for approval.
    pub waiting: usize,
    /// How many alerts are open.
    pub open_alerts: usize,
}

/// What a tool is held to, with the text of its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedDefinition {
    /// The baseline; the last one of a tool that was let go.
    pub baseline: Baseline,
    /// The definition, where more than its hash is known.
    pub text: Option<String>,
}

/// Everything a tool was ever held to, and every alert about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The first one first.
    pub baselines: Vec<Baseline>,
    /// The oldest first.
    pub alerts: Vec<Alert>,
}

/// An approval to be made.
#[derive(Clone, Debug, Default)]
pub struct Approving {
    /// Of which server; none means all.
    pub server: Option<String>,
    /// In which scope; none means every one: that of the gateway's own list and those of variants.
    pub scope: Option<String>,
    /// What.
    pub selection: Selection,
    /// By whom.
    pub by: String,
    /// Why.
    pub why: Option<String>,
}

impl InlineWatch {
    /// Opens the store, makes it where there is none, and starts to watch.
    ///
    /// # Errors
    /// The store cannot be used, or a thread cannot be started.
    pub fn open(store: &Path, options: InlineOptions) -> Result<Self, WatchError> {
        let comparisons = Comparisons::start(store, &options)?;
        let store = Store::open(store)?;
        let key = ValueKey::new(store.value_key()?);
        let figures = Arc::new(Figures::default());
        let (revised, revisions) = watch::channel(0);
        let (notices, _) = broadcast::channel(NOTICES);
        let (findings, _) = broadcast::channel(NOTICES);
        let (jobs, asked) = mpsc::channel(JOBS);
        let (results, told) = sync_channel(options.queue);
        let waiting = Arc::new(AtomicUsize::new(0));
        let most_bytes = options.queue_bytes;
        let worker = Worker::new(
            jobs.clone(),
            key,
            options.clone(),
            Arc::clone(&figures),
            Arc::clone(&waiting),
            findings.clone(),
        );
        let desk = Desk::new(
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
        spawn("watch-store", move || desk.run(&runtime, asked))?;
        spawn("watch-results", move || worker.run(&told))?;
        Ok(Self {
            jobs,
            results,
            waiting,
            most_bytes,
            figures,
            revisions,
            notices,
            findings,
        })
    }

    /// Holds what a server lists to its pins, and keeps what is found: pins of what was never seen,
    /// sightings of what waits for approval, alerts. The same list is answered from memory while the
    /// pins are the same.
    ///
    /// # Errors
    /// The store cannot be read or written. Nothing of the list may be served then.
    pub async fn check(&self, seen: SeenList) -> Result<Arc<Checked>, WatchError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| desk.check(seen, reply));
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| WatchError::Unanswered)?;
        answer.await.map_err(|_| WatchError::Unanswered)?
    }

    /// Takes in a result of a tool, as the server wrote it. Never waits: what there is no room for is
    /// dropped and counted.
    pub fn observe(&self, server: &str, tool: &str, result: Arc<str>) {
        let size = result.len();
        let waiting = self.waiting.fetch_add(size, Ordering::AcqRel);
        let observed = Observed {
            server: server.to_owned(),
            tool: tool.to_owned(),
            text: result,
        };
        let has_room = waiting.saturating_add(size) <= self.most_bytes;
        if !has_room || self.results.try_send(Told::Result(observed)).is_err() {
            self.waiting.fetch_sub(size, Ordering::AcqRel);
            self.figures.count(Figure::Dropped);
        }
    }

    /// Waits until everything taken in so far is kept.
    ///
    /// # Errors
    /// The watch has ended.
    pub async fn flush(&self) -> Result<(), WatchError> {
        let (mut done, kept) = oneshot::channel();
        loop {
            match self.results.try_send(Told::Flush(done)) {
                Ok(()) => break,
                Err(TrySendError::Full(Told::Flush(back))) => {
                    done = back;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(_) => return Err(WatchError::Unanswered),
            }
        }
        kept.await.map_err(|_| WatchError::Unanswered)
    }

    /// Changes when pins or approvals did, whichever process made them.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revisions.clone()
    }

    /// Every alert that is raised from now on.
    #[must_use]
    pub fn subscribe_alerts(&self) -> broadcast::Receiver<Arc<RaisedNotice>> {
        self.notices.subscribe()
    }

    /// Everything that is found in the text of results from now on.
    #[must_use]
    pub fn subscribe_findings(&self) -> broadcast::Receiver<Arc<ResultFinding>> {
        self.findings.subscribe()
    }

    /// What was done so far.
    #[must_use]
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// The alerts that are wanted, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn alerts(&self, filter: AlertFilter) -> Result<Vec<Alert>, WatchError> {
        self.ask(move |desk| Ok(desk.store.alerts(&filter)?)).await
    }

    /// The alert of an id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn alert(&self, id: String) -> Result<Option<Alert>, WatchError> {
        self.ask(move |desk| Ok(desk.store.alert(&id)?)).await
    }

    /// Every server that is kept.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn servers(&self) -> Result<Vec<ServerSummary>, WatchError> {
        self.ask(|desk| {
            let open = desk.store.alerts(&AlertFilter {
                status: Some(AlertStatus::Open),
                ..AlertFilter::default()
            })?;
            let servers = desk.store.servers()?.into_iter().map(|server| {
                Ok(ServerSummary {
                    pinned: desk.store.baselines(server.id)?.len(),
                    waiting: desk.store.sightings(server.id)?.len(),
                    open_alerts: open.iter().filter(|it| it.server == server.key).count(),
                    server,
                })
            });
            servers.collect()
        })
        .await
    }

    /// What the tools of a server are held to.
    ///
    /// # Errors
    /// No server has the name, or the store cannot be read.
    pub async fn baselines(&self, server: String) -> Result<Vec<Baseline>, WatchError> {
        self.ask(move |desk| {
            let server = desk.server(&server)?;
            Ok(desk.store.baselines(server.id)?)
        })
        .await
    }

    /// What one tool is held to.
    ///
    /// # Errors
    /// Nothing of the tool was ever pinned, or the store cannot be read.
    pub async fn pinned(
        &self,
        server: String,
        tool: String,
    ) -> Result<PinnedDefinition, WatchError> {
        let history = self.history(server, tool.clone()).await?;
        let last = history.baselines.into_iter().next_back();
        let baseline = last.ok_or(WatchError::NoSuchTool {
            tool,
            suggestion: String::new(),
        })?;
        self.ask(move |desk| {
            let text = match baseline.definition {
                Some(kept) => Some(desk.store.definition(kept.fingerprint)?),
                None => None,
            };
            Ok(PinnedDefinition { baseline, text })
        })
        .await
    }

    /// Everything a tool was ever held to, and every alert about it.
    ///
    /// # Errors
    /// Nothing is known of the tool, or the store cannot be read.
    pub async fn history(&self, server: String, tool: String) -> Result<History, WatchError> {
        self.ask(move |desk| {
            let server = desk.server(&server)?;
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
                let suggestion = toolwarden_model::closest(&tool, known);
                return Err(WatchError::NoSuchTool { tool, suggestion });
            }
            Ok(History { baselines, alerts })
        })
        .await
    }

    /// What waits for approval: of one server, or of all.
    ///
    /// # Errors
    /// No server has the name, or the store cannot be read.
    pub async fn changes(&self, server: Option<String>) -> Result<Vec<Waiting>, WatchError> {
        let servers = self
            .ask(move |desk| desk.servers_of(server.as_deref()))
            .await?;
        self.compare(move |store| Ok(waiting(store, &servers)?))
            .await
    }

    /// Approves what is selected, all of it or nothing.
    ///
    /// # Errors
    /// Something selected does not wait, or the store cannot be written.
    pub async fn approve(&self, approving: Approving) -> Result<Vec<Approved>, WatchError> {
        let Approving {
            server,
            scope,
            selection,
            by,
            why,
        } = approving;
        let found = self.ask(move |desk| {
            let mut servers = desk.servers_of(server.as_deref())?;
            servers.retain(|it| scope.as_ref().is_none_or(|scope| it.key.scope == *scope));
            let at = desk.options.clock.wall();
            let approval = Approval { by, at, why };
            let compares = needs_comparison(&desk.store, &servers, &selection)?;
            Ok((servers, selection, approval, compares))
        });
        let (servers, selection, approval, compares) = found.await?;
        if compares {
            let approved =
                self.compare(move |store| Ok(approve(store, &servers, &selection, &approval)?));
            let approved = approved.await?;
            self.ask(|desk| Ok(desk.pinned()?)).await?;
            return Ok(approved);
        }
        self.ask(move |desk| {
            let approved = approve(&desk.store, &servers, &selection, &approval)?;
            desk.pinned()?;
            Ok(approved)
        })
        .await
    }

    /// Has something compared for a person, by a thread that compares definitions.
    async fn compare<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<T, WatchError> {
        let (reply, answer) = oneshot::channel();
        self.ask(move |desk| {
            let comparison = Box::new(move |store: &Store| {
                let _unheard = reply.send(work(store));
            });
            desk.submit(REVIEWS, comparison)
        })
        .await?;
        answer.await.map_err(|_| WatchError::Unanswered)?
    }

    /// Has something done by the thread of the store.
    async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Desk) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<T, WatchError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            // Whoever asked may have gone.
            let _unheard = reply.send(job(desk));
        });
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| WatchError::Unanswered)?;
        answer.await.map_err(|_| WatchError::Unanswered)?
    }
}

impl Desk {
    fn server(&self, name: &str) -> Result<Server, WatchError> {
        match self.store.server(&server_key(name))? {
            Some(server) => Ok(server),
            None => Err(self.unknown(name)?),
        }
    }

    /// The servers of a name, in every scope; without a name all.
    fn servers_of(&self, name: Option<&str>) -> Result<Vec<Server>, WatchError> {
        let mut servers = self.store.servers()?;
        let Some(name) = name else {
            return Ok(servers);
        };
        servers.retain(|it| it.key.name == name);
        if servers.is_empty() {
            return Err(self.unknown(name)?);
        }
        Ok(servers)
    }

    fn unknown(&self, name: &str) -> Result<WatchError, WatchError> {
        let servers = self.store.servers()?;
        let known = servers.iter().map(|it| it.key.name.as_str());
        Ok(WatchError::NoSuchServer {
            name: name.to_owned(),
            suggestion: toolwarden_model::closest(name, known),
        })
    }
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WatchError> {
    let builder = thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK);
    builder.spawn(work).map_err(WatchError::Start)?;
    Ok(())
}
