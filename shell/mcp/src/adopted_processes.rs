//! Ends processes that left the process group of the server that started them, by `setsid` or a
//! double fork.
//!
//! This process adopts the orphans of its descendants (`PR_SET_CHILD_SUBREAPER`). It recognizes an
//! adopted process by a variable in the environment of every server, and ends it with its server. A
//! process that removes the variable from its environment ends only with this process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use crate::orphan_reaper;

/// The environment variable that identifies the processes of a server.
pub(crate) const SERVER_MARK_VARIABLE: &str = "TOOLWARDEN_SERVER_PROCESS";

/// How often to search for descendants of processes that were just killed.
const KILL_ROUNDS: usize = 5;
const KILL_ROUND_DELAY: Duration = Duration::from_millis(2);

static IS_SUBREAPER: AtomicBool = AtomicBool::new(false);

/// The processes started here. Locked while a process is started, so that [`reap`] does not wait
/// for it.
static PROCESSES: Mutex<ProcessTable> = Mutex::new(ProcessTable {
    started: BTreeSet::new(),
    adopted: BTreeMap::new(),
});

pub(crate) struct ProcessTable {
    started: BTreeSet<i32>,
    /// Adopted processes that are running, with their start times.
    adopted: BTreeMap<i32, u64>,
}

impl ProcessTable {
    pub(crate) fn add(&mut self, process: Pid) {
        self.started.insert(raw_pid(process));
    }
}

/// Makes this process adopt the orphans of its descendants. The caller must call [`reap`]
/// periodically.
///
/// # Errors
/// The system does not support it.
pub fn enable_adoption() -> io::Result<()> {
    become_subreaper()?;
    IS_SUBREAPER.store(true, Ordering::Release);
    Ok(())
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process adopts orphans.
#[must_use]
pub fn is_adopting() -> bool {
    IS_SUBREAPER.load(Ordering::Acquire)
}

/// Reaps adopted processes that have exited. Registers running ones with the reaper, which ends
/// them even if this process is killed.
pub fn reap() {
    if !is_adopting() {
        return;
    }
    let mut own = lock_processes();
    let children = children();
    for child in &children {
        let id = raw_pid(*child);
        if own.started.contains(&id) || orphan_reaper::is_reaper(*child) {
            continue;
        }
        let ended = waitid(
            WaitId::Pid(*child),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        );
        if matches!(ended, Ok(None))
            && !own.adopted.contains_key(&id)
            && let Some(at) = orphan_reaper::started_at(*child)
        {
            own.adopted.insert(id, at);
            orphan_reaper::register_adopted(*child, at);
        }
    }
    let here: BTreeSet<i32> = children.into_iter().map(raw_pid).collect();
    own.adopted.retain(|id, _| {
        let is_here = here.contains(id);
        if !is_here && let Some(process) = Pid::from_raw(*id) {
            orphan_reaper::unregister_adopted(process);
        }
        is_here
    });
}

/// Ends every adopted process; called before this process exits.
pub fn kill_all() {
    if !is_adopting() {
        return;
    }
    kill_matching(|_| true);
    reap();
}

/// The lock that is held while a process is started.
pub(crate) fn lock_processes() -> MutexGuard<'static, ProcessTable> {
    PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets a process started here after it was waited for.
pub(crate) fn remove_process(process: Pid) {
    lock_processes().started.remove(&raw_pid(process));
}

/// A mark unique to one server.
pub(crate) fn new_mark() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{}.{made}", raw_pid(getpid()))
}

/// Sends a signal to the adopted processes with this mark.
pub(crate) fn signal_marked(mark: &str, signal: Signal) -> usize {
    if !is_adopting() {
        return 0;
    }
    signal_adopted(signal, |process| has_mark(process, mark))
}

/// Kills the adopted processes with this mark and their descendants.
pub(crate) fn kill_marked(mark: &str) {
    if is_adopting() {
        kill_matching(|process| has_mark(process, mark));
    }
}

fn kill_matching(is_meant: impl Fn(Pid) -> bool) {
    for _ in 0..KILL_ROUNDS {
        if signal_adopted(Signal::KILL, &is_meant) == 0 {
            return;
        }
        // Their children are adopted after they have exited.
        sleep(KILL_ROUND_DELAY);
    }
}

fn signal_adopted(signal: Signal, is_meant: impl Fn(Pid) -> bool) -> usize {
    let own = lock_processes();
    let mut signalled = 0;
    for child in children() {
        let is_own = own.started.contains(&raw_pid(child)) || orphan_reaper::is_reaper(child);
        if !is_own && is_meant(child) && !has_ended(child) {
            // The signal fails only if the process has already exited, which is the goal.
            let _ended = kill_process(child, signal);
            signalled += 1;
        }
    }
    signalled
}

fn has_ended(process: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(process), look), Ok(None))
}

fn has_mark(process: Pid, mark: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{}/environ", raw_pid(process))) else {
        return false;
    };
    let wanted = format!("{SERVER_MARK_VARIABLE}={mark}");
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|variable| variable == wanted.as_bytes())
}

/// The children of this process, both started here and adopted.
fn children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let texts = threads.filter_map(|thread| {
        let path = thread.ok()?.path().join("children");
        fs::read_to_string(path).ok()
    });
    texts
        .flat_map(|text| {
            let ids = text.split_ascii_whitespace();
            let ids = ids.filter_map(|id| Pid::from_raw(id.parse().ok()?));
            ids.collect::<Vec<_>>()
        })
        .collect()
}

fn raw_pid(process: Pid) -> i32 {
    process.as_raw_nonzero().get()
}
