use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::{PlainFormat, ReportFormat, Since, since};

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Authorize calls: exit 0 if every call is allowed, 1 if one is denied
    #[command(after_help = "\
A call is `{\"tool\": \"pay\", \"principal\": \"agent-1\", \"arguments\": {…}}`, optionally with `group`,
`state`, `session`, `attributes` and `outcome`. Write one call per line. A call with `\"outcome\":
\"success\"` changes the state of its session. Rates and sessions last for one run of the command.
The command decides every call at the current time and ignores `at`.

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

    /// List every group with its tools, and whether a principal may request it
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
Reads calls as `guard check` does, or the records of `audit export`, and decides each at its own
time. A call that is earlier than the one before it counts as simultaneous. An allowed call without
an outcome counts as successful. Exits with 1 if a decision changes or, with nothing to compare, if
a call is denied.

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
Reads the allowed calls from the audit log of the store, and compares them with the grants of the
policy. Remove a grant only if the log covers everything its holder does.

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
pub(crate) struct ConditionArgs {
    /// Decide as if it were this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) now: Option<Timestamp>,

    /// The system load, for conditions that use it
    #[arg(long, value_name = "NUMBER", value_parser = super::load)]
    pub(crate) load: Option<f64>,

    /// A request attribute for conditions, as KEY=VALUE; repeatable
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

    /// The principal that makes the call
    #[arg(long, value_name = "NAME", conflicts_with = "call")]
    pub(crate) principal: Option<String>,

    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "call")]
    pub(crate) arguments: Option<String>,

    /// A group to request; may be given several times
    #[arg(long = "group", value_name = "NAME", conflicts_with = "call")]
    pub(crate) groups: Vec<String>,

    /// Decide as if the session were in this state
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
    pub(crate) condition_inputs: ConditionArgs,

    /// Record the decisions in the audit log of the store, at the time they are made
    #[arg(long, conflicts_with = "now")]
    pub(crate) record: bool,

    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

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
    /// One decision per line, as calls arrive
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct AvailableArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// The principal
    #[arg(long, value_name = "NAME", default_value = toolwarden_live_guard::UNKNOWN_PRINCIPAL)]
    pub(crate) principal: String,

    /// A group to request, repeatable; without it, the principal's default groups
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,

    /// Request no group
    #[arg(long, conflicts_with = "groups")]
    pub(crate) no_groups: bool,

    /// The state of the session; without it, the principal's initial state
    #[arg(long, value_name = "NAME")]
    pub(crate) state: Option<String>,

    #[command(flatten)]
    pub(crate) condition_inputs: ConditionArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Show whether this principal may request each group
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    #[command(flatten)]
    pub(crate) condition_inputs: ConditionArgs,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GuardLintArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// List all rules instead of checking a policy
    #[arg(long)]
    pub(crate) rules: bool,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// The output format; by default that of the extension of --output, or mermaid
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,

    /// Write to this file instead of standard output, atomically
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

    /// The system load, for conditions that use it
    #[arg(long, value_name = "NUMBER", value_parser = super::load)]
    pub(crate) load: Option<f64>,

    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SuggestArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// Use calls since then: a time, a date, or an age such as 30d
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
    pub(crate) condition_inputs: ConditionArgs,

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
