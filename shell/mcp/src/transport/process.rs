//! The life of a started program and everything it starts.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::endpoint::Command;
use crate::error::McpError;
use crate::orphans;
use crate::reaper;

/// How often an exit is looked for.
const POLL: Duration = Duration::from_millis(10);

/// A program in a process group of its own, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    group: Pid,
    /// By which processes are known that left the group.
    mark: String,
    state: Mutex<State>,
}

/// The three standard streams of a program.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: ChildStderr,
}

// INVARIANT: the group is signalled only while the child is not reaped. Until then its process
// id cannot be given to another process, so a signal never reaches a stranger.
#[derive(Debug)]
enum State {
    Unreaped(Child),
    Reaped(Option<ExitStatus>),
}

impl ServerProcess {
    /// Starts the program.
    pub(super) fn start(command: &Command) -> Result<(Self, Streams), McpError> {
        let mark = orphans::new_mark();
        let mut builder = tokio::process::Command::new(&command.program);
        if let Some(inherited) = command.inherit.chosen(std::env::vars_os()) {
            builder.env_clear().envs(inherited);
        }
        builder
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env(orphans::MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that what `npx` and the like start ends as well, and a
            // Ctrl-C at the terminal leaves the orderly end to the client.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &command.directory {
            builder.current_dir(directory);
        }
        // Held until the child is known, so that it is not taken for one that was adopted.
        let mut own = orphans::own();
        let mut child = builder
            .spawn()
            .map_err(|source| spawn_error(command, source))?;
        if let Some(id) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            own.add(id);
        }
        drop(own);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let ((Some(input), Some(output), Some(errors)), Some(group)) = (streams, group) else {
            return Err(spawn_error(command, io::ErrorKind::BrokenPipe.into()));
        };
        reaper::entrust(group);
        let process = Self {
            group,
            mark,
            state: Mutex::new(State::Unreaped(child)),
        };
        Ok((
            process,
            Streams {
                input,
                output,
                errors,
            },
        ))
    }

    /// The process id of the program, which is that of its group.
    pub(super) fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits until the program itself has ended, without reaping it.
    pub(super) async fn ended_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.has_ended().await {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(POLL).await;
        }
    }

    /// Asks the whole group to end.
    pub(super) async fn terminate(&self) {
        if let State::Unreaped(_) = &*self.state.lock().await {
            signal(self.group, Signal::TERM);
            orphans::signal_marked(&self.mark, Signal::TERM);
        }
    }

    /// Kills whatever is left of the group and returns how the program ended.
    pub(super) async fn reap(&self) -> Option<ExitStatus> {
        let mut state = self.state.lock().await;
        match &mut *state {
            State::Reaped(status) => *status,
            State::Unreaped(child) => {
                signal(self.group, Signal::KILL);
                reaper::release(self.group);
                let status = child.wait().await.ok();
                orphans::forget(self.group);
                orphans::end_marked(&self.mark);
                *state = State::Reaped(status);
                status
            }
        }
    }

    async fn has_ended(&self) -> bool {
        match &*self.state.lock().await {
            State::Reaped(_) => true,
            State::Unreaped(_) => {
                let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                // An error means that there is no such child any more.
                !matches!(waitid(WaitId::Pid(self.group), look), Ok(None))
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let State::Unreaped(_) = self.state.get_mut() {
            signal(self.group, Signal::KILL);
            reaper::release(self.group);
            orphans::forget(self.group);
            orphans::end_marked(&self.mark);
        }
    }
}

fn signal(group: Pid, signal: Signal) {
    // It fails only if the group has ended already, which is the aim.
    let _ended = kill_process_group(group, signal);
}

fn spawn_error(command: &Command, source: io::Error) -> McpError {
    if source.kind() != io::ErrorKind::NotFound {
        return McpError::Spawn {
            program: command.program.clone(),
            source,
        };
    }
    // The system gives the same error for a missing directory.
    match &command.directory {
        Some(directory) if !directory.is_dir() => McpError::DirectoryNotFound {
            directory: directory.display().to_string(),
        },
        Some(_) | None => McpError::ProgramNotFound {
            program: command.program.clone(),
        },
    }
}
