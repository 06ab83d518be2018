use std::io;
use std::path::PathBuf;

use thiserror::Error;
use toolwarden_drift::InvalidCall;
use toolwarden_model::InvalidTool;
use toolwarden_model::json::{JsonErrorKind, Position};

use crate::style;

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error("cannot read {}", place.display())]
    Read { place: PathBuf, source: io::Error },
    #[error("no file matches `{pattern}`")]
    NoMatch { pattern: String },
    #[error("`{pattern}` is not a valid glob")]
    BadGlob {
        pattern: String,
        source: glob::PatternError,
    },
    #[error("{}: {kind}", place.display())]
    Json {
        place: PathBuf,
        position: Position,
        kind: JsonErrorKind,
    },
    #[error("{}{}: not a canonical tool: {source}", place.display(), pointer)]
    Canonical {
        place: PathBuf,
        pointer: String,
        source: Box<InvalidTool>,
    },
    #[error("no tool is called `{name}`{suggestion}")]
    NoSuchTool { name: String, suggestion: String },
    #[error("no tool definition found in {places}")]
    NothingToLint { places: String },
    #[error("{}:{line}: not a recorded call: {source}", place.display())]
    Call {
        place: PathBuf,
        line: usize,
        source: InvalidCall,
    },
    #[error("both versions cannot come from standard input")]
    TwiceStdin,
    #[error("cannot write {}", place.display())]
    Write { place: PathBuf, source: io::Error },
}

impl CliError {
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. }
            | Self::NoMatch { .. }
            | Self::BadGlob { .. }
            | Self::Json { .. }
            | Self::Canonical { .. }
            | Self::NoSuchTool { .. }
            | Self::Call { .. }
            | Self::TwiceStdin => 2,
            Self::NothingToLint { .. } | Self::Write { .. } => 3,
        }
    }

    /// Prints the error with its place, its cause and a remedy.
    pub(crate) fn print(&self) {
        use anstream::eprintln;
        let (error, place, dim) = (style::ERROR, style::PLACE, style::DIM);
        eprintln!(
            "{error}error{error:#}: {}",
            style::visible(&self.to_string())
        );
        if let Self::Json {
            place: file,
            position,
            ..
        } = self
        {
            eprintln!(
                "  {place}--> {}:{}:{}{place:#}",
                file.display(),
                position.line,
                position.column
            );
        }
        if let Some(cause) = std::error::Error::source(self)
            .filter(|_| !matches!(self, Self::Canonical { .. } | Self::Call { .. }))
        {
            eprintln!(
                "  {dim}cause:{dim:#} {}",
                style::visible(&cause.to_string())
            );
        }
        if let Some(help) = self.help() {
            eprintln!("  {dim}help:{dim:#} {help}");
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path, or give `-` to read standard input")
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("give the files in it, for example with a glob: 'folder/*.json'")
            }
            Self::NoMatch { .. } => {
                Some("check the pattern; quote it so that the shell leaves it alone")
            }
            Self::Json { kind, .. } => Some(match kind {
                JsonErrorKind::Truncated => "the file ends too early: is it complete?",
                JsonErrorKind::TooDeep => "no provider takes schemas nested like this",
                JsonErrorKind::InvalidUtf8 { .. } | JsonErrorKind::Utf16 => {
                    "save the file as UTF-8"
                }
                JsonErrorKind::Syntax { .. } => "the input must be JSON or JSON Lines",
            }),
            Self::Canonical { .. } => {
                Some("correct the file, or canonicalize the original definition again")
            }
            Self::NoSuchTool { .. } => Some("leave out --tool to see every tool"),
            Self::NothingToLint { .. } => {
                Some("a check of nothing must not pass: give it definitions")
            }
            Self::Write { .. } => Some("check that the directory exists and may be written to"),
            Self::Call { .. } => Some("write one call per line, with the name of its tool"),
            Self::TwiceStdin => Some("give a file for one of them"),
            Self::Read { .. } | Self::BadGlob { .. } => None,
        }
    }
}
