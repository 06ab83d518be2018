//! Finds every mistake in the settings and in what they name.

use std::time::Duration;

use tokio::task::JoinSet;
use toolwarden_files::FileError;
use toolwarden_gateway::runtime::load_policy;
use toolwarden_gateway::traces::TRACES_BUILT;
use toolwarden_guard::{PolicyError, ToolPolicy};
use toolwarden_mcp::{Client, McpError, Secrets};
use toolwarden_model::json::{Pointer, Position};
use toolwarden_warden::guard::{LoadedPolicy, PolicyFileError};
use toolwarden_warden::settings::{Loaded, ServerSettings, SettingsError};

use super::error::GatewayCommandError;
use super::load;
use super::process::{install_reaper, run as run_async};
use crate::args::{ConfigCheckArgs, ReportFormat};
use crate::commands::talk::say;
use crate::error::{CliError, with_causes};
use crate::output::{Verdict, print};
use crate::report::{About, Check, Detail, Finding, Level, Report};
use crate::style::{self, visible};

pub(super) fn run(args: &ConfigCheckArgs) -> Result<Verdict, CliError> {
    let mut found = Found {
        file: args.file.display().to_string(),
        findings: Vec::new(),
    };
    let loaded = found.settings(args)?;
    if let Some(loaded) = &loaded {
        found.policy(loaded)?;
        found.tool_defaults(loaded);
        found.build(loaded);
    }
    let mut silent = false;
    if let (true, Some(loaded)) = (args.start, &loaded) {
        let servers = loaded.settings.servers.clone();
        install_reaper();
        let reached = run_async(Box::pin(async { Ok(reach(servers).await) }))?;
        silent = reached.iter().any(|it| it.outcome.is_err());
        found.servers(loaded, &reached);
    }
    let servers = loaded.map_or(0, |it| it.settings.servers.len());
    let mistakes = found.findings.iter();
    let mistakes = mistakes.filter(|it| it.level == Level::Error && it.check != REACHED);
    let mistakes = mistakes.count();
    found.print(args.format, servers)?;
    if mistakes > 0 {
        let path = args.file.clone();
        return Err(GatewayCommandError::Unusable { path, mistakes }.into());
    }
    Ok(Verdict::measured(!silent))
}

/// The name of the check that reaches servers.
const REACHED: &str = "servers";

const UNREACHABLE: About = About {
    id: "unreachable",
    finds: "A server of the settings does not answer.",
    help: "Start the server, or correct its command or URL.",
};

const MISTAKE: About = About {
    id: "mistake",
    finds: "The gateway would not start with these settings.",
    help: "Correct the key at this line; `toolwarden config schema` describes all keys.",
};

const SURPRISING: About = About {
    id: "surprising",
    finds: "A setting has an effect that is easily overlooked.",
    help: "Change the setting, or leave it if the effect is meant.",
};

const FAILING: &[Level] = &[Level::Error];

struct Found {
    file: String,
    findings: Vec<Finding>,
}

impl Found {
    /// The settings; none where there are mistakes in them.
    fn settings(&mut self, args: &ConfigCheckArgs) -> Result<Option<Loaded>, CliError> {
        match load::settings(&args.file) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    let message = warning.message.clone();
                    let (pointer, at) = (&warning.pointer, warning.position);
                    self.note("settings", Level::Warning, pointer, at, message);
                }
                Ok(Some(loaded))
            }
            Err(GatewayCommandError::Settings(SettingsError::Invalid { mistakes, .. })) => {
                for it in &mistakes {
                    let message = it.mistake.to_string();
                    self.note("settings", Level::Error, &it.pointer, it.position, message);
                }
                Ok(None)
            }
            Err(GatewayCommandError::Settings(SettingsError::File(FileError::Document {
                source,
                ..
            }))) => {
                let message = source.kind.to_string();
                let root = Pointer::root();
                self.note("settings", Level::Error, &root, source.position, message);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn policy(&mut self, loaded: &Loaded) -> Result<Option<LoadedPolicy>, CliError> {
        match load_policy(&loaded.settings, &loaded.path) {
            Ok(policy) => {
                let file = std::mem::replace(&mut self.file, policy.path.display().to_string());
                for warning in &policy.warnings {
                    let at = policy.document.position(&warning.pointer);
                    let message = warning.message.clone();
                    self.note("policy", Level::Warning, &warning.pointer, at, message);
                }
                self.file = file;
                Ok(Some(policy))
            }
            Err(PolicyFileError::Invalid { path, errors }) => {
                let file = std::mem::replace(&mut self.file, path.display().to_string());
                for error in &errors {
                    self.policy_error(error);
                }
                self.file = file;
                Ok(None)
            }
            Err(error) => Err(GatewayCommandError::Policy(error).into()),
        }
    }

    fn policy_error(&mut self, error: &PolicyError) {
        let at = error.position.unwrap_or(START);
        let message = error.problem.to_string();
        self.note("policy", Level::Error, &error.pointer, at, message);
    }

    fn tool_defaults(&mut self, loaded: &Loaded) {
        for server in &loaded.settings.servers {
            let defaults = server.tool_defaults.as_ref().map(ToolPolicy::read_defaults);
            let Some(Err(mistakes)) = defaults else {
                continue;
            };
            for it in mistakes {
                let place = format!("servers.{}.tool_defaults{}", server.name, it.pointer);
                let message = format!("{place}: {}", it.problem);
                let server = loaded.server_pointer(&server.name);
                let position = loaded.position(&server);
                let at = server.child("tool_defaults");
                self.note("settings", Level::Error, &at, position, message);
            }
        }
    }

    /// What these settings ask for that this build cannot do.
    fn build(&mut self, loaded: &Loaded) {
        if let Some((at, message)) = load::not_built(loaded, TRACES_BUILT) {
            let position = loaded.position(&at);
            self.note("settings", Level::Error, &at, position, message);
        }
    }

    fn servers(&mut self, loaded: &Loaded, reached: &[Reached]) {
        for it in reached {
            let at = loaded.server_pointer(&it.server);
            let position = loaded.position(&at);
            match &it.outcome {
                Ok(1) => say(&format!("{}: 1 tool", visible(&it.server))),
                Ok(tools) => say(&format!("{}: {tools} tools", visible(&it.server))),
                Err(why) => self.note(REACHED, Level::Error, &at, position, why.clone()),
            }
        }
    }

    fn note(
        &mut self,
        check: &str,
        level: Level,
        pointer: &Pointer,
        at: Position,
        message: String,
    ) {
        let subject = pointer.segments().collect::<Vec<_>>().join(".");
        let about = match (check, level) {
            (REACHED, _) => &UNREACHABLE,
            (_, Level::Error) => &MISTAKE,
            (_, Level::Warning | Level::Note) => &SURPRISING,
        };
        self.findings.push(Finding {
            check: check.to_owned(),
            rule: about.id,
            level,
            tool: if subject.is_empty() {
                check.to_owned()
            } else {
                subject
            },
            message,
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            pointer: pointer.to_string(),
            fixable: false,
            detail: Detail {
                about: Some(*about),
                ..Detail::default()
            },
        });
    }

    fn print(self, format: ReportFormat, servers: usize) -> Result<(), CliError> {
        let errors = self.findings.iter().filter(|it| it.level == Level::Error);
        let errors = errors.count();
        if format == ReportFormat::Text {
            return print(&self.text(errors, servers));
        }
        let report = Report {
            schema: "toolwarden/config/check/v1",
            checks: vec![Check {
                name: "settings".to_owned(),
                basis: None,
                rejected: errors,
                outcome: "with findings",
                tools: servers,
                failing: FAILING,
            }],
            subjects: vec![self.file.clone()],
            findings: self.findings,
        };
        print(&report.render(format))
    }

    fn text(&self, errors: usize, servers: usize) -> String {
        let (place, good) = (style::PLACE, style::GOOD);
        let mut out = String::new();
        for it in &self.findings {
            let (colour, word) = match it.level {
                Level::Error => (style::ERROR, "error"),
                Level::Warning | Level::Note => (style::WARNING, "warning"),
            };
            let (line, column) = (it.line, it.column);
            out.push_str(&format!(
                "{place}{}:{line}:{column}{place:#}: {colour}{word}{colour:#} {}: {}\n",
                it.file,
                visible(&it.tool),
                visible(&it.message),
            ));
        }
        if errors == 0 {
            let servers = match servers {
                1 => "1 server".to_owned(),
                count => format!("{count} servers"),
            };
            out.push_str(&format!(
                "{good}{} can be used{good:#}: {servers}\n",
                self.file
            ));
        }
        out
    }
}

const START: Position = Position { line: 1, column: 1 };

/// What came of reaching a server: how many tools it has, or why it did not say.
struct Reached {
    server: String,
    outcome: Result<usize, String>,
}

/// Reaches every server at once and asks for its tools.
async fn reach(servers: Vec<ServerSettings>) -> Vec<Reached> {
    let mut tasks = JoinSet::new();
    for (index, server) in servers.into_iter().enumerate() {
        tasks.spawn(async move {
            let tools = tools(&server).await;
            let secrets = Secrets::of(&server.endpoint);
            let reached = Reached {
                outcome: tools.map_err(|error| secrets.hidden(with_causes(&error))),
                server: server.name,
            };
            (index, reached)
        });
    }
    let mut reached = tasks.join_all().await;
    reached.sort_by_key(|(index, _)| *index);
    reached.into_iter().map(|(_, reached)| reached).collect()
}

async fn tools(server: &ServerSettings) -> Result<usize, McpError> {
    /// Somebody waits at a terminal.
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut limits = server.limits();
    limits.start = limits.start.min(PATIENCE);
    limits.total = limits.total.min(PATIENCE * 2);
    let client = Client::connect(&server.endpoint, &limits).await?;
    let listed = client.list_tools().await;
    client.close().await;
    Ok(listed?.tools.len())
}
