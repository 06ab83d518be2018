use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::{PlainFormat, ReportFormat, Since, StoreArgs, since};

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Authorize calls: exit 0 if every call is allowed, 1 if one is denied
    #[command(after_help = "\
Rates and sessions last for one run of the command. A call is `{\"tool\": \"pay\", \"principal\": \"agent-1\", \"arguments\": {…}}`, with `group`, `state`,
`session`, `attributes` and `outcome` where they matter. Several calls stand one per line. A session
moves on when a call says `\"outcome\": \"success\"`. Calls are decided now, whatever their `at`.

Examples:
  toolwarden guard check --call call.json
  toolwarden guard check --call calls.jsonl --format jsonl
  toolwarden guard check --tool pay --principal agent-1 --arguments '{\"amount\": 5}'
  agent | toolwarden guard check --call - --record")]
    Check(GuardCheckArgs),

    /// Show which tools a principal sees, and why not the others
    #[command(after_help = "\
Examples:
  toolwarden guard available --principal agent-1 --group read-only --group knowledge
  toolwarden guard available --principal agent-1 --group '*' --state analysis --format json")]
    Available(AvailableArgs),

    /// List every group with its tools, and whether a principal may ask for it
    #[command(after_help = "\
Examples:
  toolwarden guard groups
  toolwarden guard groups --principal agent-1 --format json")]
    Groups(GroupsArgs),

    /// Find likely mistakes in a policy: exit 1 with their places
    #[command(after_help = "\
Examples:
  toolwarden guard lint
  toolwarden guard lint --policy prod.yaml --format sarif > lint.sarif
  toolwarden guard lint --rules")]
    Lint(GuardLintArgs),

    /// Draw the states of a workflow and the tools that change them
    #[command(after_help = "\
Examples:
  toolwarden guard graph
  toolwarden guard graph --output workflow.svg
  toolwarden guard graph --format dot | dot -Tpng > workflow.png")]
    Graph(GraphArgs),

    /// Run recorded calls through a policy, and show which decisions change
    #[command(after_help = "\
Takes calls as `guard check` does, and records as `audit export` writes them. Times are those of the
calls; one that is earlier than the call before it counts as made at the same time. Where no outcome is written down, a call that is allowed is taken to succeed. Exits with 1 if a
decision changes or, where there is nothing to compare with, if a call is denied.

Examples:
  toolwarden guard simulate calls.jsonl --policy new.yaml --old old.yaml
  toolwarden audit export --since 7d | toolwarden guard simulate - --policy new.yaml")]
    Simulate(SimulateArgs),

    /// Show what every gate says about a call, step by step
    #[command(after_help = "\
Examples:
  toolwarden guard explain --call call.json
  toolwarden guard explain --tool pay --principal agent-1 --group money --state approved")]
    Explain(ExplainArgs),

    /// Suggest grants from the audit log: what sufficed, what was unused
    #[command(after_help = "\
Reads the calls that were allowed from the audit log of the store, and compares them with the grants of
the policy. A short log says little: give a grant up only if the log covers everything its holder does.

Examples:
  toolwarden guard suggest --policy policy.yaml
  toolwarden guard suggest --since 30d --principal agent-1 --format json")]
    Suggest(SuggestArgs),
}

/// Which policy.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The policy, YAML or JSON; by default policy.yaml, or the policy of toolwarden.yaml
    #[arg(long, short, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

/// Under which circumstances.
#[derive(Debug, Args)]
pub(crate) struct CircumstancesArgs {
    /// Take this for the time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) now: Option<Timestamp>,

    /// Take this for the load of the system, for conditions that depend on it
    #[arg(long, value_name = "NUMBER")]
    pub(crate) load: Option<f64>,

    /// What a condition may ask of the request, as KEY=VALUE
    #[arg(long = "attribute", value_name = "KEY=VALUE", value_parser = attribute)]
    pub(crate) attributes: Vec<(String, serde_json::Value)>,
}

/// Which call: from a file, or spelled out.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct CallArgs {
    /// A file with one call, or with one call per line; `-` is standard input
    #[arg(long, value_name = "FILE", group = "which")]
    pub(crate) call: Option<PathBuf>,

    /// The tool to call
    #[arg(long, value_name = "NAME", group = "which")]
    pub(crate) tool: Option<String>,

    /// The resource to read, by its address
    #[arg(long, value_name = "ADDRESS", group = "which")]
    pub(crate) resource: Option<String>,

    /// The prompt to get
    #[arg(long, value_name = "NAME", group = "which")]
    pub(crate) prompt: Option<String>,

    /// The skill to get, by its address
    #[arg(long, value_name = "ADDRESS", group = "which")]
    pub(crate) skill: Option<String>,

    /// The server that offers the resource, prompt or skill
    #[arg(long, value_name = "NAME", conflicts_with_all = ["call", "tool"])]
    pub(crate) server: Option<String>,

    /// Who calls it
    #[arg(long, value_name = "NAME", conflicts_with = "call")]
    pub(crate) principal: Option<String>,

    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "call")]
    pub(crate) arguments: Option<String>,

    /// A group to ask for; may be given several times
    #[arg(long = "group", value_name = "NAME", conflicts_with = "call")]
    pub(crate) groups: Vec<String>,

    /// Take this for the state of the session
    #[arg(long, value_name = "NAME", conflicts_with = "call")]
    pub(crate) state: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GuardCheckArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    #[command(flatten)]
    pub(crate) circumstances: CircumstancesArgs,

    /// Record the decisions in the audit log of the store, at the time they are made
    #[arg(long, conflicts_with = "now")]
    pub(crate) record: bool,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DecisionFormat,
}

/// The shape of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionFormat {
    /// One line per call
    #[default]
    Text,
    /// One document with every decision
    Json,
    /// One decision per line, as calls come
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct AvailableArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Who asks
    #[arg(long, value_name = "NAME", default_value = toolwarden_live_guard::UNKNOWN_PRINCIPAL)]
    pub(crate) principal: String,

    /// A group to ask for, repeatable; without it, the principal's default groups
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,

    /// Ask for no group at all
    #[arg(long, conflicts_with = "groups")]
    pub(crate) no_groups: bool,

    /// The state of the session; without it, the principal's initial state
    #[arg(long, value_name = "NAME")]
    pub(crate) state: Option<String>,

    #[command(flatten)]
    pub(crate) circumstances: CircumstancesArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Whether this principal may ask for each group
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    #[command(flatten)]
    pub(crate) circumstances: CircumstancesArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GuardLintArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// List the rules instead
    #[arg(long)]
    pub(crate) rules: bool,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// As what; without it, what the name of --output ends with, or mermaid
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,

    /// Write to this file instead of standard output; replaced as a whole or not at all
    #[arg(long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// An image
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Recorded calls, one per line; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) calls: PathBuf,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// The policy to compare with, instead of what was recorded
    #[arg(long, value_name = "FILE")]
    pub(crate) old: Option<PathBuf>,

    /// Take this for the load of the system, for conditions that depend on it
    #[arg(long, value_name = "NUMBER")]
    pub(crate) load: Option<f64>,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SuggestArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// Use calls of this time and later: a time, a date, or a duration such as 30d
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Since>,

    /// Show this principal only
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    #[command(flatten)]
    pub(crate) circumstances: CircumstancesArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

fn time(word: &str) -> Result<Timestamp, &'static str> {
    let day = || format!("{word}T00:00:00Z").parse();
    let time = word.parse().or_else(|_| day());
    time.map_err(|_| "give a time (2026-01-31T12:00:00Z) or a date (2026-01-31)")
}

/// `KEY=VALUE`; the value is JSON where it reads as such, and a text otherwise.
fn attribute(word: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = word
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or("write it as KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}
