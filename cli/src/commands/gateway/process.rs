//! What a process that runs servers needs.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolwarden_mcp::{adopted_processes, orphan_reaper};

use super::load::print_warning;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

/// The word that makes this program the one that ends what a killed one has started.
const REAPER_COMMAND: &str = "__reaper";

/// How long what still runs may take when everything is done.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200);

/// Has started programs ended when this one is killed.
pub(super) fn install_reaper() {
    let program = std::env::current_exe();
    let installed = program.and_then(|it| orphan_reaper::install(&it, &[REAPER_COMMAND]));
    if let Err(error) = installed {
        print_warning(&format!(
            "servers would outlive a gateway that is killed: {error}"
        ));
    }
    if let Err(error) = adopted_processes::enable_adoption() {
        print_warning(&format!(
            "processes that leave the process group of their server would outlive it: {error}"
        ));
    }
}

/// Ends what is left when the program that started it is gone.
pub(in crate::commands) fn run_reaper() -> CommandOutcome {
    orphan_reaper::run(std::io::stdin().lock());
    CommandOutcome::Pass
}

/// Runs something on all processors. What waits for standard input at its end is left behind.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime: Runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    done
}

/// A signal sent to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    /// It should end; the exit code tells by which signal.
    End(u8),
    /// It should read its settings again.
    Reload,
}

/// The signals of this process.
#[derive(Debug)]
pub(super) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl SignalListener {
    /// Needs a runtime.
    pub(super) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(CliError::Runtime)?,
            terminate: signal(SignalKind::terminate()).map_err(CliError::Runtime)?,
            hang_up: signal(SignalKind::hangup()).map_err(CliError::Runtime)?,
        })
    }

    /// Waits for the next.
    pub(super) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::End(130),
            _ = self.terminate.recv() => ProcessSignal::End(143),
            _ = self.hang_up.recv() => ProcessSignal::Reload,
        }
    }
}
