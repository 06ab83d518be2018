//! What was sent and received, in files that can be read again.

mod line;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_model::reply::{UnknownWire, Wire};

use crate::exchange::Exchange;
use crate::run::TrialKey;

pub use write::write;

/// The name of the format, in the first line of each file.
pub const SCHEMA: &str = "toolwarden/probe/capture/v1";

/// The largest capture that is read.
const MAX_BYTES: u64 = 1 << 30;

/// What one provider was asked and answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// The provider.
    pub provider: String,
    /// The model that was asked for.
    pub model_id: String,
    /// How the endpoint speaks.
    pub wire: Wire,
    /// The name of the suite.
    pub suite: String,
    /// Every request of every trial, in order.
    pub exchanges: Vec<(TrialKey, Exchange)>,
}

/// Why a capture cannot be written or read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file or folder cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not what the format wants.
    #[error("{}, line {line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A line names something that is unknown.
    #[error("{}, line {line}: unknown {what} `{word}`", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: usize,
        /// What it should be.
        what: &'static str,
        /// What it is.
        word: String,
    },
    /// The wire is unknown.
    #[error("{}: {source}", path.display())]
    Wire {
        /// The file.
        path: PathBuf,
        /// Why.
        source: UnknownWire,
    },
    /// The file is of another format, or of a version that is not known.
    #[error("{} is no capture: its first line does not name `{SCHEMA}`", path.display())]
    NoCapture {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than what is read.
    #[error("{} is larger than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// Reads one capture, or all of a folder in the order of their names.
///
/// # Errors
/// A file cannot be read or is no capture.
pub fn read(path: &Path) -> Result<Vec<Capture>, CaptureError> {
    let failed = |source| CaptureError::Io {
        path: path.to_owned(),
        source,
    };
    if !path.is_dir() {
        return line::read_file(path).map(|it| vec![it]);
    }
    let entries = std::fs::read_dir(path).map_err(failed)?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|it| it.map(|it| it.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
    paths.sort();
    paths.iter().map(|it| line::read_file(it)).collect()
}
