//! Settings that are read again while the gateway runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use toolwarden_gateway::runtime::RunningGateway;
use toolwarden_model::Fingerprint;

use super::log::ServeLog;
use crate::commands::gateway::load::{self, LoadedConfig};
use crate::error::GatewayCommandError;

/// The settings and what was last read of them.
#[derive(Debug)]
pub(super) struct SettingsReloader {
    path: PathBuf,
    listen: Option<SocketAddr>,
    files: Vec<PathBuf>,
    /// The files when they were last reloaded or refused.
    applied: Digests,
    /// The files at the last poll.
    last_read: Digests,
}

/// What files hold; nothing for those that cannot be read.
type Digests = Vec<Option<Fingerprint>>;

impl SettingsReloader {
    pub(super) fn new(path: PathBuf, listen: Option<SocketAddr>, read: &LoadedConfig) -> Self {
        let files = read.files();
        let applied = digests(&files);
        Self {
            path,
            listen,
            last_read: applied.clone(),
            applied,
            files,
        }
    }

    /// Whether a file changed since it was applied, and not since it was last read: it is not being
    /// written at the moment.
    pub(super) async fn is_due(&mut self) -> bool {
        let Some(now) = self.read_digests().await else {
            return false;
        };
        let rests = now == self.last_read;
        self.last_read = now;
        rests && self.last_read != self.applied
    }

    /// Reads the settings and takes them over. Where they cannot be used, those in force stay.
    pub(super) async fn reload(&mut self, running: &RunningGateway, log: &ServeLog) {
        if let Some(now) = self.read_digests().await {
            self.applied.clone_from(&now);
            self.last_read = now;
        }
        let (path, listen) = (self.path.clone(), self.listen);
        let read = tokio::task::spawn_blocking(move || load::load(&path, listen)).await;
        let taken = match read {
            Ok(Ok(read)) => self.apply(read, running, log).await,
            Ok(Err(error)) => Err(error),
            // The panic was already reported.
            Err(_) => return,
        };
        if let Err(error) = taken {
            running.refused();
            log.log_reload_error(&error.full_message());
        }
    }

    async fn apply(
        &mut self,
        read: LoadedConfig,
        running: &RunningGateway,
        log: &ServeLog,
    ) -> Result<(), GatewayCommandError> {
        read.check()?;
        let warnings = read.warnings();
        let files = read.files();
        let masked = read.settings.masked();
        let changes = running
            .reload(read.settings.settings, read.policy, masked)
            .await
            .map_err(GatewayCommandError::Start)?;
        for warning in warnings {
            log.warn(&warning);
        }
        log.log_reload(&changes);
        if files != self.files {
            self.files = files;
            if let Some(now) = self.read_digests().await {
                self.applied.clone_from(&now);
                self.last_read = now;
            }
        }
        Ok(())
    }

    async fn read_digests(&self) -> Option<Digests> {
        let files = self.files.clone();
        tokio::task::spawn_blocking(move || digests(&files))
            .await
            .ok()
    }
}

fn digests(files: &[PathBuf]) -> Digests {
    let digest = |path: &PathBuf| {
        let content = std::fs::read(path).ok()?;
        let text = String::from_utf8_lossy(&content);
        Some(Fingerprint::tagged("toolwarden/file/v1", [&*text]))
    };
    files.iter().map(digest).collect()
}
