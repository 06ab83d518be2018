//! Where tools are looked at, from the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_drift::ChangeType;
use toolwarden_mcp::{Endpoint, Secrets, Url};
use toolwarden_store::ServerKey;
use toolwarden_warden::{LOCAL, Reached, WatchConfig, WatchedCall, server_name};

use crate::args::{PinnedArgs, SourceArgs};
use crate::error::CliError;
use crate::input::expand;

/// How long a server may take where nobody says.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A server and how its tools are seen.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) key: ServerKey,
    pub(super) from: From,
    /// Whether what is seen is everything the server offers, but for tools nobody asked for.
    pub(super) whole: bool,
    pub(super) calls: Vec<WatchedCall>,
    /// The tools a configuration asks for; none means all.
    pub(super) tools: Vec<String>,
    pub(super) alert_on: Vec<ChangeType>,
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub(super) enum From {
    Files(Vec<PathBuf>),
    /// A file with one definition, and what the tool is called.
    Schema(PathBuf, String),
    Live(Endpoint),
}

impl Source {
    /// What it is told that nobody else may read.
    pub(crate) fn secrets(&self) -> Secrets {
        match &self.from {
            From::Live(endpoint) => Secrets::of(endpoint),
            From::Files(_) | From::Schema(..) => Secrets::default(),
        }
    }

    /// Whether it is a list of tools, rather than one definition.
    pub(super) const fn is_list(&self) -> bool {
        !matches!(self.from, From::Schema(..))
    }

    /// Whether it is a list from files without a server name. If it is open, other files may add to it.
    pub(super) fn is_unnamed(&self) -> bool {
        matches!(self.from, From::Files(_)) && self.key.name == LOCAL
    }

    /// The tools that are wanted of it: those of the command line, else those of the configuration.
    pub(super) fn wanted<'s>(&'s self, args: &'s SourceArgs) -> &'s [String] {
        if args.tools.is_empty() {
            &self.tools
        } else {
            &args.tools
        }
    }
}

/// The servers the arguments name.
pub(super) fn sources(args: &SourceArgs, pinned: &PinnedArgs) -> Result<Vec<Source>, CliError> {
    let given = args
        .timeout
        .map(|seconds| Duration::from_secs(seconds.max(1)));
    let timeout = given.unwrap_or(DEFAULT_TIMEOUT);
    if args.mcp_url.len() > 1 && !args.headers.is_empty() {
        return Err(CliError::HeaderForMany);
    }
    let source = |name: &str, from, whole| Source {
        key: ServerKey {
            name: name.to_owned(),
            scope: pinned.scope.clone(),
        },
        from,
        whole,
        calls: Vec::new(),
        timeout,
        tools: Vec::new(),
        alert_on: ChangeType::ALL.to_vec(),
    };
    let named = pinned.server.as_deref();
    let from_stdin = args.files.iter().chain(&args.responses).chain(&args.schema);
    let from_stdin = from_stdin
        .chain(&args.calls)
        .filter(|it| it.as_os_str() == "-");
    if from_stdin.count() > 1 {
        return Err(CliError::TwiceStdin);
    }
    let live = !args.mcp_command.is_empty() || !args.mcp_url.is_empty() || args.config.is_some();
    if args.calls.is_some() && !live {
        return Err(CliError::NobodyToCall);
    }
    let mut sources = Vec::new();
    if let (Some(file), [tool]) = (&args.schema, args.tools.as_slice()) {
        let from = From::Schema(file.clone(), tool.clone());
        sources.push(source(named.unwrap_or(LOCAL), from, false));
    } else if args.schema.is_some() {
        return Err(CliError::OneTool);
    }
    if args.per_file {
        for file in expand(args.files.iter().map(PathBuf::as_path))? {
            let stem = file.file_stem().unwrap_or(file.as_os_str());
            let name = stem.to_string_lossy().into_owned();
            sources.push(source(&name, From::Files(vec![file]), true));
        }
    } else if !args.files.is_empty() {
        let from = From::Files(args.files.clone());
        sources.push(source(named.unwrap_or(LOCAL), from, true));
    }
    for line in &args.mcp_command {
        // Typed by the user, who would start it in the same shell.
        let endpoint = Endpoint::command_line(line)?.with_whole_environment();
        let name = named.map_or_else(|| server_name(&endpoint), ToOwned::to_owned);
        sources.push(source(&name, From::Live(endpoint), true));
    }
    for url in &args.mcp_url {
        let endpoint = with_headers(Endpoint::url(url)?, &args.headers)?;
        let name = named.map_or_else(|| server_name(&endpoint), ToOwned::to_owned);
        sources.push(source(&name, From::Live(endpoint), true));
    }
    if let Some(path) = &args.config {
        let config = config(path)?;
        let (tools, alert_on) = (config.tools, config.alert_on);
        let watched = config.servers.into_iter();
        let watched = watched.filter(|(name, _)| named.is_none_or(|wanted| wanted == name));
        for (name, server) in watched {
            let from = match server.reached {
                Reached::Live(endpoint) => From::Live(endpoint),
                Reached::Files(files) => From::Files(files),
            };
            let mut source = source(&name, from, true);
            source.key.scope = server.scope;
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
    distinct(&sources)?;
    for source in &sources {
        if let From::Live(endpoint) = &source.from {
            endpoint.validate()?;
        }
    }
    Ok(sources)
}

pub(super) fn config(path: &Path) -> Result<WatchConfig, CliError> {
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
    Ok(Endpoint::Url(Url {
        headers: split.collect::<Result<_, _>>()?,
        ..url
    }))
}

/// Two servers of one name would be held to each other's tools.
fn distinct(sources: &[Source]) -> Result<(), CliError> {
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
