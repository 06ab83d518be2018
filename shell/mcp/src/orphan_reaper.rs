//! Ends started programs when this process exits, even if it is killed.
//!
//! A killed program cannot end its children, so a second process does it. This process reports
//! every process group to the second one, which ends the remaining groups when its input ends.

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
const KILL_GRACE: Duration = Duration::from_millis(300);
/// How often to check whether they have exited.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The second process; there is one per program.
static REAPER: Mutex<Option<Child>> = Mutex::new(None);

/// Starts the second process: a program that calls [`run`], usually this one with an argument.
/// Further calls do nothing.
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
            // Ctrl-C at the terminal must not end it.
            .process_group(0)
            .spawn()?;
        *reaper = Some(child);
    }
    Ok(())
}

/// The work of the second process: reads to the end of its input, then ends the remaining groups.
pub fn run(input: impl BufRead) {
    let mut groups = BTreeMap::new();
    let mut adopted = BTreeMap::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        match ReaperMessage::parse(&line) {
            Some(ReaperMessage::Started { group, at }) => {
                groups.insert(group.as_raw_nonzero(), at);
            }
            Some(ReaperMessage::Ended { group }) => {
                groups.remove(&group.as_raw_nonzero());
            }
            Some(ReaperMessage::Adopted { process, at }) => {
                adopted.insert(process.as_raw_nonzero(), at);
            }
            Some(ReaperMessage::Disowned { process }) => {
                adopted.remove(&process.as_raw_nonzero());
            }
            None => {}
        }
    }
    let left: Vec<Pid> = groups
        .into_iter()
        .filter_map(|(group, at)| Some((Pid::from_raw(group.get())?, at)))
        .filter(|(group, at)| is_same_group(*group, *at))
        .map(|(group, _)| group)
        .collect();
    let adopted = adopted
        .into_iter()
        .filter_map(|(process, at)| Some((Pid::from_raw(process.get())?, at)))
        .filter(|(process, at)| started_at(*process) == Some(*at));
    for (process, _) in adopted {
        // The signal fails only if the process has already exited, which is the goal.
        let _ended = kill_process(process, Signal::KILL);
    }
    kill_groups(&left);
}

/// Whether a process is the second process.
pub(crate) fn is_reaper(process: Pid) -> bool {
    let reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    let id = reaper.as_ref().map(|child| child.id().cast_signed());
    id == Some(process.as_raw_nonzero().get())
}

/// Reports an adopted process.
pub(crate) fn register_adopted(process: Pid, at: u64) {
    send(&ReaperMessage::Adopted { process, at });
}

/// Reports that an adopted process has exited.
pub(crate) fn unregister_adopted(process: Pid) {
    send(&ReaperMessage::Disowned { process });
}

/// Reports a group that was started.
pub(crate) fn register_group(group: Pid) {
    // A group is not reported if its start time is unknown, because a later process could not be
    // distinguished from it.
    if let Some(at) = started_at(group) {
        send(&ReaperMessage::Started { group, at });
    }
}

/// Reports that a group has ended. Until its first process is reaped, no other process can get its
/// id.
pub(crate) fn unregister_group(group: Pid) {
    send(&ReaperMessage::Ended { group });
}

/// One line of the second process's input.
#[derive(Debug, PartialEq, Eq)]
enum ReaperMessage {
    Started { group: Pid, at: u64 },
    Ended { group: Pid },
    Adopted { process: Pid, at: u64 },
    Disowned { process: Pid },
}

impl ReaperMessage {
    fn to_line(&self) -> String {
        match self {
            Self::Started { group, at } => format!("+{} {at}\n", group.as_raw_nonzero()),
            Self::Ended { group } => format!("-{}\n", group.as_raw_nonzero()),
            Self::Adopted { process, at } => format!("*{} {at}\n", process.as_raw_nonzero()),
            Self::Disowned { process } => format!("/{}\n", process.as_raw_nonzero()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        // Process 1 is the ancestor of every process; no group started here has its id.
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

fn send(told: &ReaperMessage) {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(input) = reaper.as_mut().and_then(|child| child.stdin.as_mut()) {
        // If the second process is gone it cannot help; programs still end when this process exits
        // cleanly.
        let _gone = input.write_all(told.to_line().as_bytes());
    }
}

/// Whether a group is still the one that was reported. Its id becomes free only when the last of
/// its processes has ended, so a group whose first process is gone is the same group.
fn is_same_group(group: Pid, at: u64) -> bool {
    started_at(group).is_none_or(|now| now == at)
}

/// When a process started, in clock ticks since boot.
pub(crate) fn started_at(process: Pid) -> Option<u64> {
    let id = process.as_raw_nonzero();
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn kill_groups(groups: &[Pid]) {
    signal(groups, Signal::TERM);
    let deadline = Instant::now() + KILL_GRACE;
    while Instant::now() < deadline {
        if groups
            .iter()
            .all(|group| test_kill_process_group(*group).is_err())
        {
            return;
        }
        sleep(POLL_INTERVAL);
    }
    signal(groups, Signal::KILL);
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // The signal fails only if the group has already ended, which is the goal.
        let _ended = kill_process_group(*group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_as_lines() {
        let group = Pid::from_raw(4711).unwrap();
        for (told, line) in [
            (ReaperMessage::Started { group, at: 12 }, "+4711 12\n"),
            (ReaperMessage::Ended { group }, "-4711\n"),
            (
                ReaperMessage::Adopted {
                    process: group,
                    at: 12,
                },
                "*4711 12\n",
            ),
            (ReaperMessage::Disowned { process: group }, "/4711\n"),
        ] {
            assert_eq!(told.to_line(), line);
            assert_eq!(ReaperMessage::parse(line.trim_end()), Some(told));
        }
        for nothing in ["", "+1 5", "-0", "-1", "+-5 1", "+4711", "4711", "+x 1"] {
            assert_eq!(ReaperMessage::parse(nothing), None, "{nothing}");
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
        let told = |at: u64| ReaperMessage::Started { group, at }.to_line();
        run(told(at + 1).as_bytes());
        assert_eq!(child.try_wait().unwrap(), None);
        run(format!("{}-{}\n", told(at), child.id()).as_bytes());
        assert_eq!(child.try_wait().unwrap(), None);
        run(told(at).as_bytes());
        assert!(!child.wait().unwrap().success());
    }
}
