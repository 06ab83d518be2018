//! Processes that left the process group of the server that started them, by `setsid` or a double fork.
//!
//! This process adopts what its descendants leave behind (`PR_SET_CHILD_SUBREAPER`). An adopted process is known
//! by a variable that every server has in its environment, and ends with its server. One that removes the
//! variable from its environment ends with this process only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use crate::reaper;

/// The variable by which the processes of a server are known.
pub(crate) const MARK: &str = "TOOLWARDEN_SERVER_PROCESS";

/// How often descendants of processes that were just killed are looked for.
const ROUNDS: usize = 5;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(2);

static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The processes started here. Held while one is started, so that [`reap`] does not wait for it.
static OWN: Mutex<Own> = Mutex::new(Own {
    started: BTreeSet::new(),
    adopted: BTreeMap::new(),
});

pub(crate) struct Own {
    started: BTreeSet<i32>,
    /// Adopted processes that run, and when they started.
    adopted: BTreeMap<i32, u64>,
}

impl Own {
    pub(crate) fn add(&mut self, process: Pid) {
        self.started.insert(number(process));
    }
}

/// From now on this process adopts what its descendants leave behind. [`reap`] is to be called from time to
/// time.
///
/// # Errors
/// The system cannot do that.
pub fn adopt() -> io::Result<()> {
    become_subreaper()?;
    ADOPTS.store(true, Ordering::Release);
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

/// Whether this process adopts.
#[must_use]
pub fn is_adopting() -> bool {
    ADOPTS.load(Ordering::Acquire)
}

/// Waits for adopted processes that have ended, and has those that run ended with this process even if it is
/// killed.
pub fn reap() {
    if !is_adopting() {
        return;
    }
    let mut own = own();
    let children = children();
    for child in &children {
        let id = number(*child);
        if own.started.contains(&id) || reaper::is_reaper(*child) {
            continue;
        }
        let ended = waitid(
            WaitId::Pid(*child),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        );
        if matches!(ended, Ok(None))
            && !own.adopted.contains_key(&id)
            && let Some(at) = reaper::started_at(*child)
        {
            own.adopted.insert(id, at);
            reaper::adopted(*child, at);
        }
    }
    let here: BTreeSet<i32> = children.into_iter().map(number).collect();
    own.adopted.retain(|id, _| {
        let is_here = here.contains(id);
        if !is_here && let Some(process) = Pid::from_raw(*id) {
            reaper::disowned(process);
        }
        is_here
    });
}

/// Ends every adopted process, for a process that is about to end.
pub fn end_all() {
    if !is_adopting() {
        return;
    }
    end(|_| true);
    reap();
}

/// The lock under which a process is started.
pub(crate) fn own() -> MutexGuard<'static, Own> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process started here was waited for.
pub(crate) fn forget(process: Pid) {
    own().started.remove(&number(process));
}

/// A mark that no other server has.
pub(crate) fn new_mark() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{}.{made}", number(getpid()))
}

/// Sends a signal to the adopted processes with a mark.
pub(crate) fn signal_marked(mark: &str, signal: Signal) -> usize {
    if !is_adopting() {
        return 0;
    }
    signal_adopted(signal, |process| has_mark(process, mark))
}

/// Kills the adopted processes with a mark, and what they started.
pub(crate) fn end_marked(mark: &str) {
    if is_adopting() {
        end(|process| has_mark(process, mark));
    }
}

fn end(is_meant: impl Fn(Pid) -> bool) {
    for _ in 0..ROUNDS {
        if signal_adopted(Signal::KILL, &is_meant) == 0 {
            return;
        }
        // What they started is adopted when they are gone.
        sleep(BETWEEN_ROUNDS);
    }
}

fn signal_adopted(signal: Signal, is_meant: impl Fn(Pid) -> bool) -> usize {
    let own = own();
    let mut signalled = 0;
    for child in children() {
        let is_own = own.started.contains(&number(child)) || reaper::is_reaper(child);
        if !is_own && is_meant(child) && !has_ended(child) {
            // It fails only if the process has ended already, which is the aim.
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
    let Ok(environment) = fs::read(format!("/proc/{}/environ", number(process))) else {
        return false;
    };
    let wanted = format!("{MARK}={mark}");
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|variable| variable == wanted.as_bytes())
}

/// The children of this process, those that were started here and those that were adopted.
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

fn number(process: Pid) -> i32 {
    process.as_raw_nonzero().get()
}
