use std::path::PathBuf;

use clap::{Args, ValueEnum};
use toolwarden_canon::FormatChoice;

use super::{CallerPolicy, FailOn, PlainFormat, ReportFormat, source};

/// How definitions are compared.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What callers send
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: CallerPolicy,

    /// Calls that were really made, one JSON object per line, to replay
    ///
    /// `{"tool": "name", "arguments": {…}}`, MCP `tools/call` requests, or tool calls as providers
    /// return them.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,

    /// `format` decides about a value, as for a receiver that checks it
    #[arg(long)]
    pub(crate) assert_formats: bool,
}

/// Where pins are stored, and for which server and scope.
#[derive(Debug, Args)]
pub(crate) struct PinnedArgs {
    /// What the server is called here; never what it calls itself
    ///
    /// Without it, a server goes by the package or program of its command, or by the host and path
    /// of its URL; tools from files belong to `local`.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,

    /// For whom the server was asked: it may show different tools to different principals
    #[arg(long, value_name = "NAME", default_value = toolwarden_watch::DEFAULT_SCOPE, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) scope: String,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,
}

/// Where pins are stored.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
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

    /// Start this MCP server and ask it; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub(crate) mcp_command: Vec<String>,

    /// Ask the MCP server at this address; may be given several times
    #[arg(long, value_name = "URL")]
    pub(crate) mcp_url: Vec<String>,

    /// A header for --mcp-url, as `Name: value`; may be given several times
    #[arg(long = "header", value_name = "HEADER", requires = "mcp_url")]
    pub(crate) headers: Vec<String>,

    /// The servers of this file: a watch configuration, or the `mcpServers` of a client
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Each file is a server of its own, called by the name of the file
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

    /// What tools returned: JSON or JSON Lines in a file, a directory or `-`
    ///
    /// One result per line, or a list of them; as `{"tool": "name", "result": …}`, or bare results
    /// of the tool that --tool or the name of the file names.
    #[arg(long, value_name = "PATH")]
    pub(crate) responses: Vec<PathBuf>,

    /// Calls to make to the live server, one JSON object per line; their results are compared too
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,

    /// Give up on a server after this many seconds [default: 60, or what the configuration says]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
}

/// Who approves, and why.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// The reason, recorded in the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,

    /// Who approves, instead of the user of this process
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

    /// Leave the server open: a check pins further tools when it first sees them
    #[arg(long)]
    pub(crate) open: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// The JSON of the toolwatch program
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

    /// Report an error for what was never pinned, instead of pinning it
    #[arg(long)]
    pub(crate) frozen: bool,

    /// Pin a server that the store does not know, next to the servers that it knows
    ///
    /// The first check of an empty store pins what it sees. Later on, an unknown name is an error
    /// without this option, because it may be a mistyped one.
    #[arg(long, conflicts_with_all = ["frozen", "lock"])]
    pub(crate) new: bool,

    /// Compare results exactly: few of them, the same for the same calls every time
    ///
    /// Without it, results are samples: what differs by chance is not drift, and too few of them are
    /// reported as not measured.
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

    /// The JSON and the rules of the toolwatch program
    #[arg(long)]
    pub(crate) compat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Ids of changes or alerts
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Everything that was seen of this tool; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Everything that is pending
    #[arg(long, conflicts_with_all = ["ids", "tools"])]
    pub(crate) all: bool,

    /// Every change of text, except those of class `trust`
    #[arg(long, conflicts_with_all = ["ids", "tools", "all"])]
    pub(crate) text: bool,

    /// Only of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Only in this scope
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
    /// Seen since then: a time, a date, or an age such as 90m, 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = super::since)]
    pub(crate) since: Option<super::Since>,

    /// Of this severity; several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SEVERITY")]
    pub(crate) severity: Vec<SeverityArg>,

    /// Of this tool; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Of this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// In this status
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<AlertStatusArg>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// The JSON of the toolwatch program
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
    /// Of this server; may be given several times
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
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,

    /// Of this server, where several have a tool of the name
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// In this scope
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
    #[arg(long, conflicts_with_all = ["files", "schema", "mcp_command", "mcp_url", "config"])]
    pub(crate) from_store: bool,

    /// Leave servers open: further tools are not drift
    #[arg(long)]
    pub(crate) open: bool,

    /// The file to write; what it says of other servers stays
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
    /// A watch configuration (TOML or JSON), or the `mcpServers` of a client
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// Check every server once and exit
    #[arg(long)]
    pub(crate) once: bool,

    /// One line per event: text, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}
