//! Started programs do not outlive this one, even when it is killed.
//!
//! A killed program cannot end its children, so a second process does it: it is told of every
//! process group, and when its input ends it ends the groups that are still there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// How long groups have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// How often is looked whether they have ended.
const POLL: Duration = Duration::from_millis(10);

/// The second process; there is one for the whole program.
static REAPER: Mutex<Option<Child>> = Mutex::new(None);

/// Starts the second process: a program that calls [`run`], usually this one with an argument.
/// Another call does nothing.
///
/// # Errors
/// It could not be started.
pub fn install(program: &Path, args: &[&str]) -> io::Result<()> {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if reaper.is_none() {
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal must not end it.
            .process_group(0)
            .spawn()?;
        *reaper = Some(child);
    }
    Ok(())
}

/// The work of the second process: reads until the end of its input, then ends what is left.
pub fn run(input: impl BufRead) {
    let mut groups = BTreeMap::new();
    let mut adopted = BTreeMap::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        match Told::read(&line) {
            Some(Told::Started { group, at }) => {
                groups.insert(group.as_raw_nonzero(), at);
            }
            Some(Told::Ended { group }) => {
                groups.remove(&group.as_raw_nonzero());
            }
            Some(Told::Adopted { process, at }) => {
                adopted.insert(process.as_raw_nonzero(), at);
            }
            Some(Told::Disowned { process }) => {
                adopted.remove(&process.as_raw_nonzero());
            }
            None => {}
        }
    }
    let left: Vec<Pid> = groups
        .into_iter()
        .filter_map(|(group, at)| Some((Pid::from_raw(group.get())?, at)))
        .filter(|(group, at)| is_same(*group, *at))
        .map(|(group, _)| group)
        .collect();
    let adopted = adopted
        .into_iter()
        .filter_map(|(process, at)| Some((Pid::from_raw(process.get())?, at)))
        .filter(|(process, at)| started_at(*process) == Some(*at));
    for (process, _) in adopted {
        // It fails only if the process has ended already, which is the aim.
        let _ended = kill_process(process, Signal::KILL);
    }
    end(&left);
}

/// Whether a process is the second process.
pub(crate) fn is_reaper(process: Pid) -> bool {
    let reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    let id = reaper.as_ref().map(|child| child.id().cast_signed());
    id == Some(process.as_raw_nonzero().get())
}

/// Tells of a process that was adopted.
pub(crate) fn adopted(process: Pid, at: u64) {
    tell(&Told::Adopted { process, at });
}

/// Tells that an adopted process has ended.
pub(crate) fn disowned(process: Pid) {
    tell(&Told::Disowned { process });
}

/// Tells of a group that was started.
pub(crate) fn entrust(group: Pid) {
    // Where the start cannot be told apart from that of a later process, nothing is entrusted.
    if let Some(at) = started_at(group) {
        tell(&Told::Started { group, at });
    }
}

/// Tells that a group has ended. Until its first process is reaped, no other can have its id.
pub(crate) fn release(group: Pid) {
    tell(&Told::Ended { group });
}

/// One line of the second process's input.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Started { group: Pid, at: u64 },
    Ended { group: Pid },
    Adopted { process: Pid, at: u64 },
    Disowned { process: Pid },
}

impl Told {
    fn line(&self) -> String {
        match self {
            Self::Started { group, at } => format!("+{} {at}\n", group.as_raw_nonzero()),
            Self::Ended { group } => format!("-{}\n", group.as_raw_nonzero()),
            Self::Adopted { process, at } => format!("*{} {at}\n", process.as_raw_nonzero()),
            Self::Disowned { process } => format!("/{}\n", process.as_raw_nonzero()),
        }
    }

    fn read(line: &str) -> Option<Self> {
        // Group 1 is everybody's ancestor; nothing that was started here has its id.
        let group = |text: &str| Pid::from_raw(text.parse().ok().filter(|id| *id > 1)?);
        if let Some(started) = line.strip_prefix('+') {
            let (id, at) = started.split_once(' ')?;
            return Some(Self::Started {
                group: group(id)?,
                at: at.parse().ok()?,
            });
        }
        if let Some(adopted) = line.strip_prefix('*') {
            let (id, at) = adopted.split_once(' ')?;
            return Some(Self::Adopted {
                process: group(id)?,
                at: at.parse().ok()?,
            });
        }
        if let Some(id) = line.strip_prefix('/') {
            let process = group(id)?;
            return Some(Self::Disowned { process });
        }
        let group = group(line.strip_prefix('-')?)?;
        Some(Self::Ended { group })
    }
}

fn tell(told: &Told) {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(input) = reaper.as_mut().and_then(|child| child.stdin.as_mut()) {
        // A second process that is gone cannot help; programs still end with an orderly end.
        let _gone = input.write_all(told.line().as_bytes());
    }
}

/// Whether a group is still the one that was told of. Its id is free for others only when the last
/// of its processes has ended, so a group whose first process is gone is the same.
fn is_same(group: Pid, at: u64) -> bool {
    started_at(group).is_none_or(|now| now == at)
}

/// When a process started, in ticks since the machine did.
pub(crate) fn started_at(process: Pid) -> Option<u64> {
    let id = process.as_raw_nonzero();
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything; the start is the 20th field after it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn end(groups: &[Pid]) {
    signal(groups, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if groups
            .iter()
            .all(|group| test_kill_process_group(*group).is_err())
        {
            return;
        }
        sleep(POLL);
    }
    signal(groups, Signal::KILL);
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // It fails only if the group has ended already, which is the aim.
        let _ended = kill_process_group(*group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_was_told() {
        let group = Pid::from_raw(4711).unwrap();
        for (told, line) in [
            (Told::Started { group, at: 12 }, "+4711 12\n"),
            (Told::Ended { group }, "-4711\n"),
            (
                Told::Adopted {
                    process: group,
                    at: 12,
                },
                "*4711 12\n",
            ),
            (Told::Disowned { process: group }, "/4711\n"),
        ] {
            assert_eq!(told.line(), line);
            assert_eq!(Told::read(line.trim_end()), Some(told));
        }
        for nothing in ["", "+1 5", "-0", "-1", "+-5 1", "+4711", "4711", "+x 1"] {
            assert_eq!(Told::read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_reused_id_is_not_hit() {
        let mut child = Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_raw(child.id().cast_signed()).unwrap();
        let at = started_at(group).unwrap();
        let told = |at: u64| Told::Started { group, at }.line();
        run(told(at + 1).as_bytes());
        assert_eq!(child.try_wait().unwrap(), None);
        run(format!("{}-{}\n", told(at), child.id()).as_bytes());
        assert_eq!(child.try_wait().unwrap(), None);
        run(told(at).as_bytes());
        assert!(!child.wait().unwrap().success());
    }
}
