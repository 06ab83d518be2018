use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_drift::InvalidCall;
use toolwarden_drift::shape::InvalidShape;
use toolwarden_drift::toolwatch::InvalidFile;
use toolwarden_mcp::{InvalidEndpoint, McpError};
use toolwarden_model::InvalidTool;
use toolwarden_model::document::DocumentErrorKind;
use toolwarden_model::json::{JsonErrorKind, Position};
use toolwarden_probe::ProbeFileError;
use toolwarden_store::{ServerKey, StoreError};
use toolwarden_warden::guard::PolicyFileError;
use toolwarden_warden::{
    ApproveError, ConfigError, ImportError, LockError, PinsError, UnreadableDefinition,
};

use crate::commands::{AuditCommandError, GatewayCommandError, GuardError, ProbeError, Source};
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
    NoTools { places: String },
    #[error("{}:{line}: not a recorded call: {source}", place.display())]
    Call {
        place: PathBuf,
        line: usize,
        source: InvalidCall,
    },
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error(transparent)]
    Gateway(#[from] GatewayCommandError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error("standard input can be read only once")]
    TwiceStdin,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {source}", path.display())]
    Lock { path: PathBuf, source: LockError },
    #[error(transparent)]
    Pins(#[from] PinsError),
    #[error(transparent)]
    Approve(ApproveError),
    #[error("{}: {source}", path.display())]
    Config {
        path: PathBuf,
        source: Box<ConfigError>,
    },
    #[error("{0}")]
    Endpoint(#[from] InvalidEndpoint),
    #[error(
        "server `{server}` could not be asked: {}",
        without(secrets, with_causes(source))
    )]
    Live {
        server: String,
        source: Box<McpError>,
        /// What a server may have sent back and nobody else may read.
        secrets: Vec<String>,
    },
    #[error("server `{server}` has two tools called `{name}`")]
    DoubledTool { name: String, server: String },
    #[error("--calls are made of a live server")]
    NobodyToCall,
    #[error("server `{server}` was not asked")]
    Unasked { server: String },
    #[error("a header is for one --mcp-url")]
    HeaderForMany,
    #[error("a header is written as `Name: value`")]
    Header,
    #[error("no tools to look at")]
    NoSource,
    #[error("--schema is the definition of one tool")]
    OneTool,
    #[error("two servers would be called `{name}`")]
    SameServer { name: String },
    #[error("`{name}` is in {first} and in {second}")]
    SameTool {
        name: String,
        first: String,
        second: String,
    },
    #[error("`{tool}` of server `{server}`{} {}", others(*more), unpinned(lock.as_deref()))]
    NotPinned {
        server: String,
        tool: String,
        more: usize,
        lock: Option<PathBuf>,
    },
    #[error("no results of `{tool}` are pinned")]
    NoShape { tool: String },
    #[error("nothing is pinned{}", if server.is_empty() { String::new() } else { format!(" for server `{server}`") })]
    NothingPinned { server: String },
    #[error("no server is called `{name}`{suggestion}")]
    NoSuchServer { name: String, suggestion: String },
    #[error("nothing of server `{server}` was pinned as version `{version}`")]
    NoSuchVersion { version: String, server: String },
    #[error("`{tool}` is a tool of `{}` (scope {}) and of `{}` (scope {})", first.name, first.scope, second.name, second.scope)]
    SeveralServers {
        tool: String,
        first: ServerKey,
        second: ServerKey,
    },
    #[error("only a hash is known of the definition of `{tool}`")]
    HashOnly { tool: String },
    #[error("what is kept of `{tool}` cannot be read: {source}")]
    Kept {
        tool: String,
        source: UnreadableDefinition,
    },
    #[error("a kept shape cannot be read: {source}")]
    Shape { source: InvalidShape },
    #[error("{}: entry {index} names no tool", place.display())]
    Unnamed { place: PathBuf, index: usize },
    #[error("{}: none of its results is of a tool that was looked at; the first is of `{name}`{suggestion}", place.display())]
    StrangeResults {
        place: PathBuf,
        name: String,
        suggestion: String,
    },
    #[error("{}: {source}", place.display())]
    Result {
        place: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: not a file of toolwatch: {source}", place.display())]
    OldFile { place: PathBuf, source: InvalidFile },
    #[error("{} holds neither baselines.json nor alerts.json", folder.display())]
    NothingToImport { folder: PathBuf },
    #[error(transparent)]
    Import(ImportError),
    #[error(transparent)]
    Audit(#[from] AuditCommandError),
    #[error("there is no home directory to keep a store in")]
    NoHome,
    #[error("the process cannot wait for others")]
    Runtime(#[source] io::Error),
    #[error("interrupted")]
    Interrupted { code: u8 },
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
            | Self::TwiceStdin
            | Self::Lock { .. }
            | Self::Config { .. }
            | Self::Endpoint(_)
            | Self::Header
            | Self::HeaderForMany
            | Self::NoSource
            | Self::OneTool
            | Self::SameServer { .. }
            | Self::SameTool { .. }
            | Self::DoubledTool { .. }
            | Self::NobodyToCall
            | Self::NotPinned { .. }
            | Self::NoShape { .. }
            | Self::NothingPinned { .. }
            | Self::NoSuchServer { .. }
            | Self::NoSuchVersion { .. }
            | Self::SeveralServers { .. }
            | Self::HashOnly { .. }
            | Self::Unnamed { .. }
            | Self::Result { .. }
            | Self::StrangeResults { .. }
            | Self::OldFile { .. }
            | Self::NothingToImport { .. }
            | Self::Import(ImportError::Time { .. })
            | Self::Approve(
                ApproveError::NotWaiting { .. } | ApproveError::SeveralServers { .. },
            )
            | Self::NoHome => 2,
            Self::NoTools { .. }
            | Self::Write { .. }
            | Self::Store(_)
            | Self::Pins(_)
            | Self::Approve(_)
            | Self::Import(_)
            | Self::Live { .. }
            | Self::Unasked { .. }
            | Self::Kept { .. }
            | Self::Shape { .. }
            | Self::Runtime(_) => 3,
            Self::Gateway(error) => error.exit_code(),
            Self::Guard(error) => error.exit_code(),
            Self::Probe(error) => error.exit_code(),
            Self::Audit(error) => error.exit_code(),
            Self::Interrupted { code } => *code,
        }
    }

    /// Prints the error with its place, its cause and a remedy.
    pub(crate) fn print(&self) {
        use anstream::eprintln;
        let (error, place, dim) = (style::ERROR, style::PLACE, style::DIM);
        // What a server printed before it died has lines of its own.
        let message = self.to_string();
        let lines: Vec<String> = message.lines().map(style::visible).collect();
        eprintln!("{error}error{error:#}: {}", lines.join("\n    "));
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
        if let Some(cause) = std::error::Error::source(self).filter(|_| !self.tells_its_cause()) {
            eprintln!(
                "  {dim}cause:{dim:#} {}",
                style::visible(&cause.to_string())
            );
        }
        if let Some(help) = self.help() {
            eprintln!("  {dim}help:{dim:#} {help}");
        }
    }

    /// Whether the cause is part of the message already.
    const fn tells_its_cause(&self) -> bool {
        if let Self::Gateway(error) = self {
            return error.tells_its_cause();
        }
        matches!(
            self,
            Self::Canonical { .. }
                | Self::Call { .. }
                | Self::Config { .. }
                | Self::Endpoint(_)
                | Self::Live { .. }
                | Self::Kept { .. }
                | Self::Shape { .. }
                | Self::Result { .. }
                | Self::OldFile { .. }
                | Self::Lock { .. }
                | Self::Guard(GuardError::Policy(
                    PolicyFileError::Document { .. } | PolicyFileError::NotText { .. }
                ))
                | Self::Probe(ProbeError::File(_) | ProbeError::Capture(_))
        )
    }

    pub(crate) fn live(source: &Source, error: McpError) -> Self {
        if let McpError::Endpoint(error) = error {
            return Self::Endpoint(error);
        }
        Self::Live {
            server: source.key.name.clone(),
            source: Box::new(error),
            secrets: source.secrets(),
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Guard(GuardError::Policy(PolicyFileError::Document { source, .. })) => {
                document_help(&source.kind)
            }
            Self::Gateway(error) => error.help(),
            Self::Guard(error) => error.help(),
            Self::Probe(ProbeError::File(ProbeFileError::Document { source, .. })) => {
                document_help(&source.kind)
            }
            Self::Probe(error) => error.help(),
            Self::Store(error) | Self::Pins(PinsError::Store(error)) => store_help(error),
            Self::Audit(error) => Some(error.help()),
            Self::Lock { source, .. } => Some(match source {
                LockError::Conflict { .. }
                | LockError::Twice { .. }
                | LockError::ServerTwice { .. } => {
                    "take one side (git checkout --ours on the file), then run `toolwarden watch lock` as before"
                }
                LockError::Newer { .. } => "install that version of toolwarden or a newer one",
                LockError::Read(_) => "write it with `toolwarden watch lock`, and commit it",
                LockError::NotALock
                | LockError::Json(_)
                | LockError::Missing { .. }
                | LockError::Unknown { .. } => {
                    "restore it from git, or remove it and run `toolwarden watch lock`"
                }
            }),
            Self::Config { source, .. } => Some(match **source {
                ConfigError::Unset { .. } => "set it, or write the value into the file",
                _ => "`toolwarden watch daemon --help` shows a configuration",
            }),
            Self::Live { source, .. } => match **source {
                McpError::Exited { .. } | McpError::Timeout { .. } => Some(
                    "start the server by hand to see what it says, or give it time with --timeout",
                ),
                _ => None,
            },
            Self::NoSource => Some("give files, --schema, --mcp-command, --mcp-url or --config"),
            Self::OneTool => Some("name it with one --tool"),
            Self::SameServer { .. } => Some("name them apart in a file for --config"),
            Self::SameTool { .. } => Some(
                "tools of one server have one name each: give --per-file, or --server for each file",
            ),
            Self::NotPinned { lock: Some(_), .. } => {
                Some("review it, run `toolwarden watch lock`, and commit the file")
            }
            Self::NotPinned { lock: None, .. } => {
                Some("review it and run `toolwarden watch baseline`, or leave out --frozen")
            }
            Self::NoShape { .. } => Some("run `toolwarden watch baseline` with --responses"),
            Self::NothingPinned { .. } => {
                Some("run `toolwarden watch baseline`, or name the store with --store")
            }
            Self::NoSuchServer { .. } => Some("`toolwarden watch list` shows every server"),
            Self::NoSuchVersion { .. } => {
                Some("`toolwarden watch history TOOL` shows every version")
            }
            Self::SeveralServers { .. } => Some("say which with --server and --scope"),
            Self::HashOnly { .. } => Some("run `toolwarden watch check` once, which adopts it"),
            Self::Unnamed { .. } => Some(
                "write `{\"tool\": \"name\", …}` per entry, give --tool, or name the file after the tool",
            ),
            Self::OldFile { .. } | Self::NothingToImport { .. } => {
                Some("give the directory in which toolwatch keeps baselines.json and alerts.json")
            }
            Self::Approve(ApproveError::SeveralServers { .. }) => {
                Some("say which with --server and --scope")
            }
            Self::DoubledTool { .. } => Some(
                "calls of that name reach either of them: have the server mended before it is pinned",
            ),
            Self::HeaderForMany => Some(
                "what one server may read is not for others: write them into a file for --config",
            ),
            Self::NobodyToCall => Some("give --mcp-command, --mcp-url or --config too"),
            Self::Approve(ApproveError::NotWaiting { .. }) => {
                Some("`toolwarden watch approve` shows what waits")
            }
            Self::NoHome => Some("name the store with --store"),
            Self::StrangeResults { .. } => {
                Some("a check of nothing must not pass: name the tool as it is listed")
            }
            Self::Result { .. } => Some("results are JSON, or one JSON value per line"),
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
            Self::NoTools { .. } => Some("a check of nothing must not pass: give it definitions"),
            Self::Write { .. } => Some("check that the directory exists and may be written to"),
            Self::Call { .. } => Some("write one call per line, with the name of its tool"),
            Self::TwiceStdin => Some("give a file for one of them"),
            Self::Read { .. }
            | Self::BadGlob { .. }
            | Self::Pins(_)
            | Self::Approve(_)
            | Self::Import(_)
            | Self::Endpoint(_)
            | Self::Header
            | Self::Unasked { .. }
            | Self::Kept { .. }
            | Self::Shape { .. }
            | Self::Runtime(_)
            | Self::Interrupted { .. } => None,
        }
    }
}

impl From<ApproveError> for CliError {
    fn from(error: ApproveError) -> Self {
        match error {
            ApproveError::Pins(error) => Self::Pins(error),
            other => Self::Approve(other),
        }
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => Self::Store(error),
            other @ ImportError::Time { .. } => Self::Import(other),
        }
    }
}

/// What helps where a text is no document.
const fn document_help(kind: &DocumentErrorKind) -> Option<&'static str> {
    match kind {
        DocumentErrorKind::Syntax { .. } | DocumentErrorKind::UnknownTag { .. } => {
            Some("names that begin with `*`, `&`, `!` or `@` have to stand in quotes")
        }
        DocumentErrorKind::Empty => Some("check that this is the file that was meant"),
        DocumentErrorKind::SeveralDocuments => Some("a line `---` begins another document"),
        DocumentErrorKind::DuplicateKey { .. } => Some("keep one of the two"),
        // The message says what to write.
        DocumentErrorKind::KeyNotText
        | DocumentErrorKind::MergeKey
        | DocumentErrorKind::TagMismatch { .. }
        | DocumentErrorKind::NotFinite
        | DocumentErrorKind::NumberTooLarge
        | DocumentErrorKind::AliasInsideAnchor
        | DocumentErrorKind::TooDeep
        | DocumentErrorKind::TooLarge => None,
    }
}

const fn store_help(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::NotAStore { .. } => {
            Some("name another file with --store; this one is left as it is")
        }
        StoreError::Newer { .. } => {
            Some("install that version of toolwarden or a newer one; the store is left as it is")
        }
        StoreError::Damaged { .. } => Some(
            "restore the file from a backup, or name another with --store; it is left as it is",
        ),
        StoreError::Busy { .. } => Some("try again, or look for a process that holds it"),
        StoreError::Gone { .. } => Some("put it back, or start again with the file that is there"),
        StoreError::Open { .. } => {
            Some("check the path and its permissions, or name another with --store")
        }
        StoreError::NoAuditHead { .. } => Some("`toolwarden audit verify` says more"),
        StoreError::Sqlite { .. } => None,
    }
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " and 1 other tool".to_owned(),
        more => format!(" and {more} other tools"),
    }
}

fn unpinned(lock: Option<&Path>) -> String {
    match lock {
        Some(path) => format!("not in {}", path.display()),
        None => "not pinned".to_owned(),
    }
}

/// A text without the secrets that stand in it.
fn without(secrets: &[String], mut text: String) -> String {
    for secret in secrets {
        text = text.replace(secret, "***");
    }
    text
}

/// An error with everything behind it in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.contains(&told) {
            text.push_str(&format!(": {told}"));
        }
        cause = error.source();
    }
    text
}
