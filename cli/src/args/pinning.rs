use std::path::PathBuf;

use clap::{Args, ValueEnum};
use toolwarden_canon::FormatChoice;

use super::{CallerPolicy, FailOn, PlainFormat, ReportFormat, source};

/// How definitions are compared.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Which arguments callers send
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: CallerPolicy,

    /// Recorded calls to replay, one JSON object per line
    ///
    /// `{"tool": "name", "arguments": {…}}`, MCP `tools/call` requests, or tool calls as providers
    /// return them.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,

    /// Treat `format` as a constraint, as a receiver that validates it does
    #[arg(long)]
    pub(crate) assert_formats: bool,
}

/// Where pins are stored, and for which server and scope.
#[derive(Debug, Args)]
pub(crate) struct PinnedArgs {
    /// The name of the server here; never the name it gives itself
    ///
    /// By default the package or program of its command, or the host and path of its URL; tools
    /// from files belong to `local`.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,

    /// The scope, if principals see different tools
    #[arg(long, value_name = "NAME", default_value = toolwarden_watch::DEFAULT_SCOPE, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) scope: String,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,
}

/// Where pins are stored.
#[derive(Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The settings whose store and servers to use
    ///
    /// Commands that ask servers also read the `mcpServers` of a client from this file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl StoreArgs {
    /// The store at this path, or the default one.
    pub(crate) fn at(store: Option<&PathBuf>) -> Self {
        Self {
            store: store.cloned(),
            config: None,
        }
    }
}

/// Where tools are read from.
#[derive(Debug, Default, Args)]
pub(crate) struct SourceArgs {
    /// Files, directories or globs to read; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// A file with one definition, which --tool names
    #[arg(long, value_name = "FILE", requires = "tools", conflicts_with_all = ["files", "mcp_command", "mcp_url", "config", "per_file"])]
    pub(crate) schema: Option<PathBuf>,

    /// Start this MCP server and list its tools; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub(crate) mcp_command: Vec<String>,

    /// List the tools of the MCP server at this URL; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) mcp_url: Vec<String>,

    /// A header for --mcp-url, as `Name: value`; may be given several times
    #[arg(long = "header", value_name = "HEADER", requires = "mcp_url")]
    pub(crate) headers: Vec<String>,

    /// Treat each file as a server of its own, named after the file
    #[arg(long, conflicts_with = "server")]
    pub(crate) per_file: bool,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Read definitions as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: FormatChoice,

    /// The version label of the tools that are read
    #[arg(long, value_name = "VERSION", default_value = toolwarden_watch::UNKNOWN_VERSION)]
    pub(crate) version: String,

    /// Results of tools: JSON or JSON Lines in a file, a directory or `-`
    ///
    /// One result per line, or a list of them; as `{"tool": "name", "result": …}`, or bare results
    /// of the tool that --tool or the name of the file names.
    #[arg(long, value_name = "PATH")]
    pub(crate) responses: Vec<PathBuf>,

    /// Calls to make to the live server, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,

    /// The timeout of a server: 90, 90s or 2m [default: 60s, or as configured]
    #[arg(long, value_name = "TIME", value_parser = super::timeout)]
    pub(crate) timeout: Option<std::time::Duration>,
}

/// Who approves, and why.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// The reason, recorded in the history
    #[arg(long = "reason", alias = "why", value_name = "TEXT")]
    pub(crate) why: Option<String>,

    /// The name of the approver, instead of the user of this process
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) pinned: PinnedArgs,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,

    /// Leave the server open: a check pins each new tool it sees
    #[arg(long)]
    pub(crate) open: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// Print the JSON of the toolwatch program
    #[arg(long)]
    pub(crate) compat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) pinned: PinnedArgs,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,

    /// Compare tools with this lock file instead of the store; store nothing
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub(crate) lock: Option<PathBuf>,

    /// Report an unpinned tool as an error, instead of pinning it
    #[arg(long)]
    pub(crate) frozen: bool,

    /// Pin a server that the store does not know, next to the servers that it knows
    ///
    /// The first check with an empty store pins the tools it sees. Later, an unknown name is an
    /// error without this option, because it may be mistyped.
    #[arg(long, conflicts_with_all = ["frozen", "lock"])]
    pub(crate) new: bool,

    /// Compare results exactly, for a few calls with reproducible results
    ///
    /// Without it, results are random samples: a difference that chance explains is not drift, and
    /// too few results are reported as not measured.
    #[arg(long)]
    pub(crate) fixtures: bool,

    /// Exit with 1 on drift of this class; several with commas or by repeating
    ///
    /// [default: breaking, trust, unknown, ignored, added, text, default; with --compat any]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CLASS")]
    pub(crate) fail_on: Vec<FailOn>,

    /// Do not fail on drift of this class; several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CLASS")]
    pub(crate) allow: Vec<FailOn>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,

    /// Use the JSON and the rules of the toolwatch program
    #[arg(long)]
    pub(crate) compat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Ids of changes or alerts
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Approve all changes of this tool; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Approve all pending changes
    #[arg(long, conflicts_with_all = ["ids", "tools"])]
    pub(crate) all: bool,

    /// Approve all text changes, except those of class `trust`
    #[arg(long, conflicts_with_all = ["ids", "tools", "all"])]
    pub(crate) text: bool,

    /// Only changes of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Only changes in this scope
    #[arg(long, value_name = "NAME")]
    pub(crate) scope: Option<String>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    /// Only alerts since then: a time, a date, or an age such as 90m, 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = super::since)]
    pub(crate) since: Option<super::Since>,

    /// Only alerts of this severity; several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SEVERITY")]
    pub(crate) severity: Vec<SeverityArg>,

    /// Only alerts of this tool; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Only this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// Only alerts in this status
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<AlertStatusArg>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// Print the JSON of the toolwatch program
    #[arg(long)]
    pub(crate) compat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeverityArg {
    Low,
    Medium,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlertStatusArg {
    /// The tool still does not match its pin
    Open,
    /// An operator approved it
    Approved,
    /// The tool matches its pin again, or drifted further
    Closed,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The name of the tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,

    /// The server, if several have a tool of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// The scope of the server
    #[arg(long, value_name = "NAME")]
    pub(crate) scope: Option<String>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) pinned: PinnedArgs,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,

    /// Use the pins in the store instead of reading tools
    #[arg(long, conflicts_with_all = ["files", "schema", "mcp_command", "mcp_url"])]
    pub(crate) from_store: bool,

    /// Leave servers open: further tools are not drift
    #[arg(long)]
    pub(crate) open: bool,

    /// The file to write; entries of other servers stay
    #[arg(long, value_name = "FILE", default_value = "toolwarden.lock")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The directory with baselines.json and alerts.json
    ///
    /// [default: ~/.aumai/toolwatch]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The settings, or the `mcpServers` of a client [default: toolwarden.yaml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// Check every server once and exit
    #[arg(long)]
    pub(crate) once: bool,

    /// One line per event: text, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}
