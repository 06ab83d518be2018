use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_files::FileError;
use toolwarden_guard::Problem;
use toolwarden_model::document::{InvalidDuration, Mistake, MistakeAt};
use toolwarden_model::json::{Pointer, Position};

use super::interpolate::InvalidReference;
use super::size::InvalidSize;

/// The largest settings file that is read.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// What stands in place of a secret.
pub(super) const MASK: &str = "***";

/// Why settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file says nothing.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are mistakes in it.
    #[error("{}", listed(path, mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every mistake, in the order of the text.
        mistakes: Vec<SettingsMistake>,
    },
}

/// A mistake in settings, and where it stands.
pub type SettingsMistake = MistakeAt<SettingsProblem>;

/// Something in settings that is legal and surprising.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {message}")]
pub struct SettingsWarning {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Position,
    /// What is surprising.
    pub message: String,
}

/// What is wrong in settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsProblem {
    /// What may be wrong in any document.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A reference leads nowhere.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// A size is none.
    #[error(transparent)]
    Size(#[from] InvalidSize),
    /// A rule of a policy is wrong.
    #[error(transparent)]
    Policy(#[from] Problem),
    /// The format is of another version.
    #[error("this program reads version 1 of the settings")]
    Version,
    /// The file, or a part of it, is a policy.
    #[error("`{key}` is a key of a policy; write it under `policy`, or name the policy file there")]
    PolicyKey {
        /// The key.
        key: String,
    },
    /// A server's name has other characters.
    #[error("a server's name has 1 to 64 letters, digits, `-` and `_`")]
    ServerName,
    /// Two servers have one name.
    #[error("there are two servers `{name}`, under `servers` and under `mcpServers`")]
    TwoServers {
        /// The name.
        name: String,
    },
    /// None of several keys is there.
    #[error("one of {keys} is needed")]
    NoneOf {
        /// The keys.
        keys: String,
    },
    /// A key says nothing without another.
    #[error("`{key}` needs `{other}`")]
    Needs {
        /// The key.
        key: &'static str,
        /// What is missing.
        other: &'static str,
    },
    /// A server's kind is not how it is reached.
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
        /// Why.
        message: String,
    },
    /// An address to listen on is none.
    #[error("`{text}` is no address to listen on; write 127.0.0.1:8700 or [::1]:8700")]
    Listen {
        /// The text.
        text: String,
    },
    /// An address is none.
    #[error("`{text}` is no http or https address")]
    Address {
        /// The text.
        text: String,
    },
    /// It cannot be told whose name a principal's would be.
    #[error("{message}")]
    Principals {
        /// Who is confused with whom, and what to write.
        message: String,
    },
    /// A value does not fit for a reason that does not quote it.
    #[error("{message}")]
    Value {
        /// Why it does not fit.
        message: &'static str,
    },
}

impl SettingsProblem {
    /// The same without the text of a value that came from elsewhere and may be a secret.
    pub(super) fn without_value(self) -> Self {
        let hidden = || MASK.to_owned();
        match self {
            Self::Mistake(Mistake::Word { known, .. }) => Self::Mistake(Mistake::Word {
                word: hidden(),
                suggestion: String::new(),
                known,
            }),
            Self::Mistake(Mistake::Duration(_)) => {
                Mistake::Duration(InvalidDuration { text: hidden() }).into()
            }
            Self::Size(_) => Self::Size(InvalidSize { text: hidden() }),
            Self::Listen { .. } => Self::Listen { text: hidden() },
            Self::Address { .. } => Self::Address { text: hidden() },
            Self::Principals { .. } => Self::Principals {
                message: "two sources of callers would name the same principals".to_owned(),
            },
            Self::Unusable { .. } => Self::Unusable {
                message: format!("`{MASK}` is no command or address"),
            },
            other => other,
        }
    }
}

fn listed(path: &Path, mistakes: &[SettingsMistake]) -> String {
    let lines = mistakes.iter().map(|mistake| {
        let Position { line, column } = mistake.position;
        format!("{}:{line}:{column}: {mistake}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}
