//! `toolwarden.lock`: baselines in a file that is reviewed and merged like code.
//!
//! The file is a sorted sequence of JSON documents, one per server and one per tool, with one member per
//! line and a blank line between documents. So adding a tool touches no line of another tool. The file
//! holds the definitions themselves and no digest of them, so that reviewers see exactly what is compared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use toolwarden_model::json::{
    JsonError, JsonErrorKind, Pointer, Position, first_duplicate, indent,
};
use toolwarden_model::{Fingerprint, Format, SharedText};
use toolwarden_store::{Approval, ServerKey, StoredDefinition};

use crate::{DEFAULT_SCOPE, UNKNOWN_VERSION};

/// The versioned name of the file format.
pub const LOCK_SCHEMA: &str = "toolwarden/lock/v1";

const NOTE: &str = "Written by `toolwarden watch lock`. Review it like code; do not edit it.";

/// The baselines of tools, by server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    /// The servers, in the order of their keys.
    pub servers: BTreeMap<ServerKey, LockedServer>,
}

/// A server of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedServer {
    /// Whether its list of tools is complete.
    pub sealed: bool,
    /// Its tools.
    pub tools: BTreeMap<String, LockedTool>,
}

/// A tool of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedTool {
    /// The fingerprint of the definition, computed from it, and its format.
    pub kept: StoredDefinition,
    /// The definition.
    pub text: SharedText,
    /// The version label that its user gave it.
    pub version: String,
    /// Who approved it, if known.
    pub approval: Option<Approval>,
    /// The shape of its results, as JSON without hashes of values.
    pub shape: Option<Value>,
}

/// Why a lock file cannot be used.
#[derive(Debug, Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error("the lock file cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The text is not JSON.
    #[error("{0}")]
    Json(JsonError),
    /// The file has an unresolved merge conflict.
    #[error("the lock file holds a merge conflict at line {line}")]
    Conflict {
        /// Where.
        line: usize,
    },
    /// The file does not begin like a lock file.
    #[error("not a lock file of toolwarden")]
    NotALock,
    /// A newer toolwarden wrote it.
    #[error("the lock file has the format `{found}`; this version reads `{LOCK_SCHEMA}`")]
    Newer {
        /// Its format.
        found: String,
    },
    /// A document is neither of the two kinds.
    #[error("the document that ends at line {line} is incomplete: `{member}` is missing")]
    Missing {
        /// Where.
        line: usize,
        /// The missing member.
        member: &'static str,
    },
    /// A member has an unknown value.
    #[error("the document that ends at line {line} has an unknown {what}: `{found}`")]
    Unknown {
        /// Where.
        line: usize,
        /// The member.
        what: &'static str,
        /// The value.
        found: String,
    },
    /// A definition has a key twice: one reader takes the first value, another the last.
    #[error(
        "the definition of tool `{tool}` has the key `{pointer}` twice, at line {}, column {}",
        position.line, position.column
    )]
    DoubledKey {
        /// The tool.
        tool: String,
        /// The key.
        pointer: Pointer,
        /// Where the second one is in the file.
        position: Position,
    },
    /// Two documents describe the same server.
    #[error("duplicate server `{server}` in the document that ends at line {line}")]
    ServerTwice {
        /// Where the second ends.
        line: usize,
        /// The server.
        server: String,
    },
    /// Two documents describe the same tool.
    #[error(
        "duplicate tool `{tool}` of server `{server}` in the document that ends at line {line}"
    )]
    Twice {
        /// Where the second ends.
        line: usize,
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with the keys of a lock file"
)]
struct LockDocument<'d> {
    #[serde(borrow)]
    schema: Option<Cow<'d, str>>,
    #[serde(rename = "note")]
    _note: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    server: Option<Cow<'d, str>>,
    #[serde(borrow)]
    scope: Option<Cow<'d, str>>,
    sealed: Option<bool>,
    #[serde(borrow)]
    tool: Option<Cow<'d, str>>,
    #[serde(borrow)]
    version: Option<Cow<'d, str>>,
    #[serde(borrow)]
    format: Option<Cow<'d, str>>,
    approved: Option<LockApproval>,
    #[serde(borrow)]
    definition: Option<&'d RawValue>,
    #[serde(borrow)]
    shape: Option<&'d RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `by` and `at`")]
struct LockApproval {
    by: String,
    at: String,
    why: Option<String>,
}

impl LockFile {
    /// Reads a lock file.
    ///
    /// # Errors
    /// The line that does not have the form that this program writes.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let text = toolwarden_files::read_to_string(path).map_err(LockError::Read)?;
        Self::parse(text)
    }

    /// Waits for an exclusive lock on the lock files in this folder; dropping the returned file releases
    /// it.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn lock_exclusive(path: &Path) -> io::Result<std::fs::File> {
        // Every change replaces the file itself, so the lock is on its folder.
        let folder = std::fs::File::open(folder_of(path))?;
        folder.lock()?;
        Ok(folder)
    }

    /// Parses the text of a lock file.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn parse(text: impl Into<SharedText>) -> Result<Self, LockError> {
        // The definitions are parts of this text, so that a long lock file is in memory once.
        let whole: SharedText = text.into();
        let text = whole.strip_prefix('\u{feff}').unwrap_or(&whole);
        let mut lock = Self::default();
        let mut lines = LineCounter::new(text);
        let mut documents =
            serde_json::Deserializer::from_str(text).into_iter::<LockDocument<'_>>();
        let mut first = true;
        while let Some(document) = documents.next() {
            let document = document.map_err(|error| json_error(text, &error))?;
            let line = lines.at(documents.byte_offset());
            if first {
                check_schema(&document)?;
            } else {
                lock.add(document, line, &whole)?;
            }
            first = false;
        }
        if first {
            return Err(LockError::NotALock);
        }
        Ok(lock)
    }

    fn add(
        &mut self,
        document: LockDocument<'_>,
        line: usize,
        whole: &SharedText,
    ) -> Result<(), LockError> {
        let LockDocument {
            schema: _,
            _note: _,
            server,
            scope,
            sealed,
            tool,
            version,
            format,
            approved,
            definition,
            shape,
        } = document;
        let missing = |member| LockError::Missing { line, member };
        let key = ServerKey {
            name: server.ok_or_else(|| missing("server"))?.into_owned(),
            scope: scope.map_or_else(|| DEFAULT_SCOPE.to_owned(), Cow::into_owned),
        };
        let name = key.name.clone();
        let known = self.servers.contains_key(&key);
        let server = self.servers.entry(key).or_default();
        if let Some(sealed) = sealed {
            // The document of a server precedes those of its tools.
            if known {
                return Err(LockError::ServerTwice { line, server: name });
            }
            server.sealed = sealed;
        } else if !known {
            return Err(missing("sealed"));
        }
        let Some(tool) = tool.map(Cow::into_owned) else {
            return sealed.map(|_| ()).ok_or_else(|| missing("tool"));
        };
        let text = definition.ok_or_else(|| missing("definition"))?.get();
        if let Some(doubled) = first_duplicate(text) {
            return Err(LockError::DoubledKey {
                tool,
                position: position_in(whole, text, doubled.position),
                pointer: doubled.pointer,
            });
        }
        let format = format.ok_or_else(|| missing("format"))?;
        let format: Format = format.parse().map_err(|_| LockError::Unknown {
            line,
            what: "format",
            found: format.to_string(),
        })?;
        let approval = approved
            .map(|approved| approval(approved, line))
            .transpose()?;
        let shape = shape.map(|shape| serde_json::from_str(shape.get()));
        let locked = LockedTool {
            kept: StoredDefinition {
                fingerprint: Fingerprint::of_wire(text),
                format,
            },
            text: whole.part(text),
            version: version.map_or_else(|| UNKNOWN_VERSION.to_owned(), Cow::into_owned),
            approval,
            // INVARIANT: it was already parsed as JSON.
            shape: shape.and_then(Result::ok),
        };
        if server.tools.insert(tool.clone(), locked).is_some() {
            return Err(LockError::Twice {
                line,
                server: name,
                tool,
            });
        }
        Ok(())
    }

    /// The text of the file.
    #[must_use]
    pub fn render(&self) -> String {
        self.documents().collect()
    }

    /// The documents of the file in order, with their separators.
    fn documents(&self) -> impl Iterator<Item = String> {
        let head = document(&[("schema", quoted(LOCK_SCHEMA)), ("note", quoted(NOTE))]);
        let servers = self.servers.iter().flat_map(|(key, server)| {
            let of_server = [("server", quoted(&key.name)), ("scope", quoted(&key.scope))];
            let mut members = of_server.to_vec();
            members.push(("sealed", server.sealed.to_string()));
            let tools = server.tools.iter().map(move |(name, tool)| {
                let mut members = of_server.to_vec();
                members.push(("tool", quoted(name)));
                members.extend(tool_members(tool));
                document(&members)
            });
            std::iter::once(document(&members)).chain(tools)
        });
        let rest = servers.map(|document| format!("\n{document}"));
        std::iter::once(head).chain(rest)
    }

    /// Writes the file, completely or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        // A symbolic link stays: its target is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = folder_of(&path);
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        let mut out = io::BufWriter::with_capacity(1 << 16, &mut temporary);
        for document in self.documents() {
            out.write_all(document.as_bytes())?;
        }
        out.flush()?;
        drop(out);
        temporary.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private, but a lock file must be readable.
            let usual = std::fs::Permissions::from_mode(0o644);
            let permissions = path.metadata().map_or(usual, |it| it.permissions());
            temporary.as_file().set_permissions(permissions)?;
        }
        temporary.persist(&path).map_err(|error| error.error)?;
        // The new name is durable only after its folder is synced.
        #[cfg(unix)]
        std::fs::File::open(folder)?.sync_all()?;
        Ok(())
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn check_schema(first: &LockDocument<'_>) -> Result<(), LockError> {
    match first.schema.as_deref() {
        Some(LOCK_SCHEMA) => Ok(()),
        Some(found) if found.starts_with("toolwarden/lock/") => Err(LockError::Newer {
            found: found.to_owned(),
        }),
        _ => Err(LockError::NotALock),
    }
}

/// The position in a file of a position in one of its parts.
fn position_in(whole: &str, part: &str, inside: Position) -> Position {
    let offset = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize);
    let before = offset.and_then(|offset| whole.get(..offset));
    Position::after(before.unwrap_or_default()).offset_by(inside)
}

fn approval(approved: LockApproval, line: usize) -> Result<Approval, LockError> {
    let at: Timestamp = approved.at.parse().map_err(|_| LockError::Unknown {
        line,
        what: "time",
        found: approved.at.clone(),
    })?;
    Ok(Approval {
        by: approved.by,
        at,
        why: approved.why,
    })
}

fn tool_members(tool: &LockedTool) -> Vec<(&'static str, String)> {
    let mut members = vec![
        ("version", quoted(&tool.version)),
        ("format", quoted(tool.kept.format.id())),
    ];
    if let Some(Approval { by, at, why }) = &tool.approval {
        let mut approved = serde_json::Map::new();
        approved.insert("by".to_owned(), Value::from(by.as_str()));
        approved.insert("at".to_owned(), Value::from(format!("{at:.3}")));
        if let Some(why) = why {
            approved.insert("why".to_owned(), Value::from(why.as_str()));
        }
        members.push(("approved", indent(&Value::Object(approved).to_string(), 2)));
    }
    members.push(("definition", indent(&tool.text, 2)));
    if let Some(shape) = &tool.shape {
        members.push(("shape", indent(&shape.to_string(), 2)));
    }
    members
}

fn document(members: &[(&str, String)]) -> String {
    let members = members.iter();
    let members = members.map(|(key, json)| format!("  \"{key}\": {json}"));
    format!("{{\n{}\n}}\n", members.collect::<Vec<_>>().join(",\n"))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn json_error(text: &str, error: &serde_json::Error) -> LockError {
    let markers = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
    let mut lines = text.lines();
    let marked = lines.position(|line| markers.iter().any(|marker| line.starts_with(marker)));
    if let Some(index) = marked {
        return LockError::Conflict { line: index + 1 };
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    LockError::Json(JsonError {
        position: Position {
            line: error.line(),
            column: error.column(),
        },
        kind: JsonErrorKind::Syntax {
            message: message.to_owned(),
        },
    })
}

/// Line numbers of ascending offsets.
struct LineCounter<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
}

impl<'t> LineCounter<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    fn at(&mut self, offset: usize) -> usize {
        let between = self.text.as_bytes().get(self.offset..offset);
        let between = between.unwrap_or_default();
        self.line += between.iter().filter(|byte| **byte == b'\n').count();
        self.offset = offset;
        self.line
    }
}
