//! Takes over the servers of desktop clients.

mod credentials;
mod jsonc;
mod places;
mod reference;
mod server;
mod yaml;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use toolwarden_guard::{AuditRules, Redaction};
use toolwarden_mcp::Endpoint;
use toolwarden_model::document::{Document, DocumentError};
use toolwarden_model::json::{Object, Pointer};

use super::SettingsWarning;
use reference::Inputs;
use server::Taking;

pub use places::{Os, places, places_on};
pub use yaml::write as to_yaml;

/// A client that has a file of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The desktop application of Claude.
    ClaudeDesktop,
    /// Claude Code: `.mcp.json` of a project, or the user's file with all projects.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code: `mcp.json`, or its part of `settings.json`.
    VsCode,
}

/// The servers of a client, in our words.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedServers {
    /// The servers, in written order.
    pub servers: Vec<ImportedServer>,
    /// What is different here, and what was left out.
    pub notes: Vec<SettingsWarning>,
}

/// A server of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedServer {
    /// Its name.
    pub name: String,
    /// How it is reached; texts may refer to the environment.
    pub endpoint: Endpoint,
    /// Whether the client leaves it out.
    pub disabled: bool,
}

/// Why the servers of a client cannot be taken over.
#[derive(Debug, Error)]
pub enum ClientFileError {
    /// The file is no JSON.
    #[error("{}:{}:{}: {}", path.display(), source.position.line, source.position.column, source.kind)]
    Document {
        /// The file.
        path: PathBuf,
        /// What does not fit, and where.
        source: DocumentError,
    },
    /// There is no list of servers in it.
    #[error("{} has no servers of {}: there is no `{key}`", path.display(), client.as_str())]
    NoServers {
        /// The file.
        path: PathBuf,
        /// The client.
        client: Client,
        /// Where the list should be.
        key: &'static str,
    },
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 4] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
    ];

    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
        }
    }

    /// The key of its list of servers.
    const fn key(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor => "mcpServers",
            Self::VsCode => "servers",
        }
    }
}

/// Takes over the servers of a client's file. Comments and trailing commas are read as the clients
/// do; what cannot be taken over is told in a note.
///
/// # Errors
/// The file is no JSON, or has no list of servers.
pub fn import(client: Client, text: &str, path: &Path) -> Result<ImportedServers, ClientFileError> {
    let plain = jsonc::plain(text);
    let document = Document::read(&plain).map_err(|source| ClientFileError::Document {
        path: path.to_owned(),
        source,
    })?;
    let lists = lists(client, &document.value);
    if lists.is_empty() {
        return Err(ClientFileError::NoServers {
            path: path.to_owned(),
            client,
            key: client.key(),
        });
    }
    let mut taking = Taking {
        client,
        inputs: Inputs::of(&document.value),
        secrets: Redaction::new(&AuditRules::default()),
        servers: Vec::new(),
        notes: Vec::new(),
    };
    for (at, servers) in lists {
        for (name, server) in servers {
            taking.take(name, server, &at.child(name));
        }
    }
    let notes = taking.notes.into_iter().map(|(pointer, message)| {
        let position = document.position(&pointer);
        SettingsWarning {
            pointer,
            position,
            message,
        }
    });
    Ok(ImportedServers {
        notes: notes.collect(),
        servers: taking.servers,
    })
}

impl ImportedServers {
    /// The settings with these servers, as a file.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let servers = self.servers.iter();
        let servers: Object = servers
            .map(|server| (server.name.clone(), server.to_value()))
            .collect();
        yaml::write(&json!({"servers": servers}))
    }
}

/// Every list of servers in a file, and where it stands.
fn lists(client: Client, root: &Value) -> Vec<(Pointer, &Object)> {
    let mut found = Vec::new();
    let mut look = |segments: &[&str]| {
        let at = Pointer::of(segments.iter().copied());
        if let Some(servers) = at.find(root).and_then(Value::as_object) {
            found.push((at, servers));
        }
    };
    look(&["mcpServers"]);
    match client {
        Client::ClaudeDesktop | Client::Cursor => {}
        Client::ClaudeCode => {
            let projects = root.get("projects").and_then(Value::as_object);
            for project in projects.into_iter().flat_map(Object::keys) {
                look(&["projects", project, "mcpServers"]);
            }
        }
        Client::VsCode => {
            look(&["servers"]);
            look(&["mcp", "servers"]);
            look(&["mcp.servers"]);
        }
    }
    found
}

#[cfg(test)]
mod tests;
