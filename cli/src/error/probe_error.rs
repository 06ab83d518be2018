use std::path::PathBuf;

use thiserror::Error;
use toolwarden_probe::capture::CaptureError;
use toolwarden_probe::{
    DialectError, InvalidPrices, InvalidProvider, MissingSecret, ProbeFileError,
};
use toolwarden_trials::{Incomparable, InvalidSnapshot};

/// Why a probe command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    File(#[from] ProbeFileError),
    #[error(transparent)]
    Provider(#[from] InvalidProvider),
    #[error(transparent)]
    Secret(#[from] MissingSecret),
    #[error("the contract {} has no provider `{name}`{suggestion}", contract.display())]
    NotInContract {
        contract: PathBuf,
        name: String,
        suggestion: String,
    },
    #[error(
        "no built-in fixture for provider '{provider}'. Pass --fixture PATH. Built-in fixtures: {known}."
    )]
    NoFixture { provider: String, known: String },
    #[error("the fixture is an answer of the model `{found}`, not of `{asked}`")]
    FixtureModel { found: String, asked: String },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}", path.display())]
    Snapshot {
        path: PathBuf,
        source: InvalidSnapshot,
    },
    #[error("{old} and {new} cannot be compared")]
    Incomparable {
        old: String,
        new: String,
        source: Incomparable,
    },
    #[error(
        "{old} is a snapshot of the tooldrift program and {new} is not, or the other way round, and nothing was measured in the latter"
    )]
    Mixed { old: String, new: String },
    #[error(
        "nothing to compare: a single provider was probed and the contract pins no 'expected' block."
    )]
    NothingToCompare,
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("no captured exchanges in {}", path.display())]
    NothingToReplay { path: PathBuf },
    #[error(transparent)]
    Dialect(DialectError),
    #[error(transparent)]
    Prices(InvalidPrices),
    #[error("{} is a snapshot of the tooldrift program, which has no rates to report", path.display())]
    NoRates { path: PathBuf },
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    #[error("cannot list the tools of {server}")]
    Server {
        server: String,
        source: Box<toolwarden_mcp::McpError>,
    },
    #[error("cannot listen on {address}")]
    Listen {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
}

impl ProbeError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Listen { .. } | Self::Server { .. } => 3,
            _ => 2,
        }
    }

    pub(crate) const fn help(&self) -> Option<&'static str> {
        match self {
            Self::File(ProbeFileError::Invalid { .. }) => {
                Some("nothing of a file with a mistake is used")
            }
            Self::Provider(_) => {
                Some("the command `providers` lists them; any other needs --base-url and --model")
            }
            Self::Exists { .. } => Some("pass --force to replace it"),
            Self::Write { .. } => Some("check that the folder may be written to"),
            Self::FixtureModel { .. } => Some("leave --model out, or give another --fixture"),
            Self::Snapshot { .. } => {
                Some("a snapshot is what the command `snapshot` writes with --output")
            }
            Self::Incomparable { .. } => {
                Some("make both snapshots with the same suite; what was asked has to be the same")
            }
            Self::NothingToReplay { .. } => Some(
                "give the folder that `toolwarden probe snapshot --capture` wrote, or one of its .jsonl files",
            ),
            Self::NothingToCompare => {
                Some("add a provider with --base, or pin what is expected in the contract")
            }
            _ => None,
        }
    }
}
