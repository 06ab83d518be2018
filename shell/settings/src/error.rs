use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_files::FileError;
use toolwarden_guard::PolicyProblem;
use toolwarden_model::document::{Diagnostic, DiagnosticKind, InvalidDuration};
use toolwarden_model::json::{Pointer, Position};

use super::interpolate::InvalidReference;
use super::mask::MASK;
use super::size::InvalidSize;

/// The maximum size of a settings file.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Why settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read or parsed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The settings have mistakes.
    #[error("{}", list_mistakes(path, mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake, in the order of the text.
        mistakes: Vec<SettingsMistake>,
    },
}

/// A mistake in settings, with its place.
pub type SettingsMistake = Diagnostic<SettingsProblem>;

/// A part of the settings that is legal but surprising.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {message}")]
pub struct SettingsWarning {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Position,
    /// The message.
    pub message: String,
}

/// The kinds of mistakes in settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsProblem {
    /// A mistake that can occur in any document.
    #[error(transparent)]
    Mistake(#[from] DiagnosticKind),
    /// A reference cannot be resolved.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// A size is invalid.
    #[error(transparent)]
    Size(#[from] InvalidSize),
    /// A rule of a policy is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyProblem),
    /// The settings have another format version.
    #[error("this program reads version 1 of the settings")]
    Version,
    /// The file, or a part of it, is a policy.
    #[error("`{key}` is a key of a policy; write it under `policy`, or name the policy file there")]
    PolicyKey {
        /// The key.
        key: String,
    },
    /// A server's name has invalid characters.
    #[error("a server's name has 1 to 64 letters, digits, `-` and `_`")]
    ServerName,
    /// Two servers have the same name.
    #[error("there are two servers `{name}`, under `servers` and under `mcpServers`")]
    DuplicateServer {
        /// The name.
        name: String,
    },
    /// All of several keys are missing.
    #[error("one of {keys} is needed")]
    NoneOf {
        /// The keys.
        keys: String,
    },
    /// A key requires another one.
    #[error("`{key}` needs `{other}`")]
    Needs {
        /// The key.
        key: &'static str,
        /// The missing key.
        other: &'static str,
    },
    /// The type of a server contradicts its keys.
    #[error("a server of the type `{word}` has no `{key}`")]
    ServerType {
        /// The type.
        word: String,
        /// The key.
        key: &'static str,
    },
    /// A command, an address or a policy cannot be used.
    #[error("{message}")]
    Unusable {
        /// The reason.
        message: String,
    },
    /// An address to listen on is invalid.
    #[error("`{text}` is not an address to listen on; write 127.0.0.1:8700 or [::1]:8700")]
    Listen {
        /// The text.
        text: String,
    },
    /// An address is invalid.
    #[error("`{text}` is not an http or https address")]
    Address {
        /// The text.
        text: String,
    },
    /// The source of a principal's name is ambiguous.
    #[error("{message}")]
    Principals {
        /// The sources in conflict, and what to write.
        message: String,
    },
    /// A value is invalid, for a reason that does not quote it.
    #[error("{message}")]
    Value {
        /// The reason.
        message: &'static str,
    },
}

impl SettingsProblem {
    /// The same mistake without the text of an expanded value, which may be a secret.
    pub(super) fn redact_value(self) -> Self {
        let hidden = || MASK.to_owned();
        match self {
            Self::Mistake(DiagnosticKind::UnknownWord { known, .. }) => {
                Self::Mistake(DiagnosticKind::UnknownWord {
                    word: hidden(),
                    suggestion: String::new(),
                    known,
                })
            }
            Self::Mistake(DiagnosticKind::Duration(_)) => {
                DiagnosticKind::Duration(InvalidDuration { text: hidden() }).into()
            }
            Self::Size(_) => Self::Size(InvalidSize { text: hidden() }),
            Self::Listen { .. } => Self::Listen { text: hidden() },
            Self::Address { .. } => Self::Address { text: hidden() },
            Self::Principals { .. } => Self::Principals {
                message: "two sources of callers would name the same principals".to_owned(),
            },
            Self::Unusable { .. } => Self::Unusable {
                message: format!("`{MASK}` is not a command or address"),
            },
            other => other,
        }
    }
}

fn list_mistakes(path: &Path, mistakes: &[SettingsMistake]) -> String {
    let lines = mistakes.iter().map(|mistake| {
        let Position { line, column } = mistake.position;
        format!("{}:{line}:{column}: {mistake}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
