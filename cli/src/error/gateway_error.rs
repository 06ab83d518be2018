use std::io;
use std::path::PathBuf;

use thiserror::Error;
use toolwarden_gateway::listener::ListenError;
use toolwarden_gateway::runtime::StartError;
use toolwarden_live_guard::PolicyFileError;
use toolwarden_model::json::{Pointer, Position};
use toolwarden_notify::NotifyError;
use toolwarden_settings::{ClientFileError, SettingsError};

use super::with_causes;

/// Why a command of the gateway could not do its work.
#[derive(Debug, Error)]
pub(crate) enum GatewayCommandError {
    #[error("there is no {} here", path.display())]
    NoSettings { path: PathBuf },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    #[error("{} cannot be used: {}", path.display(), counted(*mistakes))]
    Unusable { path: PathBuf, mistakes: usize },
    #[error("{}", list_mistakes(mistakes))]
    CannotStart { mistakes: Vec<LocatedMistake> },
    #[error("{}", with_causes(.0))]
    Start(StartError),
    #[error("{option} needs --url")]
    NeedsUrl { option: &'static str },
    #[error("no server to wrap")]
    NoServer,
    #[error("{} has no server `{name}`{suggestion}", path.display())]
    UnknownServer {
        path: PathBuf,
        name: String,
        suggestion: String,
    },
    #[error("{} has several servers", path.display())]
    SeveralServers { path: PathBuf },
    #[error("`{name}` cannot be the name of a server")]
    ServerName { name: String },
    #[error("the connection to the agent broke")]
    Agent(#[source] io::Error),
    #[error("no configuration file of {client} found")]
    NoClientFile { client: &'static str },
    #[error(transparent)]
    ClientFile(#[from] ClientFileError),
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    #[error("{} names no alert target", path.display())]
    NoTargets { path: PathBuf },
    #[error("{}", with_causes(.0))]
    Notify(#[from] NotifyError),
    #[error("`{url}` is not an http or https address")]
    Address { url: String },
    #[error("the gateway at {url} could not be reached: {why}")]
    Unreachable { url: String, why: String },
    #[error("the gateway at {url} answers {status}: {why}")]
    Refused {
        url: String,
        status: u16,
        why: String,
    },
    #[error("{}:{}:{}: {message}", path.display(), position.line, position.column)]
    NotBuilt {
        path: PathBuf,
        position: Position,
        message: String,
    },
    #[error("the demo failed: {what}")]
    Demo { what: String },
}

impl GatewayCommandError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::NoSettings { .. }
            | Self::Settings(_)
            | Self::Policy(_)
            | Self::Unusable { .. }
            | Self::CannotStart { .. }
            | Self::NeedsUrl { .. }
            | Self::NotBuilt { .. }
            | Self::NoServer
            | Self::UnknownServer { .. }
            | Self::SeveralServers { .. }
            | Self::ServerName { .. }
            | Self::NoClientFile { .. }
            | Self::ClientFile(_)
            | Self::Exists { .. }
            | Self::NoTargets { .. }
            | Self::Notify(NotifyError::UnknownTarget { .. })
            | Self::Address { .. }
            | Self::Refused {
                status: 400..=499, ..
            } => 2,
            Self::Start(error) => start_exit_code(error),
            Self::Agent(_)
            | Self::Notify(_)
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Demo { .. } => 3,
        }
    }

    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Settings(SettingsError::File(error))
            | Self::Policy(PolicyFileError::File(error))
                if error.is_not_found() =>
            {
                Some("check the path")
            }
            Self::NoSettings { .. } => Some(
                "`toolwarden import claude` writes one with the servers of a desktop client; `toolwarden demo` shows the gateway without one",
            ),
            Self::Settings(_) | Self::Policy(_) => {
                Some("`toolwarden config check` shows every mistake with its place")
            }
            Self::Start(StartError::Listen(ListenError::InUse { .. })) => {
                Some("end that process, or listen elsewhere with --listen")
            }
            Self::Start(StartError::Store(_) | StartError::Watch(_)) => {
                Some("check the path and permissions of `store` in the settings")
            }
            Self::NoServer => Some(
                "give its command after `--`, or --url, or --config with --name: `toolwarden wrap -- npx -y some-server`",
            ),
            Self::UnknownServer { .. } | Self::SeveralServers { .. } => {
                Some("say which with --name")
            }
            Self::ServerName { .. } => {
                Some("give --name with 1 to 64 letters, digits, `-` and `_`")
            }
            Self::NoClientFile { .. } => Some("name the file"),
            Self::Exists { .. } => {
                Some("replace it with --force, or write elsewhere with --output")
            }
            Self::NoTargets { .. } => {
                Some("write targets under `alerts`; docs/gateway.md shows how")
            }
            Self::Unreachable { .. } => Some(
                "check that it runs; without --url, the command reads the settings and the store",
            ),
            Self::Refused { status: 401, .. } => {
                Some("set TOOLWARDEN_KEY to a key; `toolwarden key new` creates one")
            }
            Self::Refused { status: 403, .. } => {
                Some("only principals under `identity.admins` may ask about others")
            }
            Self::NeedsUrl { .. } => Some(
                "only a running gateway knows what its servers offer besides tools: give its URL instead of the settings",
            ),
            Self::Unusable { .. }
            | Self::CannotStart { .. }
            | Self::NotBuilt { .. }
            | Self::Start(_)
            | Self::Agent(_)
            | Self::ClientFile(_)
            | Self::Notify(_)
            | Self::Address { .. }
            | Self::Refused { .. }
            | Self::Demo { .. } => None,
        }
    }

    /// The message with its causes.
    pub(crate) fn full_message(&self) -> String {
        if self.includes_cause() {
            return self.to_string();
        }
        with_causes(self)
    }

    /// Whether the cause is part of the message already.
    pub(crate) const fn includes_cause(&self) -> bool {
        match self {
            Self::Settings(SettingsError::File(error))
            | Self::Policy(PolicyFileError::File(error)) => error.includes_cause(),
            Self::Start(_) | Self::Notify(_) | Self::ClientFile(_) => true,
            _ => false,
        }
    }
}

/// A mistake with its place in a file.
#[derive(Debug)]
pub(crate) struct LocatedMistake {
    pub(crate) path: PathBuf,
    pub(crate) position: Position,
    pub(crate) pointer: Pointer,
    pub(crate) message: String,
}

fn list_mistakes(mistakes: &[LocatedMistake]) -> String {
    let lines = mistakes.iter().map(|it| {
        let Position { line, column } = it.position;
        format!("{}:{line}:{column}: {}", it.path.display(), it.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the settings are wrong, or the machine does not give what they ask for.
const fn start_exit_code(error: &StartError) -> u8 {
    match error {
        StartError::Policy(_)
        | StartError::ToolDefaults { .. }
        | StartError::UnknownRole { .. }
        | StartError::NoSuchAttribute { .. }
        | StartError::Identity(_)
        | StartError::NoCallers
        | StartError::Traces(_)
        | StartError::Listen(
            ListenError::Unreadable { .. }
            | ListenError::NotPem { .. }
            | ListenError::Certificate { .. }
            | ListenError::ClientAuthority { .. },
        ) => 2,
        StartError::Store(_)
        | StartError::Watch(_)
        | StartError::Notify(_)
        | StartError::Listen(_)
        | StartError::Randomness(_) => 3,
    }
}

fn counted(mistakes: usize) -> String {
    match mistakes {
        1 => "1 mistake".to_owned(),
        count => format!("{count} mistakes"),
    }
}
