use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use toolwarden_canon::Source;

use super::{InputArgs, PlainFormat, ReportFormat, source};

#[derive(Debug, Subcommand)]
pub(crate) enum WatchCommand {
    /// Pin tools as they are now
    ///
    /// Reads tools from files, from standard input or from live MCP servers, and keeps their
    /// definitions, with --responses the shape of their results too, as what they are held to.
    /// What was pinned before is remembered. A list that is read as a whole seals its server: a
    /// further tool is drift from then on.
    #[command(after_help = "\
Examples:
  toolwarden watch baseline --tool get_weather --schema weather.json --version 1.0.0
  toolwarden watch baseline tools.json
  toolwarden watch baseline --mcp-command 'npx -y @playwright/mcp@0.0.40'
  toolwarden watch baseline --mcp-url http://localhost:8000/mcp --server search
  toolwarden watch baseline --config .mcp.json
  toolwarden watch baseline tools.json --responses results/")]
    Baseline(BaselineArgs),

    /// Compare tools with what is pinned
    ///
    /// A tool that was never pinned is pinned now, unless --frozen or --lock say that everything
    /// must have been. What is pinned is never changed by this: drift is an alert until somebody
    /// approves it.
    #[command(after_help = "\
Examples:
  toolwarden watch check --tool get_weather --schema weather.json
  toolwarden watch check --frozen --format github tools.json
  toolwarden watch check --lock toolwarden.lock --mcp-command 'npx -y @playwright/mcp'
  toolwarden watch check --config .mcp.json
  toolwarden watch check tools.json --responses results.jsonl --fail-on any")]
    Check(CheckArgs),

    /// Approve drift: what was seen last is what tools are held to from now on
    ///
    /// Without anything to approve, shows what waits. A single change is approved by its id; it
    /// stays approved only while the tool means the same.
    #[command(after_help = "\
Examples:
  toolwarden watch approve
  toolwarden watch approve --tool browser_click --why 'ref was renamed, agents are updated'
  toolwarden watch approve 5f0c1d2e3a4b --why 'reviewed'
  toolwarden watch approve --all --server browser --why 'release 0.0.41'")]
    Approve(ApproveArgs),

    /// Show alerts
    #[command(after_help = "\
Examples:
  toolwarden watch alerts --status open
  toolwarden watch alerts --since 7d --severity high
  toolwarden watch alerts --format json --tool get_weather")]
    Alerts(AlertsArgs),

    /// List pinned tools
    #[command(after_help = "\
Examples:
  toolwarden watch list
  toolwarden watch list --server browser --format json")]
    List(ListArgs),

    /// Show what a tool is held to
    #[command(after_help = "\
Examples:
  toolwarden watch show browser_click
  toolwarden watch show get_weather --format json")]
    Show(ShowArgs),

    /// Show everything a tool was ever held to, and who approved it
    #[command(after_help = "\
Examples:
  toolwarden watch history browser_click
  toolwarden watch history get_weather --format json")]
    History(ShowArgs),

    /// Write what tools are held to into a file for git
    ///
    /// Reads tools as `baseline` does, or takes what the store holds, and writes toolwarden.lock:
    /// sorted, one member per line, to be reviewed and merged like code. `watch check --lock` needs
    /// nothing else.
    #[command(after_help = "\
Examples:
  toolwarden watch lock tools.json
  toolwarden watch lock --config .mcp.json
  toolwarden watch lock --from-store --output toolwarden.lock")]
    Lock(LockArgs),

    /// Take over the files of the toolwatch program
    ///
    /// Reads baselines.json and alerts.json. The first check of each tool adopts its definition if
    /// the old hash fits it, and alerts if not; nothing has to be approved again.
    #[command(after_help = "\
Examples:
  toolwarden watch import
  toolwarden watch import ~/.aumai/toolwatch --store watch.db")]
    Import(ImportArgs),

    /// Check servers again and again
    ///
    /// Reads servers, `tools`, `check_interval_seconds` and `alert_on` from a file, and checks each
    /// server at its own time, later and later while it does not answer. Ends at SIGINT or SIGTERM.
    #[command(after_help = "\
Examples:
  toolwarden watch daemon --config watch.toml
  toolwarden watch daemon --config watch.toml --format json >> drift.jsonl
  toolwarden watch daemon --config .mcp.json --once

A configuration:
  check_interval_seconds = 300
  alert_on = [\"schema_change\", \"behavior_change\", \"response_change\"]
  tools = []                      # all

  [servers.browser]
  command = \"npx\"
  args = [\"-y\", \"@playwright/mcp\"]

  [servers.search]
  url = \"http://localhost:8000/mcp\"
  headers = { Authorization = \"Bearer ${SEARCH_TOKEN}\" }

  [[servers.search.calls]]        # made at every check; results feed the shape
  tool = \"search\"
  arguments = { query = \"rust\" }")]
    Daemon(DaemonArgs),

    /// Compare two versions of tools
    ///
    /// Reads one tool or a list of tools from each file, in any format `canon` reads. Tools are
    /// matched by name; what was renamed is found. Each change is told with its place and what it
    /// means: `breaking` with a call that worked and fails now, `widened`, `equivalent`,
    /// `behavioural` (a model may act differently), `trust` (less caution is asked for, or the text
    /// turned against its reader), `structural`, or `unknown`.
    #[command(after_help = "\
Examples:
  toolwarden watch diff old.json new.json
  toolwarden watch diff --tool browser_click v1.json v2.json
  toolwarden watch diff --policy open --fail-on any old.json new.json
  toolwarden watch diff --observed calls.jsonl old.json new.json
  toolwarden watch diff @1.0.0 @pinned --server browser
  toolwarden watch diff toolwarden.lock tools.json
  curl -s localhost:8000/tools | toolwarden watch diff pinned.json -")]
    Diff(DiffArgs),

    /// Find what hides in the text of tools
    ///
    /// Looks at every string of every definition, names of properties included: invisible and
    /// reordering characters, terminal escapes, names that pass for others, references to tools of
    /// other servers, instructions to the model, and annotations that contradict the tool. Each
    /// file counts as one server.
    #[command(after_help = "\
Examples:
  toolwarden watch scan tools.json
  toolwarden watch scan --weight low 'servers/*.json'
  toolwarden watch scan --format sarif tools.json > findings.sarif")]
    Scan(ScanArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The tools as they were: a file, `-`, a lock file, or `@` for what is pinned
    ///
    /// `@` and `@pinned` are what the tools of --server are held to, `@seen` what was last seen of
    /// them, `@1.0.0` what was pinned under that version.
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The tools as they are now, in the same ways
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    #[command(flatten)]
    pub(crate) pinned: PinnedArgs,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Take definitions for this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: Source,

    #[command(flatten)]
    pub(crate) compare: CompareArgs,

    /// Exit with 1 on drift of this class; several with commas or by repeating
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "CLASS",
        default_values_t = [FailOn::Breaking, FailOn::Trust, FailOn::Unknown]
    )]
    pub(crate) fail_on: Vec<FailOn>,

    /// The shape of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallerPolicy {
    /// Only keys the old schema declares
    #[default]
    Declared,
    /// Whatever the old schema accepts
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Breaking,
    Widened,
    Trust,
    Structural,
    Behavioural,
    Unknown,
    /// A tool that was not there when its server was sealed
    New,
    /// Any drift at all
    Any,
    /// No drift; only mistakes fail
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Report findings of at least this weight
    #[arg(long, value_enum, default_value_t)]
    pub(crate) weight: LeastWeight,

    /// The shape of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeastWeight {
    /// Everything; honest tools look like this too
    Low,
    /// What is rare in honest tools
    #[default]
    Medium,
    /// What nothing legitimate looks like
    High,
}

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

/// Where pinned tools are kept, and whose they are.
#[derive(Debug, Args)]
pub(crate) struct PinnedArgs {
    /// What the server is called here; never what it calls itself
    ///
    /// Without it, a server goes by the package or program of its command, or by the host and path
    /// of its URL; tools from files belong to `local`.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,

    /// For whom the server was asked: it may show different tools to different principals
    #[arg(long, value_name = "NAME", default_value = toolwarden_warden::DEFAULT_SCOPE, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) scope: String,

    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
}

/// Where tools are looked at.
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

    /// Take definitions for this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: Source,

    /// The label of the version that is looked at
    #[arg(long, value_name = "VERSION", default_value = toolwarden_warden::UNKNOWN_VERSION)]
    pub(crate) version: String,

    /// What tools returned: JSON or JSON Lines in a file, a directory or `-`
    ///
    /// One result per line, or a list of them; as `{"tool": "name", "result": …}`, or bare results
    /// of the tool that --tool or the name of the file names.
    #[arg(long, value_name = "PATH")]
    pub(crate) responses: Vec<PathBuf>,

    /// Calls to make of the live server, one JSON object per line; their results are looked at too
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,

    /// Give up on a server after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}

/// Who approves, and why.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// Why, for whoever reads the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,

    /// Who, instead of the user of this process
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

    /// Leave the server open: further tools are pinned when they are first seen
    #[arg(long)]
    pub(crate) open: bool,

    /// The shape of the result
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

    /// Hold tools to this lock file instead of the store; nothing is kept
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub(crate) lock: Option<PathBuf>,

    /// What was never pinned is an error instead of being pinned
    #[arg(long)]
    pub(crate) frozen: bool,

    /// Exit with 1 on drift of this class; several with commas or by repeating
    ///
    /// [default: breaking, trust, unknown, new; with --compat any]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CLASS")]
    pub(crate) fail_on: Vec<FailOn>,

    /// The shape of the report
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

    /// Everything that waits
    #[arg(long, conflicts_with_all = ["ids", "tools"])]
    pub(crate) all: bool,

    /// Only of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Only in this scope
    #[arg(long, value_name = "NAME")]
    pub(crate) scope: Option<String>,

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,

    /// The shape of the result
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
    pub(crate) severity: Vec<SeverityWord>,

    /// Of this tool; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Of this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// In this status
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<StatusWord>,

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The shape of the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// The JSON of the toolwatch program
    #[arg(long)]
    pub(crate) compat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeverityWord {
    Low,
    Medium,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusWord {
    /// The tool is still not as it was pinned
    Open,
    /// Somebody approved it
    Approved,
    /// The tool is as pinned again, or drifted further
    Closed,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The shape of the result
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

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The shape of the result
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

    /// Take what the store holds instead of looking at tools
    #[arg(long, conflicts_with_all = ["files", "schema", "mcp_command", "mcp_url", "config"])]
    pub(crate) from_store: bool,

    /// Leave servers open: further tools are no drift
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

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The shape of the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// A watch configuration (TOML or JSON), or the `mcpServers` of a client
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,

    /// The store to use instead of the one in the user's data directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// Check every server once and end
    #[arg(long)]
    pub(crate) once: bool,

    /// One line per event: text, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}
