use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use toolwarden_canon::FormatChoice;

use super::{
    AlertsArgs, ApproveArgs, BaselineArgs, CheckArgs, CompareArgs, DaemonArgs, ImportArgs,
    InputArgs, ListArgs, LockArgs, PinnedArgs, ReportFormat, ShowArgs, source,
};

#[derive(Debug, Subcommand)]
pub(crate) enum WatchCommand {
    /// Pin tools as they are now
    ///
    /// Reads tools from files, from standard input or from live MCP servers, and stores their
    /// definitions as pins; with --responses also the shape of their results. Earlier pins stay in
    /// the history. Pinning a list, from files or from a live server, seals it: adding or removing
    /// a tool is drift from then on, unless you pass --open.
    #[command(after_help = "\
Examples:
  toolwarden watch baseline --tool get_weather --schema weather.json --version 1.0.0
  toolwarden watch baseline tools.json
  toolwarden watch baseline --mcp-command 'npx -y @playwright/mcp@0.0.40'
  toolwarden watch baseline --mcp-url http://localhost:8000/mcp --server search
  toolwarden watch baseline --config .mcp.json
  toolwarden watch baseline tools.json --responses results/")]
    Baseline(BaselineArgs),

    /// Compare tools with their pins
    ///
    /// The first check with an empty store pins the tools, unless you pass --frozen or --lock.
    /// Later, an added tool is drift, a removed tool is breaking, and a changed text that a model
    /// reads fails until you approve it. A check never changes an existing pin.
    #[command(after_help = "\
Examples:
  toolwarden watch check --tool get_weather --schema weather.json
  toolwarden watch check --frozen --format github tools.json
  toolwarden watch check --lock toolwarden.lock --mcp-command 'npx -y @playwright/mcp'
  toolwarden watch check --config .mcp.json
  toolwarden watch check tools.json --allow text
  toolwarden watch check tools.json --responses results.jsonl --fail-on any
  toolwarden watch check tools.json --responses fixtures/ --fixtures")]
    Check(CheckArgs),

    /// Approve drift: pin what was last observed
    ///
    /// Without ids or options, lists all pending changes. The approval of a single change, by its
    /// id, is valid only while the definition stays equivalent.
    #[command(after_help = "\
Examples:
  toolwarden watch approve
  toolwarden watch approve --tool browser_click --reason 'ref was renamed, agents are updated'
  toolwarden watch approve 5f0c1d2e3a4b --reason 'reviewed'
  toolwarden watch approve --text --server browser --reason 'read them'
  toolwarden watch approve --all --server browser --reason 'release 0.0.41'")]
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

    /// Show the pin of a tool
    #[command(after_help = "\
Examples:
  toolwarden watch show browser_click
  toolwarden watch show get_weather --format json")]
    Show(ShowArgs),

    /// Show all pins of a tool, and who approved them
    #[command(after_help = "\
Examples:
  toolwarden watch history browser_click
  toolwarden watch history get_weather --format json")]
    History(ShowArgs),

    /// Write the pins of tools to a file for git
    ///
    /// Reads tools as `baseline` does, or takes the pins of the store, and writes toolwarden.lock:
    /// sorted, one member per line, so that you can review and merge it like code. `watch check
    /// --lock` needs no other file.
    #[command(after_help = "\
Examples:
  toolwarden watch lock tools.json
  toolwarden watch lock --config .mcp.json
  toolwarden watch lock --from-store --output toolwarden.lock")]
    Lock(LockArgs),

    /// Import the files of the toolwatch program
    ///
    /// Reads baselines.json and alerts.json. The first check of each tool pins its definition if
    /// the old hash matches, and raises an alert if not. You need not approve a tool again.
    #[command(after_help = "\
Examples:
  toolwarden watch import
  toolwarden watch import ~/.aumai/toolwatch --store watch.db")]
    Import(ImportArgs),

    /// Check servers periodically
    ///
    /// Checks each server of the settings on its own schedule, with backoff while it does not answer.
    /// Stops on SIGINT or SIGTERM.
    #[command(after_help = "\
Examples:
  toolwarden watch daemon
  toolwarden watch daemon toolwarden.yaml --format json >> drift.jsonl
  toolwarden watch daemon --config .mcp.json --once

Settings:
  watch:
    every: 5m
    alert_on: [schema_change, behavior_change, response_change]
  servers:
    browser: npx -y @playwright/mcp
    search:
      url: http://localhost:8000/mcp
      headers: {Authorization: \"Bearer ${SEARCH_TOKEN}\"}
      calls:                      # made at every check; results feed the shape
        - {tool: search, arguments: {query: rust}}")]
    Daemon(DaemonArgs),

    /// Compare two versions of tools
    ///
    /// Reads one tool or a list of tools from each file, in any format `canon` reads. Tools are
    /// matched by name; renames are detected. Each change is reported with its place and what it
    /// means: `breaking` with a call that worked and fails now, `ignored` with a call that loses a
    /// value, `trust` (less caution is asked for, or added words bring an address, an instruction, a
    /// secret or another tool's name, or lift a restriction), `text`, `behavioural` (a call may have
    /// another effect), `widened`, `added`, `structural`, `info`, `equivalent`, or `unknown`.
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

    /// Find hidden text and prompt injection in tool definitions
    ///
    /// Reads every string of every definition, including names of properties. Finds invisible and
    /// reordering characters, terminal escapes, names that imitate others, references to tools of
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
    /// The old tools: a file, `-`, a lock file, or `@` for the pins
    ///
    /// `@` and `@pinned` are the pins of the tools of --server, `@seen` their last observation, `@1.0.0`
    /// the pins of that version.
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The new tools, in the same notation
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    #[command(flatten)]
    pub(crate) pinned: PinnedArgs,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Read definitions as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: FormatChoice,

    #[command(flatten)]
    pub(crate) compare: CompareArgs,

    /// Exit with 1 on drift of this class; several with commas or by repeating
    ///
    /// [default: breaking, trust, unknown, ignored, default]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CLASS")]
    pub(crate) fail_on: Vec<FailOn>,

    /// Do not fail on drift of this class; several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CLASS")]
    pub(crate) allow: Vec<FailOn>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallerPolicy {
    /// Only keys the old schema declares
    #[default]
    Declared,
    /// Anything that the old schema accepts
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A call that worked is rejected now, or the tool is gone
    Breaking,
    /// A hint asks for less caution, or added words deserve a look
    Trust,
    /// The meaning of a change could not be established
    Unknown,
    /// An argument is still accepted and no longer read
    Ignored,
    /// A tool that the pinned list did not have
    #[value(alias = "new")]
    Added,
    /// Text that a model reads changed
    Text,
    /// The default of a switch, or of a tool that is not read-only, changed
    Default,
    /// A call may have another effect: defaults, the order of values
    Behavioural,
    /// More is accepted than before
    Widened,
    /// The tool now declares a shape for its results
    Structural,
    /// The definition says something that changes nothing
    Info,
    /// The same contract in other words
    Equivalent,
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
    pub(crate) weight: MinWeight,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MinWeight {
    /// Everything; honest tools look like this too
    Low,
    /// Rare in honest tools
    #[default]
    Medium,
    /// Nothing legitimate looks like this
    High,
}
