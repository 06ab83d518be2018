use std::io;

use toolwarden_files::FileError;
use toolwarden_live_guard::PolicyFileError;
use toolwarden_mcp::McpError;
use toolwarden_model::document::DocumentErrorKind;
use toolwarden_model::json::JsonErrorKind;
use toolwarden_probe::ProbeFileError;
use toolwarden_store::StoreError;
use toolwarden_watch::{ApproveError, BackupError, LockError, PinsError, WatchConfigError};

use super::{CliError, GuardError, ProbeError};

impl CliError {
    /// What the user can do about the error.
    pub(super) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Guard(GuardError::Policy(PolicyFileError::File(FileError::Document {
                source,
                path,
            })))
            | Self::Probe(ProbeError::File(ProbeFileError::File(FileError::Document {
                source,
                path,
            }))) => match path.extension().is_some_and(|it| it == "json") {
                // The message says what is not JSON.
                true => None,
                false => document_help(&source.kind),
            },
            Self::Gateway(error) => error.help(),
            Self::Guard(error) => error.help(),
            Self::Probe(error) => error.help(),
            Self::Store(error) | Self::Pins(PinsError::Store(error)) => store_help(error),
            Self::Audit(error) => Some(error.help()),
            Self::Backup(error) => backup_help(error),
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
                | LockError::DoubledKey { .. }
                | LockError::Unknown { .. } => {
                    "restore it from git, or remove it and run `toolwarden watch lock`"
                }
            }),
            Self::Config { source, .. } => Some(match **source {
                WatchConfigError::Unset { .. } => "set it, or write the value into the file",
                WatchConfigError::NotWatchFile => {
                    "`toolwarden import` converts the file of a client; settings stay as they are"
                }
                _ => "`toolwarden watch daemon --help` shows settings",
            }),
            Self::Live { source, .. } => match **source {
                McpError::Exited { .. } | McpError::Timeout { .. } => {
                    Some("start the server by hand to see its output, or raise --timeout")
                }
                _ => None,
            },
            Self::Rewrite { .. } => Some(
                "this is a bug in toolwarden, not a mistake in the file: please report it with the definition",
            ),
            Self::NoSource => Some("give files, --schema, --mcp-command, --mcp-url or --config"),
            Self::OneTool => Some("name it with one --tool"),
            Self::SameServer { .. } => Some("give them different names in a file for --config"),
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
            Self::UnknownServer { .. } => Some(
                "correct --server or --scope; a new server is pinned by `toolwarden watch baseline`, or by a check with --new",
            ),
            Self::OnlyAPage { .. } => Some(
                "save every page and give all of them, or ask the server itself with --mcp-url or --mcp-command",
            ),
            Self::NoSuchServer { .. } => Some("`toolwarden watch list` shows every server"),
            Self::NoSuchScope { .. } => {
                Some("`toolwarden watch list` shows every server with its scope")
            }
            Self::NotInLock { .. } => Some(
                "correct --server; to pin a new server, review its tools, run `toolwarden watch lock`, and commit the file",
            ),
            Self::NoStore { .. } => Some(
                "name the store with --store or TOOLWARDEN_STORE; this command does not create one",
            ),
            Self::NoSuchVersion { .. } => {
                Some("`toolwarden watch history TOOL` shows every version")
            }
            Self::SeveralServers { .. } => Some("select one with --server and --scope"),
            Self::HashOnly { .. } => Some("run `toolwarden watch check` once to pin it"),
            Self::UnnamedTool { .. } => Some(
                "write `{\"tool\": \"name\", …}` per entry, give --tool, or name the file after the tool",
            ),
            Self::ToolwatchFile { .. } | Self::NothingToImport { .. } => {
                Some("give the directory in which toolwatch keeps baselines.json and alerts.json")
            }
            Self::Approve(ApproveError::SeveralServers { .. }) => {
                Some("select one with --server and --scope")
            }
            Self::DuplicateTool { .. } => Some(
                "a call of that name may reach either of them: have the server fixed before you pin it",
            ),
            Self::HeaderForMany => Some(
                "to send different headers to several servers, write them into a file for --config",
            ),
            Self::AliasTaken { .. } => Some("--force replaces it"),
            Self::DoubledKey { .. } => {
                Some("some readers take the first value, others the last: have one of them removed")
            }
            Self::Contradiction { .. } => Some("give one of them"),
            Self::AllowsNoClass { .. } => Some(
                "name the classes to allow, such as `--allow text`; `--fail-on none` fails on no drift at all",
            ),
            Self::NoFixtures => Some("give --responses or --calls too"),
            Self::NoLiveServer => Some("give --mcp-command, --mcp-url or --config too"),
            Self::Approve(ApproveError::NotPending { .. }) => {
                Some("`toolwarden watch approve` lists pending changes")
            }
            Self::NoHome => Some("name the store with --store"),
            Self::UnknownResultTool { .. } => {
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
                Some("check the pattern, and quote it so that the shell does not expand it")
            }
            Self::Json { kind, .. } => Some(match kind {
                JsonErrorKind::Truncated => "the file ends too early: is it complete?",
                JsonErrorKind::TooDeep => "no provider accepts a schema nested this deep",
                JsonErrorKind::InvalidUtf8 { .. } | JsonErrorKind::Utf16 => {
                    "save the file as UTF-8"
                }
                JsonErrorKind::Syntax { .. } => "the input must be JSON or JSON Lines",
            }),
            Self::Canonical { .. } => {
                Some("correct the file, or canonicalize the original definition again")
            }
            Self::NoSuchTool { .. } => Some(
                "check the name; without --tool every tool is shown, and `toolwarden watch list` lists pinned ones",
            ),
            Self::NoTools { .. } => {
                Some("pass a file with tool definitions; a check of nothing must not pass")
            }
            Self::Write { .. } => Some("check that the directory exists and may be written to"),
            Self::Call { .. } => Some("write one call per line, with the name of its tool"),
            Self::DuplicateStdin => Some("give a file for one of them"),
            Self::Read { .. }
            | Self::BadGlob { .. }
            | Self::Pins(_)
            | Self::Approve(_)
            | Self::Import(_)
            | Self::Endpoint(_)
            | Self::Header
            | Self::ServerNotAsked { .. }
            | Self::StoredDefinition { .. }
            | Self::Shape { .. }
            | Self::Runtime(_)
            | Self::Interrupted { .. } => None,
        }
    }
}

/// What helps if a text is not a document.
const fn document_help(kind: &DocumentErrorKind) -> Option<&'static str> {
    match kind {
        DocumentErrorKind::Syntax { .. } | DocumentErrorKind::UnknownTag { .. } => {
            Some("quote names that begin with `*`, `&`, `!` or `@`")
        }
        DocumentErrorKind::Empty => Some("check that this is the intended file"),
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

const fn backup_help(error: &BackupError) -> Option<&'static str> {
    match error {
        BackupError::Store(error) => store_help(error),
        BackupError::Exists { .. } => Some("name another file, or give --force to replace it"),
        BackupError::IsSource { .. } | BackupError::NotAFile { .. } => {
            Some("name another file; this one is left as it is")
        }
        BackupError::InUse { .. } => Some(
            "name another file: SQLite would take that file for a part of the copy and damage it",
        ),
        BackupError::Unverified { .. } => Some("`toolwarden audit verify` says more"),
        BackupError::Write { .. } => {
            Some("check that the folder exists, its permissions and the space")
        }
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
        StoreError::Gone { .. } => Some("restore the file, or restart with the new one"),
        StoreError::Open { .. } => {
            Some("check the path and its permissions, or name another with --store")
        }
        StoreError::NoAuditHead { .. } => Some("`toolwarden audit verify` says more"),
        StoreError::OverQuota { .. } => Some("remove old records, or raise `store_quota`"),
        StoreError::Copy { .. } => Some("check the space and the permissions where the copy goes"),
        StoreError::Sqlite { .. } => None,
    }
}
