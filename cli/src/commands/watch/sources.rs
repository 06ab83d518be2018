//! Where tools are read from, according to the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Endpoint, McpError, Secrets, ServerUrl};
use toolwarden_settings::Settings;
use toolwarden_store::ServerKey;
use toolwarden_watch::{
    LOCAL_SERVER, ResultPooling, SampleCall, ServerFileKind, ToolListSource, WatchConfig,
    WatchedServer, server_name,
};

use crate::args::{PinnedArgs, SourceArgs};
use crate::commands::gateway::load_settings;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::input::expand_paths;
use crate::style::{self, escape_controls};

/// How long a server may take by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A server and how its tools are seen.
#[derive(Debug)]
pub(crate) struct WatchSource {
    pub(crate) key: ServerKey,
    pub(super) kind: SourceKind,
    /// Whether what is seen is everything the server offers, except tools that were not requested.
    pub(super) is_complete: bool,
    /// Whether a configuration names it.
    pub(super) is_configured: bool,
    pub(super) calls: Vec<SampleCall>,
    /// The tools a configuration asks for; none means all.
    pub(super) tools: Vec<String>,
    pub(super) alert_on: Vec<ToolwatchChangeType>,
    /// How results are collected before they are compared, by the daemon.
    pub(super) pooling: ResultPooling,
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub(super) enum SourceKind {
    Files(Vec<PathBuf>),
    /// A file with one definition, and what the tool is called.
    Schema(PathBuf, String),
    Live(Endpoint),
}

impl WatchSource {
    /// A server of a configuration.
    pub(super) fn configured(name: &str, server: WatchedServer) -> Self {
        Self {
            key: ServerKey {
                name: name.to_owned(),
                scope: server.scope,
            },
            kind: match server.source {
                ToolListSource::Live(endpoint) => SourceKind::Live(endpoint),
                ToolListSource::Files(files) => SourceKind::Files(files),
            },
            is_complete: true,
            is_configured: true,
            calls: server.calls,
            timeout: server.timeout,
            tools: server.tools,
            alert_on: server.alert_on,
            pooling: server.pooling,
        }
    }

    /// The secrets that are sent to the server.
    pub(crate) fn secrets(&self) -> Secrets {
        match &self.kind {
            SourceKind::Live(endpoint) => endpoint.secrets(),
            SourceKind::Files(_) | SourceKind::Schema(..) => Secrets::default(),
        }
    }

    /// The error of a request to the server.
    pub(super) fn live_error(&self, error: McpError) -> CliError {
        if let McpError::Endpoint(error) = error {
            return CliError::Endpoint(error);
        }
        CliError::Live {
            server: self.key.name.clone(),
            source: Box::new(error),
            secrets: self.secrets(),
        }
    }

    /// Whether it is a list of tools, rather than one definition.
    pub(super) const fn is_list(&self) -> bool {
        !matches!(self.kind, SourceKind::Schema(..))
    }

    /// Whether it is a list from files without a server name. If it is open, other files may add to it.
    pub(super) fn is_unnamed(&self) -> bool {
        matches!(self.kind, SourceKind::Files(_)) && self.key.name == LOCAL_SERVER
    }

    /// The tools that are wanted of it: those of the command line, else those of the configuration.
    pub(super) fn requested_tools<'s>(&'s self, args: &'s SourceArgs) -> &'s [String] {
        if args.tools.is_empty() {
            &self.tools
        } else {
            &args.tools
        }
    }
}

/// The servers the arguments name.
pub(super) fn tool_sources(
    args: &SourceArgs,
    pinned: &PinnedArgs,
) -> Result<Vec<WatchSource>, CliError> {
    let given = args.timeout;
    let timeout = given.unwrap_or(DEFAULT_TIMEOUT);
    if args.mcp_url.len() > 1 && !args.headers.is_empty() {
        return Err(CliError::HeaderForMany);
    }
    let source = |name: &str, from, whole| WatchSource {
        key: ServerKey {
            name: name.to_owned(),
            scope: pinned.scope.clone(),
        },
        kind: from,
        is_complete: whole,
        is_configured: false,
        calls: Vec::new(),
        timeout,
        tools: Vec::new(),
        alert_on: ToolwatchChangeType::ALL.to_vec(),
        pooling: ResultPooling::default(),
    };
    let named = pinned.server.as_deref();
    let from_stdin = args.files.iter().chain(&args.responses).chain(&args.schema);
    let from_stdin = from_stdin
        .chain(&args.calls)
        .filter(|it| it.as_os_str() == "-");
    if from_stdin.count() > 1 {
        return Err(CliError::DuplicateStdin);
    }
    let config = pinned.kept.config.as_deref();
    let live = !args.mcp_command.is_empty() || !args.mcp_url.is_empty() || config.is_some();
    if args.calls.is_some() && !live {
        return Err(CliError::NoLiveServer);
    }
    let mut sources = Vec::new();
    if let (Some(file), [tool]) = (&args.schema, args.tools.as_slice()) {
        let from = SourceKind::Schema(file.clone(), tool.clone());
        sources.push(source(named.unwrap_or(LOCAL_SERVER), from, false));
    } else if args.schema.is_some() {
        return Err(CliError::OneTool);
    }
    if args.per_file {
        for file in expand_paths(args.files.iter().map(PathBuf::as_path))? {
            let stem = file.file_stem().unwrap_or(file.as_os_str());
            let name = stem.to_string_lossy().into_owned();
            sources.push(source(&name, SourceKind::Files(vec![file]), true));
        }
    } else if !args.files.is_empty() {
        let from = SourceKind::Files(args.files.clone());
        sources.push(source(named.unwrap_or(LOCAL_SERVER), from, true));
    }
    for line in &args.mcp_command {
        // Typed by the user, who would start it in the same shell.
        let endpoint = Endpoint::command_line(line)?.with_whole_environment();
        let name = named.map_or_else(|| server_name(&endpoint), ToOwned::to_owned);
        sources.push(source(&name, SourceKind::Live(endpoint), true));
    }
    for url in &args.mcp_url {
        let endpoint = with_headers(Endpoint::url(url)?, &args.headers)?;
        let name = named.map_or_else(|| server_name(&endpoint), ToOwned::to_owned);
        sources.push(source(&name, SourceKind::Live(endpoint), true));
    }
    if let Some(path) = config {
        let watched = load_servers(path)?.servers.into_iter();
        let watched = watched.filter(|(name, _)| named.is_none_or(|wanted| wanted == name));
        for (name, server) in watched {
            let mut source = WatchSource::configured(&name, server);
            source.timeout = given.unwrap_or(source.timeout);
            sources.push(source);
        }
        if let Some(name) = named.filter(|_| sources.is_empty()) {
            return Err(CliError::NoSuchServer {
                name: name.to_owned(),
                suggestion: String::new(),
            });
        }
    }
    if sources.is_empty() {
        return Err(CliError::NoSource);
    }
    require_distinct(&sources)?;
    for source in &sources {
        if let SourceKind::Live(endpoint) = &source.kind {
            endpoint.validate()?;
        }
    }
    Ok(sources)
}

/// The servers of a file: settings, the file of a client, or a watch configuration in TOML.
pub(super) fn load_servers(path: &Path) -> Result<WatchConfig, CliError> {
    let failed = |source| CliError::Config {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let text = match server_file(path)? {
        (ServerFileKind::Settings, _) => {
            let settings = load_settings(path)?.settings;
            return WatchConfig::from_settings(&settings).map_err(failed);
        }
        (ServerFileKind::Client, text) => text,
        (ServerFileKind::WatchFile, text) => {
            let (warning, name) = (style::WARNING, path.display().to_string());
            let name = escape_controls(&name);
            print_status(&format!(
                "{warning}Warning{warning:#}: {name} is in the format from before the settings; \
                 `toolwarden config convert {name} > {}` converts it",
                Settings::FILE
            ));
            text
        }
    };
    let variable = |name: &str| std::env::var(name).ok();
    WatchConfig::parse(path, &text, &variable).map_err(failed)
}

/// The store of a file with servers, if the file is settings.
pub(super) fn settings_store(path: &Path) -> Result<Option<PathBuf>, CliError> {
    match server_file(path)? {
        (ServerFileKind::Settings, _) => Ok(Some(load_settings(path)?.settings.store)),
        (ServerFileKind::Client | ServerFileKind::WatchFile, _) => Ok(None),
    }
}

fn server_file(path: &Path) -> Result<(ServerFileKind, String), CliError> {
    match toolwarden_files::read_to_string(path) {
        Ok(text) => Ok((ServerFileKind::detect(path, &text), text)),
        // Reading it as settings reports how to make them.
        Err(_) if path == Path::new(Settings::FILE) => {
            Ok((ServerFileKind::Settings, String::new()))
        }
        Err(source) => Err(CliError::Read {
            place: path.to_owned(),
            source,
        }),
    }
}

fn with_headers(endpoint: Endpoint, headers: &[String]) -> Result<Endpoint, CliError> {
    let Endpoint::Url(url) = endpoint else {
        return Ok(endpoint);
    };
    let split = headers.iter().map(|header| {
        let pair = header.split_once(':');
        let pair = pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        pair.ok_or(CliError::Header)
    });
    Ok(Endpoint::Url(ServerUrl {
        headers: split.collect::<Result<_, _>>()?,
        ..url
    }))
}

/// Two servers of one name would be compared with each other's pins.
fn require_distinct(sources: &[WatchSource]) -> Result<(), CliError> {
    let mut keys: Vec<&ServerKey> = sources.iter().map(|source| &source.key).collect();
    keys.sort_unstable();
    let twice = keys.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    });
    match twice {
        Some(key) => Err(CliError::SameServer {
            name: key.name.clone(),
        }),
        None => Ok(()),
    }
}
