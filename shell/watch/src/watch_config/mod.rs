//! The servers to watch: from the settings, from an MCP client, or from the TOML file that came before the
//! settings.

mod convert;
mod parse;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Endpoint, InvalidEndpoint};
use toolwarden_model::json::Pointer;
use toolwarden_settings::{FileServer, SampleCall, ServerSettings, Settings, WatchSettings};

use crate::DEFAULT_SCOPE;
use crate::result_pooling::ResultPooling;

/// The servers to watch, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchConfig {
    /// The servers, by name.
    pub servers: BTreeMap<String, WatchedServer>,
}

/// A server to watch, how often, and which changes raise alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedServer {
    /// How to reach it.
    pub source: ToolListSource,
    /// The scope of its pins.
    pub scope: String,
    /// The timeout for requests to it.
    pub timeout: Duration,
    /// Calls to make at every check.
    pub calls: Vec<SampleCall>,
    /// The tools to watch; an empty list means all.
    pub tools: Vec<String>,
    /// The time between two checks.
    pub check_interval: Duration,
    /// The change types that raise alerts.
    pub alert_on: Vec<ToolwatchChangeType>,
    /// How results are collected before they are compared.
    pub pooling: ResultPooling,
}

/// Where the tool definitions of a server come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolListSource {
    /// From the running server.
    Live(Endpoint),
    /// From files that another program writes.
    Files(Vec<PathBuf>),
}

/// What a file that names servers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFileKind {
    /// Settings, YAML or JSON.
    Settings,
    /// The file of an MCP client, with `mcpServers`.
    Client,
    /// A watch configuration in TOML, or the same in JSON, from before the settings had these keys.
    WatchFile,
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum WatchConfigError {
    /// The text is not TOML.
    #[error("not TOML: {message}")]
    Toml {
        /// The parser's message, with the line.
        message: String,
    },
    /// The text is not JSON.
    #[error("not JSON: {message}")]
    Json {
        /// The parser's message, with the line.
        message: String,
    },
    /// A key is not known.
    #[error("{pointer}: unknown key `{key}`{suggestion}")]
    UnknownKey {
        /// The place.
        pointer: Pointer,
        /// The key.
        key: String,
        /// The text that suggests the closest known key.
        suggestion: String,
    },
    /// A value has the wrong type.
    #[error("{pointer}: expected {expected}, found {found}")]
    Type {
        /// The place.
        pointer: Pointer,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
    },
    /// A word is not known.
    #[error("{pointer}: unknown word `{word}`{suggestion}")]
    Word {
        /// The place.
        pointer: Pointer,
        /// The word.
        word: String,
        /// The text that suggests the closest known word.
        suggestion: String,
    },
    /// A server has none, or more than one, of the keys that say how to reach it.
    #[error("{pointer}: a server needs one of `command`, `url` and `files`")]
    Unreachable {
        /// The place.
        pointer: Pointer,
    },
    /// An address or command is invalid.
    #[error("{pointer}: {source}")]
    Endpoint {
        /// The place.
        pointer: Pointer,
        /// Why.
        source: InvalidEndpoint,
    },
    /// An environment variable is not set.
    #[error("{pointer}: the environment variable `{name}` is not set")]
    Unset {
        /// The place.
        pointer: Pointer,
        /// The variable.
        name: String,
    },
    /// A server's name cannot be used in settings.
    #[error(
        "{pointer}: a server's name in settings has 1 to 64 letters, digits, `-` and `_`; rename the server, \
         and pin it again under the new name"
    )]
    ServerName {
        /// The place.
        pointer: Pointer,
    },
    /// The file is not a watch configuration.
    #[error("not a watch configuration from before the settings")]
    NotWatchFile,
    /// The configuration names no servers.
    #[error("no servers: name at least one under `servers`")]
    NoServers,
}

impl WatchConfig {
    /// The servers of the settings, those that are lists in files included.
    ///
    /// # Errors
    /// The settings name no servers.
    pub fn from_settings(settings: &Settings) -> Result<Self, WatchConfigError> {
        let live = settings.servers.iter();
        let live = live.map(|it| (it.name.clone(), WatchedServer::live(it)));
        let files = settings.file_servers.iter();
        let files = files.map(|it| (it.name.clone(), WatchedServer::files(it)));
        Self {
            servers: live.chain(files).collect(),
        }
        .require_servers()
    }

    fn require_servers(self) -> Result<Self, WatchConfigError> {
        if self.servers.is_empty() {
            return Err(WatchConfigError::NoServers);
        }
        Ok(self)
    }
}

impl WatchedServer {
    fn live(server: &ServerSettings) -> Self {
        let source = ToolListSource::Live(server.endpoint.clone());
        Self {
            // One time limit covers the start and the answers of a server.
            timeout: server.timeouts.start.max(server.timeouts.request),
            calls: server.calls.clone(),
            ..Self::new(source, server.scope.as_ref(), &server.watch)
        }
    }

    fn files(server: &FileServer) -> Self {
        let source = ToolListSource::Files(server.files.clone());
        Self::new(source, server.scope.as_ref(), &server.watch)
    }

    fn new(source: ToolListSource, scope: Option<&String>, watch: &WatchSettings) -> Self {
        Self {
            source,
            scope: scope.map_or(DEFAULT_SCOPE, String::as_str).to_owned(),
            timeout: Duration::from_secs(60),
            calls: Vec::new(),
            tools: watch.tools.clone(),
            check_interval: watch.check_interval,
            alert_on: watch.alert_on.clone(),
            pooling: ResultPooling::of_settings(watch),
        }
    }
}

impl ServerFileKind {
    /// What a file is, by its name and content. A file with mistakes is what its name says.
    #[must_use]
    pub fn detect(path: &Path, text: &str) -> Self {
        let extension = path.extension().and_then(|it| it.to_str());
        match extension {
            Some("toml") => return Self::WatchFile,
            Some("yaml" | "yml") => return Self::Settings,
            _ => {}
        }
        if extension == Some("json") || text.trim_start().starts_with('{') {
            return match serde_json::from_str::<Value>(text) {
                Ok(document) if document.get("mcpServers").is_some() => Self::Client,
                Ok(document) if !parse::is_watch_file(&document) => Self::Settings,
                Ok(_) | Err(_) => Self::WatchFile,
            };
        }
        match toml::from_str::<toml::Table>(text) {
            Ok(table) if !table.is_empty() => Self::WatchFile,
            Ok(_) | Err(_) => Self::Settings,
        }
    }
}
