//! What a process that runs servers needs.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolwarden_mcp::{orphans, reaper as mcp_reaper};

use super::load::warn;
use crate::error::CliError;
use crate::output::Verdict;

/// The word that makes this program the one that ends what a killed one has started.
const REAPER: &str = "__reaper";

/// How long what still runs may take when everything is done.
const LAST: Duration = Duration::from_millis(200);

/// Has started programs ended when this one is killed.
pub(super) fn install_reaper() {
    let program = std::env::current_exe();
    let installed = program.and_then(|it| mcp_reaper::install(&it, &[REAPER]));
    if let Err(error) = installed {
        warn(&format!(
            "servers would outlive a gateway that is killed: {error}"
        ));
    }
    if let Err(error) = orphans::adopt() {
        warn(&format!(
            "processes that leave the process group of their server would outlive it: {error}"
        ));
    }
}

/// Ends what is left when the program that started it is gone.
pub(in crate::commands) fn reaper() -> Verdict {
    mcp_reaper::run(std::io::stdin().lock());
    Verdict::Fine
}

/// Runs something on all processors. What waits for standard input at its end is left behind.
pub(super) fn run<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime: Runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST);
    done
}

/// What whoever started the program wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It should end; the exit code tells by which signal.
    End(u8),
    /// It should read its settings again.
    Reload,
}

/// The signals of this process.
#[derive(Debug)]
pub(super) struct Wishes {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Wishes {
    /// Needs a runtime.
    pub(super) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(CliError::Runtime)?,
            terminate: signal(SignalKind::terminate()).map_err(CliError::Runtime)?,
            hang_up: signal(SignalKind::hangup()).map_err(CliError::Runtime)?,
        })
    }

    /// Waits for the next.
    pub(super) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End(130),
            _ = self.terminate.recv() => Wish::End(143),
            _ = self.hang_up.recv() => Wish::Reload,
        }
    }
}
