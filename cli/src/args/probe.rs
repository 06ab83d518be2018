use std::num::{NonZeroU8, NonZeroU32};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{PlainFormat, ProbeInitArgs, ProbeReportArgs, ReportFormat};

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Draft a suite for your tools, to edit and run
    ///
    /// Writes YAML with cases for each tool: a typical call, optional arguments, enums, nested
    /// arguments, parallel calls, a refusal, two tools at once, and a second turn after a result.
    #[command(after_help = "\
Examples:
  toolwarden probe init tools.json -o suite.yaml
  toolwarden probe init --mcp-command 'npx -y @playwright/mcp' --tool browser_click -o suite.yaml
  toolwarden probe init --lock toolwarden.lock -o suite.yaml
  toolwarden audit export | toolwarden probe init tools.json --calls - -o suite.yaml")]
    Init(ProbeInitArgs),

    /// Run a suite with one provider, and save how its model called the tools
    #[command(after_help = "\
Without keys, --from-fixtures shows a recorded-style answer of deepseek, qwen, kimi, glm or minimax.

Examples:
  toolwarden probe snapshot --provider deepseek --from-fixtures
  toolwarden probe snapshot --provider deepseek --suite suite.yaml -o snapshots/deepseek.json
  toolwarden probe snapshot --provider local --base-url http://127.0.0.1:8000/v1 --model my-model
  toolwarden probe snapshot --provider qwen --repeat 20 --mode stream --mode nonstream --capture raw/")]
    Snapshot(SnapshotArgs),

    /// Compare two snapshots, without any network
    #[command(after_help = "\
Snapshots of the tooldrift program are compared by its rules. Different suites or tools are refused.

Examples:
  toolwarden probe diff snapshots/deepseek.json snapshots/qwen.json
  toolwarden probe diff --fail-on breaking --format markdown old.json new.json")]
    Diff(ProbeDiffArgs),

    /// Run a suite with several providers and compare them: the gate for CI
    #[command(after_help = "\
Exit codes: 0 equal, 1 a difference, 2 a mistake in the command or a file, 3 could not be measured or
cannot be told from chance.

Examples:
  toolwarden probe run --old deepseek --new qwen --from-fixtures
  toolwarden probe run --old deepseek --new qwen --suite suite.yaml --repeat 20
  toolwarden probe run --contract contract.yaml --base deepseek --base qwen --format github")]
    Run(ProbeRunArgs),

    /// Show how several providers differ, in one table
    #[command(after_help = "\
Examples:
  toolwarden probe compare-table --from-fixtures
  toolwarden probe compare-table --provider deepseek --provider qwen -o COMPARISON.md")]
    CompareTable(CompareTableArgs),

    /// Report which models can be used, tool by tool, on one page to share
    ///
    /// Judges as `probe run` does: each model by the suite, by the pins of a contract, and compared
    /// with the first snapshot. The page quotes what breaks, and needs nothing from the network.
    #[command(after_help = "\
Examples:
  toolwarden probe report snapshots/deepseek.json snapshots/qwen.json -o report.html
  toolwarden probe report old.json new.json --answers raw/ --format markdown
  toolwarden probe report --contract contract.yaml --repeat 20 --capture raw/ -o report.html")]
    Report(ProbeReportArgs),

    /// List the providers that are known, and which of their keys are set
    Providers(ProvidersArgs),

    /// Serve recorded answers over HTTP to repeat a run without a provider
    #[command(after_help = "\
Prints the address it listens on; give that as --base-url. Goes on until SIGINT or SIGTERM.

Examples:
  toolwarden probe replay raw/deepseek.jsonl
  toolwarden probe replay --listen 127.0.0.1:8080 raw/")]
    Replay(ReplayArgs),

    /// Test which JSON Schema keywords a provider accepts, rejects or ignores
    #[command(after_help = "\
Examples:
  toolwarden probe dialect --provider kimi
  toolwarden probe dialect --provider kimi --output kimi.dialect.json")]
    Dialect(DialectArgs),
}

/// What is asked, and how often.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// The suite: cases and tools; without it, a bundled one about the weather
    #[arg(long, short, value_name = "PATH")]
    pub(crate) suite: Option<PathBuf>,

    /// Run every case this many times, instead of what the suite says
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<NonZeroU32>,

    /// Ask for whole replies, streams or both, instead of what the suite says
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Vec<ModeArg>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// How long, how often, how much.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Give up on an answer after this time
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub(crate) timeout: std::time::Duration,

    /// Send no more requests after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) deadline: Option<std::time::Duration>,

    /// Retry this many times if a provider is busy or does not answer
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) retries: u32,

    /// Send at most this many requests to one provider at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: u16,

    /// Send no more requests to a provider after this many tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_cost_tokens: Option<u64>,

    /// Keep every answer as it was received in this folder, without keys
    #[arg(long, value_name = "DIR")]
    pub(crate) capture: Option<PathBuf>,
}

/// Which provider, and what differs from what is known of it.
#[derive(Debug, Args)]
pub(crate) struct ProviderArgs {
    /// The provider: one that `probe providers` lists, or any name with --base-url and --model
    #[arg(long, short, visible_alias = "base", value_name = "NAME")]
    pub(crate) provider: String,

    /// The model, instead of the usual one
    #[arg(long, short, value_name = "ID")]
    pub(crate) model: Option<String>,

    /// The address, instead of the usual one
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    /// Take a bundled answer instead of asking
    #[arg(long)]
    pub(crate) from_fixtures: bool,

    /// Take this answer, a body of `/chat/completions`, instead of asking
    #[arg(long, value_name = "PATH")]
    pub(crate) fixture: Option<PathBuf>,

    /// Write the snapshot to this file; replaced as a whole or not at all
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Show no table
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Write what the program of this name would
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) compat: Option<Compat>,

    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JudgeArgs {
    /// What makes the command fail: breaking unless said otherwise
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailThreshold>,

    /// By how much a rate may drop, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) allowed_drop: f64,

    /// Compare and report as the program of this name does
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) compat: Option<Compat>,

    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,

    /// How many looks at growing data share the error of the statistics
    #[arg(skip)]
    pub(crate) looks: Option<NonZeroU8>,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeDiffArgs {
    /// The snapshot before; `-` is standard input
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The snapshot after
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,

    /// Accepted as by the other commands; comparing files sends no requests
    #[arg(long, hide = true)]
    pub(crate) from_fixtures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeRunArgs {
    /// The provider that is used now
    #[arg(
        long,
        value_name = "NAME",
        requires = "new",
        required_unless_present = "contract"
    )]
    pub(crate) old: Option<String>,

    /// The provider that is to be used
    #[arg(long, value_name = "NAME", requires = "old")]
    pub(crate) new: Option<String>,

    /// Providers, a suite and what is pinned, in a file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["old", "new"])]
    pub(crate) contract: Option<PathBuf>,

    /// Only this provider of the contract; may be given several times
    #[arg(long, short, value_name = "NAME", requires = "contract")]
    pub(crate) base: Vec<String>,

    /// The model of the old provider
    #[arg(long, value_name = "ID", requires = "old")]
    pub(crate) old_model: Option<String>,

    /// The model of the new provider
    #[arg(long, value_name = "ID", requires = "new")]
    pub(crate) new_model: Option<String>,

    /// The address of both providers
    #[arg(long, value_name = "URL", requires = "old")]
    pub(crate) base_url: Option<String>,

    /// The address of the old provider
    #[arg(long, value_name = "URL", requires = "old")]
    pub(crate) old_base_url: Option<String>,

    /// The address of the new provider
    #[arg(long, value_name = "URL", requires = "new")]
    pub(crate) new_base_url: Option<String>,

    /// Take bundled answers instead of asking
    #[arg(long)]
    pub(crate) from_fixtures: bool,

    /// Run more trials until the comparison is decided
    #[arg(long, conflicts_with = "from_fixtures")]
    pub(crate) until_decided: bool,

    /// With --until-decided, run each case at most this many times
    #[arg(
        long,
        value_name = "N",
        requires = "until_decided",
        default_value = "100"
    )]
    pub(crate) max_trials: NonZeroU32,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompareTableArgs {
    /// A provider; may be given several times. Without it, the five of the tooldrift document
    #[arg(long = "provider", short, visible_alias = "base", value_name = "NAME")]
    pub(crate) providers: Vec<String>,

    /// Take the providers and the suite of this contract
    #[arg(long, value_name = "PATH", conflicts_with_all = ["suite", "from_fixtures"])]
    pub(crate) contract: Option<PathBuf>,

    /// A snapshot as a column; may be given several times
    #[arg(long = "snapshot", value_name = "PATH")]
    pub(crate) snapshots: Vec<PathBuf>,

    /// The address of one provider, or of all of them
    #[arg(long = "base-url", value_name = "[NAME=]URL")]
    pub(crate) base_urls: Vec<String>,

    /// The model of one provider, or of all of them
    #[arg(long = "model", value_name = "[NAME=]ID")]
    pub(crate) models: Vec<String>,

    /// Take bundled answers instead of asking
    #[arg(long)]
    pub(crate) from_fixtures: bool,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    /// Write to this file instead of standard output; replaced as a whole or not at all
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: TableFormat,

    /// What makes the command fail: breaking unless said otherwise
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailThreshold>,

    /// By how much a rate may drop, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) allowed_drop: f64,

    /// Write the table of the program of this name, and exit as it does
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) compat: Option<Compat>,
}

#[derive(Debug, Args)]
pub(crate) struct ProvidersArgs {
    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// Accepted as by the other commands; listing sends no requests
    #[arg(long, hide = true)]
    pub(crate) from_fixtures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files that --capture wrote, or folders of them
    #[arg(value_name = "CAPTURE", required_unless_present = "from_fixtures")]
    pub(crate) captures: Vec<PathBuf>,

    /// Serve the bundled answers
    #[arg(long)]
    pub(crate) from_fixtures: bool,

    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct DialectArgs {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Write what was found to this file, for `canon lint --for FILE`
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// One JSON document
    Nonstream,
    /// Server-sent events
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// Snapshots of schema_version 1
    Tooldrift,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailThreshold {
    /// What breaks callers
    Breaking,
    /// Also what only warns
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    #[default]
    Markdown,
    /// One document
    Json,
}

fn time(word: &str) -> Result<std::time::Duration, String> {
    let time =
        toolwarden_model::document::parse_duration(word).map_err(|error| error.to_string())?;
    if time.is_zero() {
        return Err("give a time longer than none".to_owned());
    }
    Ok(time)
}

pub(super) fn share(word: &str) -> Result<f64, &'static str> {
    let share: Result<f64, _> = word.parse();
    share
        .ok()
        .filter(|it| (0.0..=1.0).contains(it))
        .ok_or("give a number from 0 to 1, such as 0.1")
}
