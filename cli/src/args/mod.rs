mod alias;
mod audit;
mod canon;
mod gateway;
mod guard;
mod pinning;
mod probe;
mod probe_init;
mod probe_report;
mod store;
mod watch;

use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use toolwarden_canon::FormatChoice;
use toolwarden_model::{Format, FormatFamily};

use crate::error::CliError;

pub(crate) use alias::{ALIASES, is_toolwatch, parse};
pub(crate) use audit::*;
pub(crate) use canon::*;
pub(crate) use gateway::*;
pub(crate) use guard::*;
pub(crate) use pinning::*;
pub(crate) use probe::*;
pub(crate) use probe_init::*;
pub(crate) use probe_report::*;
pub(crate) use store::*;
pub(crate) use watch::*;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The contract layer between agents, models and tools.
#[derive(Debug, Parser)]
#[command(name = "toolwarden", version, styles = STYLES, max_term_width = 100, after_help = "\
Exit codes:
  0  fine
  1  a finding (something rejected, lost or denied); --exit-zero turns it into 0
  2  a mistake in the command, a file or its content
  3  could not measure

Examples:
  toolwarden demo
  toolwarden import claude
  toolwarden serve
  toolwarden wrap -- npx -y some-server
  toolwarden canon detect tool.json
  toolwarden canon emit --target openai tools.json
  toolwarden canon lint --for kimi tools.json
  toolwarden watch check tools.json
  toolwarden watch diff old.json new.json
  toolwarden watch scan tools.json
  toolwarden guard check --call calls.jsonl
  toolwarden probe run --old deepseek --new qwen --from-fixtures")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,

    /// Colour the output
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 900
    )]
    pub(crate) color: Color,

    /// Exit with 0 where a finding would exit with 1
    #[arg(long, global = true, display_order = 901)]
    pub(crate) exit_zero: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run a demo: calls allowed and denied, drift caught and approved
    #[command(after_help = "\
The demo runs in one process, on loopback only: an MCP server of a shop, the gateway in front of it,
and an agent. The store is a temporary file.

Examples:
  toolwarden demo
  toolwarden demo --format json
  toolwarden demo --keep")]
    Demo(DemoArgs),

    /// Run the gateway: authorize, watch and record the calls of all agents
    #[command(after_help = "\
Agents connect to /mcp (streamable HTTP), /mcp/g/GROUP,… or /sse. The gateway reloads settings and
policy when they change and on SIGHUP; it reports a file with a mistake and does not use it. SIGTERM
and SIGINT let calls in flight finish; a second signal ends the gateway at once.

Exit codes: 0 shut down, 2 a mistake in the settings, 3 cannot listen or use the store.

Examples:
  toolwarden serve
  toolwarden serve prod.yaml --log json
  toolwarden serve --listen 127.0.0.1:0")]
    Serve(ServeArgs),

    /// Put the gateway between one agent and one server, on standard streams
    #[command(after_help = "\
In the configuration of a desktop client, write `toolwarden` as the command, and the server's own
command after `--`. Tools keep their names. The first list of tools is pinned; a tool that changes
later is hidden until you approve it with `toolwarden watch approve`.

Exit codes: 0 the agent disconnected, 2 a mistake, 3 the store cannot be used.

Examples:
  toolwarden wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  toolwarden wrap --url https://mcp.example.com/mcp --header 'Authorization: Bearer …'
  toolwarden wrap --policy policy.yaml --principal ada -- uvx mcp-server-git
  toolwarden wrap --config toolwarden.yaml --name files")]
    Wrap(WrapArgs),

    /// Explain gate by gate why a principal sees a tool or does not
    #[command(after_help = "\
With --url, the running gateway answers. Without it, the command evaluates the policy and the store
of the settings. Only a running gateway knows resources, prompts and skills.

Exit codes: 0 the call is allowed, 1 it is denied, 2 a mistake, 3 the gateway cannot be reached.

Examples:
  toolwarden explain --url http://127.0.0.1:8700 --tool shop__refund_order
  toolwarden explain --url http://127.0.0.1:8700 --resource file:///handbook/plan
  toolwarden explain --principal ada --tool shop__refund_order
  toolwarden explain prod.yaml --principal ada --tool shop__refund_order
  toolwarden explain --principal ada --tool shop__refund_order --group money --format json")]
    Explain(GatewayExplainArgs),

    /// Write settings with the servers of a desktop client
    #[command(after_help = "\
The command copies secrets unchanged and warns about each, so that you can move them to the
environment. Only the user can read the new file. --force replaces an existing file.

Examples:
  toolwarden import claude
  toolwarden import cursor ~/.cursor/mcp.json --output team.yaml
  toolwarden import vscode - --output - < .vscode/mcp.json")]
    Import(ImportClientArgs),

    /// Check, describe and show the settings of the gateway
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden config check
  toolwarden config schema > toolwarden.schema.json
  toolwarden config show"
    )]
    Config(ConfigCommand),

    /// Send test alerts, and show the delivery of alerts
    #[command(
        subcommand,
        after_help = "\
To see the drift itself, run `toolwarden watch alerts`.

Examples:
  toolwarden alerts test
  toolwarden alerts deliveries --status failed"
    )]
    Alerts(AlertsCommand),

    /// Create keys for callers of the gateway
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden key new --principal ci-agent"
    )]
    Key(KeyCommand),

    /// Convert tool definitions between formats, and report what was lost
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden canon detect --verbose tool.json
  toolwarden canon canonicalize tool.json
  toolwarden canon emit --target gemini --deny-loss semantic 'tools/*.json'
  toolwarden canon lint --for openai-strict --fix tool.json"
    )]
    Canon(CanonCommand),

    /// Pin tools, detect changes, and prove what each change means
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden watch baseline tools.json
  toolwarden watch check tools.json
  toolwarden watch diff old.json new.json
  toolwarden watch diff --observed calls.jsonl --format github old.json new.json
  toolwarden watch scan 'servers/*.json'"
    )]
    Watch(Box<WatchCommand>),

    /// Authorize calls by groups, states, permissions, rates and arguments
    #[command(
        subcommand,
        after_help = "\
Exit codes: 0 allowed, 1 denied or a finding, 2 a mistake, 3 the store cannot be used.

Examples:
  toolwarden guard check --call calls.jsonl
  toolwarden guard available --principal agent-1 --group knowledge --state analysis
  toolwarden guard explain --tool pay --principal agent-1
  toolwarden guard lint
  toolwarden guard simulate calls.jsonl --policy new.yaml --old old.yaml"
    )]
    Guard(Box<GuardCommand>),

    /// Read, verify, export and prune the audit log
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden audit list --denied --since 24h
  toolwarden audit tail --follow --tool delete_file
  toolwarden audit verify --head 1204:9f2c…
  toolwarden audit export --output audit.ndjson
  toolwarden audit stats --since 7d
  toolwarden audit prune --before 90d --yes"
    )]
    Audit(Box<AuditCommand>),

    /// Back up the store, also while a gateway runs
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden store backup /backup/toolwarden.db
  toolwarden store backup --config prod.yaml /backup/prod.db"
    )]
    Store(StoreCommand),

    /// Send the same tools to several models, and compare their calls
    #[command(
        subcommand,
        after_help = "\
Exit codes: 0 equal, 1 a difference, 2 a mistake, 3 not measured or inconclusive.

Examples:
  toolwarden probe run --old deepseek --new qwen --from-fixtures
  toolwarden probe snapshot --provider kimi --repeat 20 -o kimi.json
  toolwarden probe diff old.json new.json
  toolwarden probe providers"
    )]
    Probe(Box<ProbeCommand>),

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  toolwarden completions bash > ~/.local/share/bash-completion/completions/toolwarden
  toolwarden completions zsh > ~/.zfunc/_toolwarden
  toolwarden completions fish > ~/.config/fish/completions/toolwarden.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },

    /// Create links named after the programs this one replaces
    ///
    /// Creates the links `toolwatch`, `toolcanon`, `tooldrift`, `aumai-toolwatch` and
    /// `aumai-toolcanon` in a directory. Called by one of these names, toolwarden accepts the
    /// arguments of that program and writes its output.
    #[command(after_help = "\
Examples:
  toolwarden install-aliases ~/.local/bin
  toolwarden install-aliases --force ~/.local/bin")]
    InstallAliases(InstallAliasesArgs),

    /// The process that ends started programs when this one is killed
    #[command(name = "__reaper", hide = true)]
    Reaper,

    /// The shop of the demo on standard streams
    #[command(name = "__demo-server", hide = true)]
    DemoServer(DemoServerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallAliasesArgs {
    /// The directory for the links, preferably one in PATH
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Replace files and links of these names
    #[arg(long)]
    pub(crate) force: bool,
}

/// Where definitions come from.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files, directories or globs to read; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "input")]
    pub(crate) files: Vec<PathBuf>,

    /// A file to read, as in the toolcanon document
    #[arg(long, value_name = "PATH")]
    pub(crate) input: Vec<PathBuf>,

    /// Read definitions as this format instead of detecting it
    ///
    /// A provider (openai, anthropic, mcp, langchain, gemini, bedrock, …) or one of its formats
    /// (openai-chat, openai-responses, …), or raw.
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: FormatChoice,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
}

/// Where the result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write to this file instead of standard output, atomically
    #[arg(long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DocumentFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// The definitions themselves, as JSON
    #[default]
    Text,
    /// One document with the definitions and all notes about them
    Json,
    /// The definitions, one per line
    Jsonl,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    #[default]
    #[value(alias = "rich")]
    Text,
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// GitHub workflow commands
    Github,
    Markdown,
}

/// A time in the past, as it was typed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    Time(jiff::Timestamp),
    Ago(jiff::SignedDuration),
}

fn since(word: &str) -> Result<Since, String> {
    let day = || format!("{word}T00:00:00Z").parse();
    if let Ok(time) = word.parse().or_else(|_| day()) {
        return Ok(Since::Time(time));
    }
    let age = toolwarden_guard::parse_duration(word).ok();
    let age = age.filter(|age| !age.is_zero());
    age.and_then(|age| jiff::SignedDuration::try_from(age).ok())
        .map(Since::Ago)
        .ok_or_else(|| {
            "give a time (2026-01-31T12:00:00Z), a date (2026-01-31) or an age (90, 90m, 1.5h, 7d)"
                .to_owned()
        })
}

/// How long something may take, as it was typed.
fn timeout(word: &str) -> Result<std::time::Duration, String> {
    let time = toolwarden_guard::parse_duration(word).ok();
    let time = time.filter(|time| !time.is_zero());
    time.ok_or_else(|| "give a time such as 90, 90s or 2m".to_owned())
}

/// The load of a system, as it was typed.
fn load(word: &str) -> Result<f64, String> {
    let number = word.parse().ok().filter(|it: &f64| it.is_finite());
    number.ok_or_else(|| "give a number such as 0.8".to_owned())
}

impl Since {
    /// The time that is meant, as seen from now.
    pub(crate) fn time(self, now: jiff::Timestamp) -> jiff::Timestamp {
        match self {
            Self::Time(at) => at,
            Self::Ago(age) => now.checked_sub(age).unwrap_or(jiff::Timestamp::MIN),
        }
    }
}

fn source(word: &str) -> Result<FormatChoice, toolwarden_model::UnknownFormat> {
    if word == "auto" {
        return Ok(FormatChoice::Detect);
    }
    word.parse::<FormatFamily>()
        .map(FormatChoice::Family)
        .or_else(|_| word.parse::<Format>().map(FormatChoice::Format))
}

impl Color {
    /// The colour option of a command line that may have mistakes.
    fn written_in(args: &[std::ffi::OsString]) -> Self {
        let mut words = args.iter().filter_map(|it| it.to_str());
        let mut color = Self::default();
        while let Some(word) = words.next().filter(|word| *word != "--") {
            let value = match word {
                "--color" => words.next(),
                _ => word.strip_prefix("--color="),
            };
            let value = value.and_then(|value| Self::from_str(value, false).ok());
            color = value.unwrap_or(color);
        }
        color
    }

    pub(crate) fn apply(self) {
        let choice = match self {
            Self::Auto => return,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

impl InputArgs {
    /// The error for inputs without a single definition.
    pub(crate) fn nothing_found(&self) -> CliError {
        let places: Vec<String> = self
            .paths()
            .map(|path| path.display().to_string())
            .collect();
        CliError::NoTools {
            places: places.join(", "),
        }
    }

    /// Everything named as input, in the order of the command line.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.input.iter().chain(&self.files).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_colour_is_known_before_mistakes_are_reported() {
        for (line, expected) in [
            ("toolwarden watch --color never --typo", Color::Never),
            ("toolwarden --color=always watch --typo", Color::Always),
            ("toolwarden --color", Color::Auto),
            ("toolwarden --color=purple", Color::Auto),
            ("toolwarden wrap -- server --color never", Color::Auto),
        ] {
            let args: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
            let found = Color::written_in(&args);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{line}");
        }
    }

    #[test]
    fn a_time_in_the_past_is_read_in_every_way() {
        let now: jiff::Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let told = |word| since(word).unwrap().time(now).to_string();
        for (word, time) in [
            ("2026-01-30T10:00:00Z", "2026-01-30T10:00:00Z"),
            ("2026-01-30T10:00:00+02:00", "2026-01-30T08:00:00Z"),
            ("2026-01-30", "2026-01-30T00:00:00Z"),
            ("30m", "2026-01-31T11:30:00Z"),
            ("2h", "2026-01-31T10:00:00Z"),
            ("3600s", "2026-01-31T11:00:00Z"),
            ("90", "2026-01-31T11:58:30Z"),
            ("1.5h", "2026-01-31T10:30:00Z"),
            ("7d", "2026-01-24T12:00:00Z"),
            ("1w", "2026-01-24T12:00:00Z"),
        ] {
            assert_eq!(told(word), time, "{word}");
        }
        for word in ["", "0", "0s", "-5m", "soon", "1y", "2026-02-30"] {
            assert!(since(word).is_err(), "{word}");
        }
    }
}
