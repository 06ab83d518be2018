//! Captures of requests and responses, in files that can be replayed.

mod lines;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_model::reply::{UnknownWireApi, WireApi};

use crate::exchange::Exchange;
use crate::run::TrialKey;

pub use write::write;

/// The name of the format, in the first line of each file.
pub const SCHEMA: &str = "toolwarden/probe/capture/v1";

/// The largest capture that is read.
const MAX_BYTES: u64 = 1 << 30;

/// The requests to one provider and its responses.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model_id: String,
    /// The wire protocol of the endpoint.
    pub wire: WireApi,
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
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line does not have the expected format.
    #[error("{}, line {line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// A line contains an unknown word.
    #[error("{}, line {line}: unknown {what} `{word}`", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// What the word should be.
        what: &'static str,
        /// The word.
        word: String,
    },
    /// The wire is unknown.
    #[error("{}: {source}", path.display())]
    Wire {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: UnknownWireApi,
    },
    /// The file has another format, or an unknown version.
    #[error("{} is not a capture: its first line does not name `{SCHEMA}`", path.display())]
    NoCapture {
        /// The file.
        path: PathBuf,
    },
    /// The file exceeds the maximum size.
    #[error("{} is larger than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// Reads one capture, or all captures of a folder in the order of their names.
///
/// # Errors
/// A file cannot be read or is not a capture.
pub fn read(path: &Path) -> Result<Vec<Capture>, CaptureError> {
    let failed = |source| CaptureError::Io {
        path: path.to_owned(),
        source,
    };
    if !path.is_dir() {
        return lines::read_file(path).map(|it| vec![it]);
    }
    let entries = std::fs::read_dir(path).map_err(failed)?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|it| it.map(|it| it.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
    paths.sort();
    paths.iter().map(|it| lines::read_file(it)).collect()
}
