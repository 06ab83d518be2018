//! Imports the servers of desktop clients.

mod config_paths;
mod credentials;
mod import_server;
mod jsonc;
mod placeholders;
mod yaml;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use toolwarden_guard::{AuditRules, Redaction};
use toolwarden_mcp::Endpoint;
use toolwarden_model::document::{Document, DocumentError};
use toolwarden_model::json::{Object, Pointer};

use super::SettingsWarning;
use import_server::ClientImport;
use placeholders::VsCodeInputs;

pub use config_paths::{Os, config_paths, config_paths_on};
pub use yaml::write as to_yaml;

/// A client with a configuration file of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientApp {
    /// The desktop application of Claude.
    ClaudeDesktop,
    /// Claude Code: `.mcp.json` of a project, or the user's file with all projects.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code: `mcp.json`, or its part of `settings.json`.
    VsCode,
}

/// The servers of a client, as our settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedServers {
    /// The servers, in written order.
    pub servers: Vec<ImportedServer>,
    /// What differs from the client, and what was left out.
    pub notes: Vec<SettingsWarning>,
}

/// A server of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedServer {
    /// Its name.
    pub name: String,
    /// How to reach it; texts may refer to the environment.
    pub endpoint: Endpoint,
    /// Whether the client disables it.
    pub disabled: bool,
}

/// Why the servers of a client cannot be imported.
#[derive(Debug, Error)]
pub enum ClientFileError {
    /// The file is not JSON.
    #[error("{}:{}:{}: {}", path.display(), source.position.line, source.position.column, source.kind)]
    Document {
        /// The file.
        path: PathBuf,
        /// The error, with its position.
        source: DocumentError,
    },
    /// The file has no list of servers.
    #[error("{} has no servers of {}: there is no `{key}`", path.display(), client.as_str())]
    NoServers {
        /// The file.
        path: PathBuf,
        /// The client.
        client: ClientApp,
        /// The key of the list.
        key: &'static str,
    },
}

impl ClientApp {
    /// Every client.
    pub const ALL: [Self; 4] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
    ];

    /// Its display name.
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

/// Imports the servers from a client's file. It accepts comments and trailing commas, as the clients do,
/// and adds a note for whatever it cannot import.
///
/// # Errors
/// The file is not JSON, or has no list of servers.
pub fn import_client_file(
    client: ClientApp,
    text: &str,
    path: &Path,
) -> Result<ImportedServers, ClientFileError> {
    let plain = jsonc::to_json(text);
    let document = Document::read(&plain).map_err(|source| ClientFileError::Document {
        path: path.to_owned(),
        source,
    })?;
    let lists = server_lists(client, &document.value);
    if lists.is_empty() {
        return Err(ClientFileError::NoServers {
            path: path.to_owned(),
            client,
            key: client.key(),
        });
    }
    let mut taking = ClientImport {
        client,
        inputs: VsCodeInputs::of(&document.value),
        secrets: Redaction::new(&AuditRules::default()),
        servers: Vec::new(),
        notes: Vec::new(),
    };
    for (at, servers) in lists {
        for (name, server) in servers {
            taking.import_server(name, server, &at.child(name));
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
    /// The settings with these servers, as a YAML file.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let servers = self.servers.iter();
        let servers: Object = servers
            .map(|server| (server.name.clone(), server.to_value()))
            .collect();
        yaml::write(&json!({"servers": servers}))
    }
}

/// Every list of servers in a file, with its place.
fn server_lists(client: ClientApp, root: &Value) -> Vec<(Pointer, &Object)> {
    let mut found = Vec::new();
    let mut look = |segments: &[&str]| {
        let at = Pointer::of(segments.iter().copied());
        if let Some(servers) = at.find(root).and_then(Value::as_object) {
            found.push((at, servers));
        }
    };
    look(&["mcpServers"]);
    match client {
        ClientApp::ClaudeDesktop | ClientApp::Cursor => {}
        ClientApp::ClaudeCode => {
            let projects = root.get("projects").and_then(Value::as_object);
            for project in projects.into_iter().flat_map(Object::keys) {
                look(&["projects", project, "mcpServers"]);
            }
        }
        ClientApp::VsCode => {
            look(&["servers"]);
            look(&["mcp", "servers"]);
            look(&["mcp.servers"]);
        }
    }
    found
}

#[cfg(test)]
mod tests;
