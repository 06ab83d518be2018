use std::path::PathBuf;

use thiserror::Error;
use toolwarden_guard::Denial;
use toolwarden_live_guard::PolicyFileError;
use toolwarden_live_guard::audit::AuditError;
use toolwarden_live_guard::limiter::NoRandomness;

/// Why a guard command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    #[error("no policy here: policy.yaml does not exist")]
    NoPolicy,
    #[error("no policy here: policy.yaml does not exist, and toolwarden.yaml has no `policy`")]
    NoPolicyInSettings,
    #[error("{} is a settings file, not a policy", path.display())]
    SettingsAsPolicy { path: PathBuf },
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    #[error("{}:{line}: {problem}", place.display())]
    Call {
        place: PathBuf,
        line: usize,
        problem: CallProblem,
    },
    #[error("--arguments: {0}")]
    Arguments(CallProblem),
    #[error("no call in {}", place.display())]
    NoCalls { place: PathBuf },
    #[error("cannot read {}", place.display())]
    Read {
        place: PathBuf,
        source: std::io::Error,
    },
    #[error("the policy and the calls cannot both come from standard input")]
    DuplicateStdin,
    #[error("cannot write a graph as `.{ending}`")]
    Drawing { ending: String },
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error("{entries} records could not be written")]
    Lost { entries: u64 },
    #[error("{0}")]
    Session(Denial),
    #[error("the decisions could not be recorded: {0}")]
    NotRecorded(#[from] AuditError),
}

/// What is wrong with a call as it is written.
#[derive(Debug, Error)]
pub(crate) enum CallProblem {
    #[error("not JSON: {message} (column {column})")]
    NotJson { message: String, column: usize },
    #[error("a call is an object, not {found}")]
    NotAnObject { found: &'static str },
    #[error("unknown key `{key}`{suggestion}")]
    UnknownKey { key: String, suggestion: String },
    #[error("`{key}` is given twice")]
    DuplicateKey { key: String },
    #[error("the call names no `tool`")]
    NoTool,
    #[error("`{key}` has to be {expected}, not {found}")]
    Type {
        key: &'static str,
        expected: &'static str,
        found: &'static str,
    },
    #[error("`{key}` is not a time: {text}")]
    Time { key: &'static str, text: String },
    #[error("several of {first} and {second} say what is called")]
    TwoCalls {
        first: &'static str,
        second: &'static str,
    },
    #[error("the method {method} is not a tool call")]
    Method { method: String },
    #[error("a record of the log is not a call to decide")]
    Record,
    #[error("`outcome` is `success` or `failure`, not `{text}`")]
    Outcome { text: String },
}

impl GuardError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::NoPolicy
            | Self::NoPolicyInSettings
            | Self::SettingsAsPolicy { .. }
            | Self::Policy(_)
            | Self::Call { .. }
            | Self::Arguments(_)
            | Self::NoCalls { .. }
            | Self::DuplicateStdin
            | Self::Drawing { .. }
            | Self::Read { .. } => 2,
            Self::Randomness(_) | Self::NotRecorded(_) | Self::Lost { .. } | Self::Session(_) => 3,
        }
    }

    pub(crate) fn help(&self) -> Option<&'static str> {
        let missing = "name the policy with --policy; docs/guard.md shows how to write one";
        match self {
            Self::NoPolicy | Self::NoPolicyInSettings => Some(missing),
            Self::SettingsAsPolicy { .. } => {
                Some("name the policy file, such as the one its key `policy` names")
            }
            Self::Policy(PolicyFileError::File(error)) if error.is_not_found() => Some(missing),
            Self::Policy(PolicyFileError::Invalid { .. }) => {
                Some("correct the policy; no part of it is used until then")
            }
            Self::Policy(_) => Some("a policy is YAML or JSON in UTF-8"),
            Self::Call { .. } | Self::NoCalls { .. } => Some(
                "a call is `{\"tool\": …, \"principal\": …, \"arguments\": {…}}`, one per line",
            ),
            Self::Arguments(_) => Some("write a JSON object, such as '{\"query\": \"x\"}'"),
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("check the path, or give `-` to read standard input")
            }
            Self::DuplicateStdin => Some("give a file for one of them"),
            Self::Drawing { .. } => Some("use the extension .mmd, .dot or .svg, or pass --format"),
            Self::NotRecorded(_) | Self::Lost { .. } => {
                Some("check the store named by --store or TOOLWARDEN_STORE")
            }
            Self::Read { .. } | Self::Randomness(_) | Self::Session(_) => None,
        }
    }
}
