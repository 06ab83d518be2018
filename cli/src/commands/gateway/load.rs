//! Reads the settings and the policy they name.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toolwarden_gateway::runtime::{MistakePlace, load_policy, validate};
use toolwarden_gateway::traces::{TRACES_BUILT, TraceError};
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_model::json::Pointer;
use toolwarden_settings::{LoadedSettings, PolicySource, Settings, SettingsError};

use crate::commands::progress::print_status;
use crate::error::{GatewayCommandError, LocatedMistake, with_causes};
use crate::style::{self, escape_controls};

/// Settings with their policy.
#[derive(Debug)]
pub(super) struct LoadedConfig {
    pub(super) settings: LoadedSettings,
    pub(super) policy: LoadedPolicy,
}

/// Reads settings and policy. Another address is put in the place of theirs.
pub(super) fn load(
    path: &Path,
    listen: Option<SocketAddr>,
) -> Result<LoadedConfig, GatewayCommandError> {
    let mut loaded = load_settings(path)?;
    if let Some(address) = listen {
        loaded.settings.listen.address = address;
    }
    let policy = load_policy(&loaded.settings, path)?;
    Ok(LoadedConfig {
        settings: loaded,
        policy,
    })
}

/// Reads settings. A missing default file has its own error, because the user did not mistype a path.
pub(in crate::commands) fn load_settings(
    path: &Path,
) -> Result<LoadedSettings, GatewayCommandError> {
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

/// Every mistake in settings and policy that keeps a gateway from starting.
pub(super) fn start_mistakes(
    loaded: &LoadedSettings,
    policy: &LoadedPolicy,
) -> Vec<LocatedMistake> {
    let found = validate(&loaded.settings, policy).into_iter();
    let located = found.map(|mistake| {
        let in_settings =
            |pointer: Pointer| (loaded.path.clone(), loaded.position(&pointer), pointer);
        let (path, position, pointer) = match mistake.place {
            MistakePlace::Settings(at) => in_settings(at),
            MistakePlace::Server(name) => {
                in_settings(loaded.server_pointer(&name).child("tool_defaults"))
            }
            MistakePlace::Policy(at) => match &loaded.settings.policy {
                PolicySource::Inline(_) => in_settings(Pointer::of(["policy"]).join(&at)),
                PolicySource::File(_) | PolicySource::Open => {
                    (policy.path.clone(), policy.document.position(&at), at)
                }
            },
        };
        LocatedMistake {
            path,
            position,
            pointer,
            message: with_causes(&mistake.error),
        }
    });
    located.collect()
}

/// Refuses settings that this build cannot run.
fn check_build(loaded: &LoadedSettings) -> Result<(), GatewayCommandError> {
    match unsupported_setting(loaded, TRACES_BUILT) {
        None => Ok(()),
        Some((at, message)) => Err(GatewayCommandError::NotBuilt {
            path: loaded.path.clone(),
            position: loaded.position(&at),
            message,
        }),
    }
}

/// What settings ask for that a build cannot do, with its place.
pub(super) fn unsupported_setting(
    loaded: &LoadedSettings,
    has_traces: bool,
) -> Option<(Pointer, String)> {
    let refused = loaded.settings.traces.is_some() && !has_traces;
    refused.then(|| (Pointer::of(["traces"]), TraceError::NotBuilt.to_string()))
}

impl LoadedConfig {
    /// Refuses settings and policies that no gateway starts with.
    pub(super) fn check(&self) -> Result<(), GatewayCommandError> {
        check_build(&self.settings)?;
        let mistakes = start_mistakes(&self.settings, &self.policy);
        match mistakes.is_empty() {
            true => Ok(()),
            false => Err(GatewayCommandError::CannotStart { mistakes }),
        }
    }

    /// Every file that says something: when one of them is another, all are read again.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = self.settings.files.clone();
        files.extend(self.policy.files.iter().cloned());
        if let Some(tls) = &self.settings.settings.listen.tls {
            files.extend([tls.certificate.clone(), tls.key.clone()]);
            files.extend(tls.client_ca.clone());
        }
        files
    }

    /// What is legal and surprising, as lines with their places.
    pub(super) fn warnings(&self) -> Vec<String> {
        let path = self.settings.path.display();
        let settings = self.settings.warnings.iter().map(|it| {
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
pub(super) fn print_warning(text: &str) {
    let warning = style::WARNING;
    print_status(&format!(
        "{warning}Warning{warning:#}: {}",
        escape_controls(text)
    ));
}

#[cfg(test)]
mod tests {
    use toolwarden_model::json::Position;

    use super::*;

    #[test]
    fn traces_need_a_build_with_them() {
        let text = "store: a.db\nservers: {}\ntraces: http://127.0.0.1:4318/v1/traces\n";
        let loaded = Settings::of_text(text, Path::new("t.yaml"), &|_| None).unwrap();
        assert_eq!(unsupported_setting(&loaded, true), None);
        let (at, message) = unsupported_setting(&loaded, false).unwrap();
        assert_eq!(loaded.position(&at), Position { line: 3, column: 1 });
        assert!(message.contains("--features otel"), "{message}");
    }

    #[test]
    fn servers_have_their_place_by_either_key() {
        let text = "servers:\n  a: {url: http://127.0.0.1:1/mcp}\nmcpServers:\n  b: {url: http://127.0.0.1:1/mcp}\n";
        let loaded = Settings::of_text(text, Path::new("t.yaml"), &|_| None).unwrap();
        let line = |name| loaded.position(&loaded.server_pointer(name)).line;
        assert_eq!((line("a"), line("b")), (2, 4));
    }
}
