//! Where tools are read from, according to the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::{Endpoint, McpError, Secrets, ServerUrl};
use toolwarden_store::ServerKey;
use toolwarden_watch::{LOCAL_SERVER, ToolListSource, WatchConfig, WatchedCall, server_name};

use crate::args::{PinnedArgs, SourceArgs};
use crate::error::CliError;
use crate::input::expand_paths;

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
    pub(super) calls: Vec<WatchedCall>,
    /// The tools a configuration asks for; none means all.
    pub(super) tools: Vec<String>,
    pub(super) alert_on: Vec<ToolwatchChangeType>,
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
    let given = args
        .timeout
        .map(|seconds| Duration::from_secs(seconds.max(1)));
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
    };
    let named = pinned.server.as_deref();
    let from_stdin = args.files.iter().chain(&args.responses).chain(&args.schema);
    let from_stdin = from_stdin
        .chain(&args.calls)
        .filter(|it| it.as_os_str() == "-");
    if from_stdin.count() > 1 {
        return Err(CliError::DuplicateStdin);
    }
    let live = !args.mcp_command.is_empty() || !args.mcp_url.is_empty() || args.config.is_some();
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
    if let Some(path) = &args.config {
        let config = load_config(path)?;
        let (tools, alert_on) = (config.tools, config.alert_on);
        let watched = config.servers.into_iter();
        let watched = watched.filter(|(name, _)| named.is_none_or(|wanted| wanted == name));
        for (name, server) in watched {
            let from = match server.source {
                ToolListSource::Live(endpoint) => SourceKind::Live(endpoint),
                ToolListSource::Files(files) => SourceKind::Files(files),
            };
            let mut source = source(&name, from, true);
            source.key.scope = server.scope;
            source.is_configured = true;
            source.calls = server.calls;
            source.timeout = given.unwrap_or(server.timeout);
            source.tools.clone_from(&tools);
            source.alert_on.clone_from(&alert_on);
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

pub(super) fn load_config(path: &Path) -> Result<WatchConfig, CliError> {
    let text = toolwarden_files::read_to_string(path).map_err(|source| CliError::Read {
        place: path.to_owned(),
        source,
    })?;
    let variable = |name: &str| std::env::var(name).ok();
    WatchConfig::parse(path, &text, &variable).map_err(|source| CliError::Config {
        path: path.to_owned(),
        source: Box::new(source),
    })
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
