//! The thread pool that compares definitions, so that a server whose definitions are expensive to compare
//! delays no other server and no approval.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use toolwarden_store::Store;

use super::error::WatchError;
use super::inline_watch::spawn_thread;
use super::options::InlineOptions;

/// The maximum number of queued comparisons of one server.
const MAX_WAITING: usize = 256;

/// A job with its own connection to the store.
pub(super) type ComparisonJob = Box<dyn FnOnce(&Store) + Send>;

/// A bounded thread pool. Servers take turns, and each has at most one running comparison.
#[derive(Debug)]
pub(super) struct ComparisonPool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    pending_approvals: BTreeMap<String, VecDeque<ComparisonJob>>,
    /// The servers with queued work, the next one first. A server with a running comparison is not among
    /// them.
    turns: VecDeque<String>,
    running: BTreeSet<String>,
    is_closed: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl ComparisonPool {
    /// Starts the threads, each with a connection to the store.
    pub(super) fn start(path: &Path, options: &InlineOptions) -> Result<Self, WatchError> {
        let shared = Arc::new(Shared::default());
        for _ in 0..options.compare_threads.max(1) {
            let store = Store::open(path)?;
            store.set_busy_timeout(options.busy_timeout)?;
            let shared = Arc::clone(&shared);
            spawn_thread("watch-compare", move || shared.run(&store))?;
        }
        Ok(Self { shared })
    }

    /// Queues a comparison of a server; returns false if too many are queued.
    pub(super) fn submit(&self, server: &str, comparison: ComparisonJob) -> bool {
        let mut queue = self.shared.lock();
        let pending_approvals = queue
            .pending_approvals
            .entry(server.to_owned())
            .or_default();
        if pending_approvals.len() >= MAX_WAITING {
            return false;
        }
        pending_approvals.push_back(comparison);
        let is_first = pending_approvals.len() == 1;
        if is_first && !queue.running.contains(server) {
            queue.turns.push_back(server.to_owned());
        }
        drop(queue);
        self.shared.changed.notify_one();
        true
    }

    /// Whether another comparison of a server may be queued.
    pub(super) fn has_room(&self, server: &str) -> bool {
        let queue = self.shared.lock();
        let pending_approvals = queue.pending_approvals.get(server);
        pending_approvals.is_none_or(|pending_approvals| pending_approvals.len() < MAX_WAITING)
    }

    /// Whether comparisons of a server are queued or running.
    pub(super) fn is_busy(&self, server: &str) -> bool {
        let queue = self.shared.lock();
        queue.running.contains(server) || queue.pending_approvals.contains_key(server)
    }
}

impl Drop for ComparisonPool {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the pool is closed.
    fn run(&self, store: &Store) {
        while let Some((server, comparison)) = self.next() {
            // A comparison that panics leaves its caller without an answer, and then nothing is served.
            let _failed = catch_unwind(AssertUnwindSafe(|| comparison(store)));
            self.finish(server);
        }
    }

    fn next(&self) -> Option<(String, ComparisonJob)> {
        let mut queue = self.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(taken) = queue.pop() {
                return Some(taken);
            }
            let waited = self.changed.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, server: String) {
        let mut queue = self.lock();
        queue.running.remove(&server);
        if queue.pending_approvals.contains_key(&server) {
            queue.turns.push_back(server);
        }
        drop(queue);
        self.changed.notify_one();
    }
}

impl Queue {
    fn pop(&mut self) -> Option<(String, ComparisonJob)> {
        let server = self.turns.pop_front()?;
        let pending_approvals = self.pending_approvals.get_mut(&server)?;
        let comparison = pending_approvals.pop_front()?;
        if pending_approvals.is_empty() {
            self.pending_approvals.remove(&server);
        }
        self.running.insert(server.clone());
        Some((server, comparison))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A pool with one thread over a new store, and the reports of its comparisons.
    fn pool() -> (
        tempfile::TempDir,
        ComparisonPool,
        Sender<String>,
        Receiver<String>,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let options = InlineOptions {
            compare_threads: 1,
            ..InlineOptions::default()
        };
        let pool = ComparisonPool::start(&folder.path().join("store.db"), &options).unwrap();
        let (sender, receiver) = channel();
        (folder, pool, sender, receiver)
    }

    #[test]
    fn servers_take_turns() {
        let (_folder, pool, sender, receiver) = pool();
        let (open, gate) = channel::<()>();
        assert!(pool.submit("first", Box::new(move |_| assert!(gate.recv().is_err()))));
        for server in ["loud", "loud", "loud", "quiet"] {
            let sender = sender.clone();
            assert!(pool.submit(
                server,
                Box::new(move |_| drop(sender.send(server.to_owned())))
            ));
        }
        assert!(pool.is_busy("loud"));
        drop(open);
        let order: Vec<String> = receiver.iter().take(4).collect();
        assert_eq!(order, ["loud", "quiet", "loud", "loud"]);
    }

    #[test]
    fn a_panic_ends_one_comparison() {
        let (_folder, pool, sender, receiver) = pool();
        assert!(pool.submit("a", Box::new(|_| panic!("hostile"))));
        assert!(pool.submit("a", Box::new(move |_| drop(sender.send("done".to_owned())))));
        assert_eq!(receiver.recv().unwrap(), "done");
    }

    #[test]
    fn the_queue_of_a_server_is_bounded() {
        let (_folder, pool, _, _) = pool();
        let (_open, gate) = channel::<()>();
        assert!(pool.submit("a", Box::new(move |_| assert!(gate.recv().is_err()))));
        let accepted = (0..2 * MAX_WAITING)
            .filter(|_| pool.submit("a", Box::new(|_| ())))
            .count();
        assert!(
            (MAX_WAITING - 1..=MAX_WAITING).contains(&accepted),
            "{accepted}"
        );
        assert!(pool.submit("b", Box::new(|_| ())));
    }
}
