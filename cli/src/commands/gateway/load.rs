//! Reads the settings and the policy they name.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toolwarden_gateway::runtime::load_policy;
use toolwarden_warden::guard::LoadedPolicy;
use toolwarden_warden::settings::{Loaded, Settings, SettingsError};

use super::error::GatewayCommandError;
use crate::commands::talk::say;
use crate::style::{self, visible};

/// Settings with their policy.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) loaded: Loaded,
    pub(super) policy: LoadedPolicy,
}

/// Reads settings and policy. Another address is put in the place of theirs.
pub(super) fn read(path: &Path, listen: Option<SocketAddr>) -> Result<Read, GatewayCommandError> {
    let mut loaded = settings(path)?;
    if let Some(address) = listen {
        loaded.settings.listen.address = address;
    }
    let policy = load_policy(&loaded.settings, path)?;
    Ok(Read { loaded, policy })
}

/// Reads settings. Where the usual file is not there, nobody has mistyped anything.
pub(super) fn settings(path: &Path) -> Result<Loaded, GatewayCommandError> {
    match Settings::read(path) {
        Err(SettingsError::File(error))
            if error.is_not_found() && path == Path::new(Settings::FILE) =>
        {
            let path = path.to_owned();
            Err(GatewayCommandError::NoSettings { path })
        }
        read => Ok(read?),
    }
}

impl Read {
    /// Every file that says something: when one of them is another, all are read again.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = self.loaded.files.clone();
        files.extend(self.policy.files.iter().cloned());
        if let Some(tls) = &self.loaded.settings.listen.tls {
            files.extend([tls.certificate.clone(), tls.key.clone()]);
            files.extend(tls.client_ca.clone());
        }
        files
    }

    /// What is legal and surprising, as lines with their places.
    pub(super) fn warnings(&self) -> Vec<String> {
        let path = self.loaded.path.display();
        let settings = self.loaded.warnings.iter().map(|it| {
            let position = it.position;
            let (line, column) = (position.line, position.column);
            format!("{path}:{line}:{column}: {}", it.message)
        });
        let policy = self.policy.warnings.iter().map(|it| {
            let position = self.policy.document.position(&it.pointer);
            let (line, column) = (position.line, position.column);
            let path = self.policy.path.display();
            format!("{path}:{line}:{column}: {}", it.message)
        });
        settings.chain(policy).collect()
    }
}

/// Says something to worry about.
pub(super) fn warn(text: &str) {
    let warning = style::WARNING;
    say(&format!("{warning}Warning{warning:#}: {}", visible(text)));
}
