use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use toolwarden_settings::{ClientApp, Settings};

use super::{PlainFormat, ReportFormat};

/// The settings of the gateway, given in the same two ways to every command.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// The settings of the gateway, YAML or JSON [default: toolwarden.yaml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The settings file, given as an option
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl SettingsArgs {
    /// The settings file.
    pub(crate) fn path(&self) -> &Path {
        let given = self.file.as_deref().or(self.config.as_deref());
        given.unwrap_or(Path::new(Settings::FILE))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Listen on this address instead of the settings'; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// The format of the log on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) log: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object per line, with the request log of every session that ends
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// The server's command and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "url")]
    pub(crate) command: Vec<String>,

    /// The URL of the server, instead of a command
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// A header for --url, as `Name: value`; may be given several times
    #[arg(
        long = "header",
        value_name = "HEADER",
        requires = "url",
        conflicts_with = "command"
    )]
    pub(crate) headers: Vec<String>,

    /// The name of the server in the store, in alerts and in records
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The policy; without it, every tool that matches its pin may be called
    #[arg(long, short, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// The store of pins, alerts and records; by default one file per server in the user's data
    /// directory
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The principal of all calls; by default the name of the user
    #[arg(long, value_name = "NAME", value_parser = principal_name)]
    pub(crate) principal: Option<String>,

    /// The settings for everything else; without a command or URL, also for the server --name
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the gateway running, and print how to use it
    #[arg(long)]
    pub(crate) keep: bool,

    /// The address of the gateway that keeps running
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8700",
        requires = "keep"
    )]
    pub(crate) listen: SocketAddr,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

/// Why a principal sees a tool or does not.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct GatewayExplainArgs {
    /// The principal; with --url by default the principal of the key
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "url",
        value_parser = principal_name
    )]
    pub(crate) principal: Option<String>,

    /// The tool, as agents call it
    #[arg(long, value_name = "NAME", group = "what")]
    pub(crate) tool: Option<String>,

    /// The resource, by its address
    #[arg(long, value_name = "ADDRESS", group = "what", requires = "url")]
    pub(crate) resource: Option<String>,

    /// The prompt, as agents call it
    #[arg(long, value_name = "NAME", group = "what", requires = "url")]
    pub(crate) prompt: Option<String>,

    /// The skill, by its address
    #[arg(long, value_name = "ADDRESS", group = "what", requires = "url")]
    pub(crate) skill: Option<String>,

    /// A group to request; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,

    /// The session whose state applies
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// The URL of a running gateway, such as http://127.0.0.1:8700
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "config"])]
    pub(crate) url: Option<String>,

    /// The API key; prefer the environment variable TOOLWARDEN_KEY
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

impl GatewayExplainArgs {
    /// An option that only a running gateway can answer. The parser does not enforce that these need --url:
    /// it drops the requirement if a settings file is given, which conflicts with --url.
    pub(crate) fn online_option(&self) -> Option<&'static str> {
        let given = [
            ("--resource", &self.resource),
            ("--prompt", &self.prompt),
            ("--skill", &self.skill),
            ("--key", &self.key),
        ];
        let mut given = given.into_iter().filter(|(_, value)| value.is_some());
        given.next().map(|(option, _)| option)
    }

    /// What is asked about, as records name it.
    pub(crate) fn subject(&self) -> String {
        let named = |kind: &str, name: &Option<String>| {
            let name = name.as_ref();
            name.map(|name| format!("{kind}:{name}"))
        };
        let tool = || self.tool.clone().unwrap_or_default();
        named("resource", &self.resource)
            .or_else(|| named("prompt", &self.prompt))
            .or_else(|| named("skill", &self.skill))
            .unwrap_or_else(tool)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ImportClientArgs {
    /// The client whose servers to import
    #[arg(value_enum, value_name = "CLIENT")]
    pub(crate) client: ClientArg,

    /// The client's file; `-` is standard input [default: the client's usual place]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The file to write; `-` is standard output
    #[arg(long, short, value_name = "PATH", default_value = Settings::FILE)]
    pub(crate) output: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientArg {
    /// Claude Desktop
    Claude,
    /// Claude Code: .mcp.json, or the user's file
    ClaudeCode,
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
}

impl ClientArg {
    pub(crate) const fn client(self) -> ClientApp {
        match self {
            Self::Claude => ClientApp::ClaudeDesktop,
            Self::ClaudeCode => ClientApp::ClaudeCode,
            Self::Cursor => ClientApp::Cursor,
            Self::VsCode => ClientApp::VsCode,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Find mistakes in the settings, the policy and servers' tool defaults
    #[command(after_help = "\
Exit codes: 0 valid, 2 a mistake, 3 a server did not answer (--start).

Examples:
  toolwarden config check
  toolwarden config check prod.yaml --format github
  toolwarden config check --start")]
    Check(ConfigCheckArgs),

    /// Print a watch configuration in TOML as settings
    ///
    /// The settings have the same meaning, and name the store with the pins made so far.
    #[command(after_help = "\
Examples:
  toolwarden config convert watch.toml > toolwarden.yaml")]
    Convert(ConfigConvertArgs),

    /// Print the JSON Schema of the settings, for editors
    #[command(after_help = "\
Examples:
  toolwarden config schema > toolwarden.schema.json

With the YAML extension of an editor, write this above the settings:
  # yaml-language-server: $schema=toolwarden.schema.json")]
    Schema,

    /// Show the settings in force, with defaults in place and secrets masked
    #[command(after_help = "\
Examples:
  toolwarden config show
  toolwarden config show prod.yaml --format json")]
    Show(ConfigShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also connect to every server, and count its tools
    #[arg(long)]
    pub(crate) start: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigConvertArgs {
    /// The watch configuration
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The output format: YAML or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AlertsCommand {
    /// Send a test alert to every target of the settings, or to one
    #[command(after_help = "\
Exit codes: 0 every alert was delivered, 3 one was not.

Examples:
  toolwarden alerts test
  toolwarden alerts test --target ops-slack")]
    Test(AlertsTestArgs),

    /// Show the delivery of alerts to their targets, the newest first
    #[command(after_help = "\
To see the drift itself, run `toolwarden watch alerts`.

Examples:
  toolwarden alerts deliveries
  toolwarden alerts deliveries --status failed --format json")]
    Deliveries(DeliveriesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AlertsTestArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Only this target
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DeliveriesArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The store, instead of that of the settings
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// Only to this target
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,

    /// Only in this status
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<DeliveryStatusArg>,

    /// Show at most this many
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) limit: u32,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeliveryStatusArg {
    /// Still being retried
    Pending,
    Delivered,
    /// No longer retried
    Failed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key for a caller, shown once and stored nowhere
    #[command(after_help = "\
The key goes to standard output. What belongs in the settings goes to standard error: only the
digest, from which the key cannot be recovered.

Examples:
  toolwarden key new --principal ci-agent
  toolwarden key new --principal ci-agent > ci-agent.key
  toolwarden key new --format json")]
    New(KeyNewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeyNewArgs {
    /// The principal the key is for
    #[arg(long, value_name = "NAME", default_value = "agent", value_parser = principal_name)]
    pub(crate) principal: String,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

/// The name of a principal, as settings accept it.
fn principal_name(word: &str) -> Result<String, String> {
    match word.trim() {
        "" => Err("a principal has a name".to_owned()),
        name => Ok(name.to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoServerArgs {
    /// Offer the tools as they are after they drifted
    #[arg(long)]
    pub(crate) drifted: bool,
}
