//! Settings that are read again while the gateway runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use toolwarden_gateway::runtime::Running;
use toolwarden_model::Fingerprint;

use super::log::Log;
use crate::commands::gateway::error::GatewayCommandError;
use crate::commands::gateway::load::{self, Read};

/// The settings and what was last read of them.
#[derive(Debug)]
pub(super) struct Reloads {
    path: PathBuf,
    listen: Option<SocketAddr>,
    files: Vec<PathBuf>,
    /// What the files were when they were last taken over or refused.
    known: Digests,
    /// What they were when they were last looked at.
    seen: Digests,
}

/// What files hold; nothing for those that cannot be read.
type Digests = Vec<Option<Fingerprint>>;

impl Reloads {
    pub(super) fn new(path: PathBuf, listen: Option<SocketAddr>, read: &Read) -> Self {
        let files = read.files();
        let known = digests(&files);
        Self {
            path,
            listen,
            seen: known.clone(),
            known,
            files,
        }
    }

    /// Whether a file is another, and the same as when it was last looked at: nobody writes it just
    /// now.
    pub(super) async fn is_due(&mut self) -> bool {
        let Some(now) = self.look().await else {
            return false;
        };
        let rests = now == self.seen;
        self.seen = now;
        rests && self.seen != self.known
    }

    /// Reads the settings and takes them over. Where they cannot be used, those in force stay.
    pub(super) async fn reload(&mut self, running: &Running, log: &Log) {
        if let Some(now) = self.look().await {
            self.known.clone_from(&now);
            self.seen = now;
        }
        let (path, listen) = (self.path.clone(), self.listen);
        let read = tokio::task::spawn_blocking(move || load::read(&path, listen)).await;
        let taken = match read {
            Ok(Ok(read)) => self.take_over(read, running, log).await,
            Ok(Err(error)) => Err(error),
            // It panicked, which was told.
            Err(_) => return,
        };
        if let Err(error) = taken {
            running.refused();
            log.refused(&error.whole());
        }
    }

    async fn take_over(
        &mut self,
        read: Read,
        running: &Running,
        log: &Log,
    ) -> Result<(), GatewayCommandError> {
        let warnings = read.warnings();
        let files = read.files();
        let masked = read.loaded.masked();
        let changes = running
            .reload(read.loaded.settings, read.policy, masked)
            .await
            .map_err(GatewayCommandError::Start)?;
        for warning in warnings {
            log.warn(&warning);
        }
        log.reloaded(&changes);
        if files != self.files {
            self.files = files;
            if let Some(now) = self.look().await {
                self.known.clone_from(&now);
                self.seen = now;
            }
        }
        Ok(())
    }

    async fn look(&self) -> Option<Digests> {
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
