mod audit_error;
mod broken_rewrite;
mod gateway_error;
mod guard_error;
mod help;
mod probe_error;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_drift::InvalidCall;
use toolwarden_drift::shape::InvalidShape;
use toolwarden_drift::toolwatch::InvalidToolwatchFile;
use toolwarden_live_guard::PolicyFileError;
use toolwarden_mcp::{InvalidEndpoint, McpError, Secrets};
use toolwarden_model::InvalidTool;
use toolwarden_model::json::{JsonError, JsonErrorKind, Pointer, Position};
use toolwarden_probe::ProbeFileError;
use toolwarden_store::{ServerKey, StoreError};
use toolwarden_watch::{
    ApproveError, BackupError, DEFAULT_SCOPE, ImportError, LockError, PinsError,
    UnreadableDefinition, WatchConfigError,
};

use crate::style;

pub(crate) use audit_error::AuditCommandError;
pub(crate) use broken_rewrite::BrokenRewrite;
pub(crate) use gateway_error::{GatewayCommandError, LocatedMistake};
pub(crate) use guard_error::{CallProblem, GuardError};
pub(crate) use probe_error::ProbeError;

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
    #[error("internal error: `{tool}` is not written: {source}")]
    Rewrite {
        tool: String,
        source: Box<BrokenRewrite>,
    },
    #[error("no tool is called `{name}`{suggestion}")]
    NoSuchTool { name: String, suggestion: String },
    #[error("{}: key `{pointer}` is written twice{}", place.display(), at(position.as_ref()))]
    DoubledKey {
        place: PathBuf,
        pointer: toolwarden_model::json::Pointer,
        position: Option<Position>,
    },
    #[error("`{one}` and `{other}` contradict each other")]
    Contradiction { one: String, other: String },
    #[error("`{word}` is not a class that --allow can take")]
    AllowsNoClass { word: String },
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
    DuplicateStdin,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no store: {} does not exist", path.display())]
    NoStore { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Lock { path: PathBuf, source: LockError },
    #[error(transparent)]
    Pins(#[from] PinsError),
    #[error(transparent)]
    Approve(ApproveError),
    #[error("{}: {source}", path.display())]
    Config {
        path: PathBuf,
        source: Box<WatchConfigError>,
    },
    #[error("{0}")]
    Endpoint(#[from] InvalidEndpoint),
    #[error(
        "server `{server}` could not be asked: {}",
        secrets.mask(with_causes(source))
    )]
    Live {
        server: String,
        source: Box<McpError>,
        /// Secrets that the server may have echoed; they must not be printed.
        secrets: Secrets,
    },
    #[error("server `{server}` has two tools called `{name}`")]
    DuplicateTool { name: String, server: String },
    #[error("--calls requires a live server")]
    NoLiveServer,
    #[error("{} is not a link to this program", path.display())]
    AliasTaken { path: PathBuf },
    #[error("--fixtures needs results to compare")]
    NoFixtures,
    #[error("server `{server}` was not asked")]
    ServerNotAsked { server: String },
    #[error("--header needs exactly one --mcp-url")]
    HeaderForMany,
    #[error("a header is written as `Name: value`")]
    Header,
    #[error("no tools to check")]
    NoSource,
    #[error("--schema takes the definition of one tool")]
    OneTool,
    #[error("two servers would be called `{name}`")]
    SameServer { name: String },
    #[error("`{name}` is in {first} and in {second}")]
    SameTool {
        name: String,
        first: String,
        second: String,
    },
    #[error("`{tool}` of server `{server}`{}: {}", others(*more), unpinned(lock.as_deref()))]
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
    #[error("no server has the scope `{scope}`{suggestion}")]
    NoSuchScope { scope: String, suggestion: String },
    #[error("{} has no server {}; it has {}", lock.display(), quoted_server(server), quoted_servers(known))]
    NotInLock {
        server: ServerKey,
        lock: PathBuf,
        known: Vec<ServerKey>,
    },
    #[error(
        "nothing is pinned for server `{name}` (scope {scope}), and the store has pins of other servers{suggestion}"
    )]
    UnknownServer {
        name: String,
        scope: String,
        suggestion: String,
    },
    #[error("{place}: this list is only a page: {pointer} says that the server has more tools")]
    OnlyAPage { place: String, pointer: Pointer },
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
    #[error("the stored data of `{tool}` cannot be read: {source}")]
    StoredDefinition {
        tool: String,
        source: UnreadableDefinition,
    },
    #[error("a stored shape cannot be read: {source}")]
    Shape { source: InvalidShape },
    #[error("{}: entry {index} names no tool", place.display())]
    UnnamedTool { place: PathBuf, index: usize },
    #[error("{}: none of its results is of a tool that was checked; the first is of `{name}`{suggestion}", place.display())]
    UnknownResultTool {
        place: PathBuf,
        name: String,
        suggestion: String,
    },
    #[error("{}: {}", place.display(), JsonError::from_serde(source))]
    Result {
        place: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: not a file of toolwatch: {source}", place.display())]
    ToolwatchFile {
        place: PathBuf,
        source: InvalidToolwatchFile,
    },
    #[error("{} holds neither baselines.json nor alerts.json", folder.display())]
    NothingToImport { folder: PathBuf },
    #[error(transparent)]
    Backup(BackupError),
    #[error(transparent)]
    Import(ImportError),
    #[error(transparent)]
    Audit(#[from] AuditCommandError),
    #[error("there is no home directory for the store")]
    NoHome,
    #[error("the async runtime failed")]
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
            | Self::Rewrite { .. }
            | Self::NoSuchTool { .. }
            | Self::Call { .. }
            | Self::DuplicateStdin
            | Self::Lock { .. }
            | Self::Config { .. }
            | Self::Endpoint(_)
            | Self::Header
            | Self::HeaderForMany
            | Self::NoSource
            | Self::OneTool
            | Self::SameServer { .. }
            | Self::SameTool { .. }
            | Self::DuplicateTool { .. }
            | Self::NoLiveServer
            | Self::NoFixtures
            | Self::AliasTaken { .. }
            | Self::NotPinned { .. }
            | Self::NoShape { .. }
            | Self::NothingPinned { .. }
            | Self::NoSuchServer { .. }
            | Self::NoSuchScope { .. }
            | Self::NotInLock { .. }
            | Self::UnknownServer { .. }
            | Self::OnlyAPage { .. }
            | Self::NoSuchVersion { .. }
            | Self::DoubledKey { .. }
            | Self::Contradiction { .. }
            | Self::AllowsNoClass { .. }
            | Self::SeveralServers { .. }
            | Self::HashOnly { .. }
            | Self::UnnamedTool { .. }
            | Self::Result { .. }
            | Self::UnknownResultTool { .. }
            | Self::ToolwatchFile { .. }
            | Self::NothingToImport { .. }
            | Self::Import(ImportError::Time { .. })
            | Self::Approve(
                ApproveError::NotPending { .. } | ApproveError::SeveralServers { .. },
            )
            | Self::Backup(
                BackupError::Exists { .. }
                | BackupError::IsSource { .. }
                | BackupError::NotAFile { .. }
                | BackupError::InUse { .. },
            )
            | Self::NoHome => 2,
            // INVARIANT: the command shows it as a finding, which exits with 1 as well.
            Self::Backup(BackupError::Unverified { .. }) => 1,
            Self::NoTools { .. }
            | Self::Write { .. }
            | Self::Store(_)
            | Self::NoStore { .. }
            | Self::Pins(_)
            | Self::Approve(_)
            | Self::Import(_)
            | Self::Backup(_)
            | Self::Live { .. }
            | Self::ServerNotAsked { .. }
            | Self::StoredDefinition { .. }
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
        let (error, place, dim) = (style::ERROR, style::LOCATION, style::DIM);
        // What a server printed before it died has lines of its own.
        let message = self.to_string();
        let message = toolwarden_mcp::mask_secrets(&message);
        let lines: Vec<String> = message.lines().map(style::escape_controls).collect();
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
        if let Some(cause) = std::error::Error::source(self).filter(|_| !self.includes_cause()) {
            eprintln!(
                "  {dim}cause:{dim:#} {}",
                style::escape_controls(&toolwarden_mcp::mask_secrets(&cause.to_string()))
            );
        }
        if let Some(help) = self.help() {
            eprintln!("  {dim}help:{dim:#} {help}");
        }
    }

    /// Whether the cause is part of the message already.
    const fn includes_cause(&self) -> bool {
        match self {
            Self::Gateway(error) => error.includes_cause(),
            Self::Guard(GuardError::Policy(PolicyFileError::File(error)))
            | Self::Probe(ProbeError::File(ProbeFileError::File(error))) => error.includes_cause(),
            Self::Canonical { .. }
            | Self::Rewrite { .. }
            | Self::Call { .. }
            | Self::Config { .. }
            | Self::Endpoint(_)
            | Self::Live { .. }
            | Self::StoredDefinition { .. }
            | Self::Shape { .. }
            | Self::Result { .. }
            | Self::ToolwatchFile { .. }
            | Self::Lock { .. }
            | Self::Probe(ProbeError::Capture(_)) => true,
            _ => false,
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

impl From<BackupError> for CliError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => Self::Store(error),
            other => Self::Backup(other),
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

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " and 1 other tool".to_owned(),
        more => format!(" and {more} other tools"),
    }
}

fn quoted_servers(servers: &[ServerKey]) -> String {
    let shown: Vec<String> = servers.iter().map(quoted_server).collect();
    shown.join(", ")
}

/// The name of a server, with its scope where that is not the usual one.
fn quoted_server(ServerKey { name, scope }: &ServerKey) -> String {
    match scope == DEFAULT_SCOPE {
        true => format!("`{name}`"),
        false => format!("`{name}` (scope {scope})"),
    }
}

fn unpinned(lock: Option<&Path>) -> String {
    match lock {
        Some(path) => format!("not in {}", path.display()),
        None => "not pinned".to_owned(),
    }
}

/// A position for a person.
fn at(position: Option<&Position>) -> String {
    position.map_or_else(String::new, |position| {
        format!(" at line {}, column {}", position.line, position.column)
    })
}

/// An error with everything behind it in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
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
