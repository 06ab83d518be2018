//! The lifecycle of a started program and everything it starts.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::adopted_processes;
use crate::endpoint::Command;
use crate::error::McpError;
use crate::orphan_reaper;

/// How often to check for an exit.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A program in its own process group, which is ended when this value is dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    group: Pid,
    /// Identifies processes that left the group.
    mark: String,
    state: Mutex<State>,
}

/// The three standard streams of a program.
#[derive(Debug)]
pub(super) struct ChildStreams {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: ChildStderr,
}

// INVARIANT: the group is signalled only while the child is not reaped. Until then the system
// cannot give its process id to another process, so a signal never reaches an unrelated process.
#[derive(Debug)]
enum State {
    Unreaped(Child),
    Reaped(Option<ExitStatus>),
}

impl ServerProcess {
    /// Starts the program.
    pub(super) fn start(command: &Command) -> Result<(Self, ChildStreams), McpError> {
        let mark = adopted_processes::new_mark();
        let mut builder = tokio::process::Command::new(&command.program);
        if let Some(inherited) = command.inherit.select(std::env::vars_os()) {
            builder.env_clear().envs(inherited);
        }
        builder
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env(adopted_processes::SERVER_MARK_VARIABLE, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Its own group, so that children of `npx` and similar launchers end as well, and
            // Ctrl-C at the terminal leaves the clean shutdown to the client.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &command.directory {
            builder.current_dir(directory);
        }
        // Locked until the child is registered, so that it is not mistaken for an adopted process.
        let mut own = adopted_processes::lock_processes();
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
        orphan_reaper::register_group(group);
        let process = Self {
            group,
            mark,
            state: Mutex::new(State::Unreaped(child)),
        };
        Ok((
            process,
            ChildStreams {
                input,
                output,
                errors,
            },
        ))
    }

    /// The process id of the program, which is also the id of its group.
    pub(super) fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits until the program itself has exited, without reaping it.
    pub(super) async fn wait_for_exit(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.has_exited().await {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends SIGTERM to the whole group.
    pub(super) async fn terminate(&self) {
        if let State::Unreaped(_) = &*self.state.lock().await {
            signal(self.group, Signal::TERM);
            adopted_processes::signal_marked(&self.mark, Signal::TERM);
        }
    }

    /// Kills the remaining processes of the group and returns the program's exit status.
    pub(super) async fn reap(&self) -> Option<ExitStatus> {
        let mut state = self.state.lock().await;
        match &mut *state {
            State::Reaped(status) => *status,
            State::Unreaped(child) => {
                signal(self.group, Signal::KILL);
                orphan_reaper::unregister_group(self.group);
                let status = child.wait().await.ok();
                adopted_processes::remove_process(self.group);
                adopted_processes::kill_marked(&self.mark);
                *state = State::Reaped(status);
                status
            }
        }
    }

    async fn has_exited(&self) -> bool {
        match &*self.state.lock().await {
            State::Reaped(_) => true,
            State::Unreaped(_) => {
                let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                // An error means that the child no longer exists.
                !matches!(waitid(WaitId::Pid(self.group), look), Ok(None))
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let State::Unreaped(_) = self.state.get_mut() {
            signal(self.group, Signal::KILL);
            orphan_reaper::unregister_group(self.group);
            adopted_processes::remove_process(self.group);
            adopted_processes::kill_marked(&self.mark);
        }
    }
}

fn signal(group: Pid, signal: Signal) {
    // The signal fails only if the group has already ended, which is the goal.
    let _ended = kill_process_group(group, signal);
}

fn spawn_error(command: &Command, source: io::Error) -> McpError {
    if source.kind() != io::ErrorKind::NotFound {
        return McpError::Spawn {
            program: command.program.clone(),
            source,
        };
    }
    // The system returns the same error for a missing directory.
    match &command.directory {
        Some(directory) if !directory.is_dir() => McpError::DirectoryNotFound {
            directory: directory.display().to_string(),
        },
        Some(_) | None => McpError::ProgramNotFound {
            program: command.program.clone(),
        },
    }
}
