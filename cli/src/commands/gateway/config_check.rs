//! Finds every mistake in the settings and in what they name.

use std::time::Duration;

use tokio::task::JoinSet;
use toolwarden_files::FileError;
use toolwarden_gateway::runtime::load_policy;
use toolwarden_gateway::traces::TRACES_BUILT;
use toolwarden_guard::PolicyError;
use toolwarden_live_guard::{LoadedPolicy, PolicyFileError};
use toolwarden_mcp::{McpClient, McpError};
use toolwarden_model::json::{Pointer, Position};
use toolwarden_settings::{LoadedSettings, ServerSettings, SettingsError};

use super::load;
use super::process::{block_on as run_async, install_reaper};
use crate::args::{ConfigCheckArgs, ReportFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::{CliError, GatewayCommandError, with_causes};
use crate::output::print_text;
use crate::report::{
    FindingDetail, FindingLevel, FindingReport, ReportCheck, ReportFinding, RuleInfo, Subject,
};
use crate::style::{self, escape_controls};

pub(super) fn run(args: &ConfigCheckArgs) -> Result<CommandOutcome, CliError> {
    let mut found = ConfigFindings {
        file: args.settings.path().display().to_string(),
        findings: Vec::new(),
    };
    let loaded = found.check_settings(args)?;
    if let Some(loaded) = &loaded {
        if let Some(policy) = found.check_policy(loaded)? {
            found.check_start(loaded, &policy);
        }
        found.check_build(loaded);
    }
    let mut silent = false;
    if let (true, Some(loaded)) = (args.start, &loaded) {
        let servers = loaded.settings.servers.clone();
        install_reaper();
        let reached = run_async(Box::pin(async { Ok(connect_servers(servers).await) }))?;
        silent = reached.iter().any(|it| it.outcome.is_err());
        found.check_servers(loaded, &reached);
    }
    let servers = loaded.map_or(0, |it| it.settings.servers.len());
    let mistakes = found.findings.iter();
    let mistakes =
        mistakes.filter(|it| it.level == FindingLevel::Error && it.check != SERVERS_CHECK);
    let mistakes = mistakes.count();
    found.print(args.format, servers)?;
    if mistakes > 0 {
        let path = args.settings.path().to_owned();
        return Err(GatewayCommandError::Unusable { path, mistakes }.into());
    }
    Ok(CommandOutcome::from_measured(!silent))
}

/// The name of the check that reaches servers.
const SERVERS_CHECK: &str = "servers";

const UNREACHABLE: RuleInfo = RuleInfo {
    id: "unreachable",
    finds: "A server of the settings does not answer.",
    help: "Start the server, or correct its command or URL.",
};

const MISTAKE: RuleInfo = RuleInfo {
    id: "mistake",
    finds: "The gateway would not start with these settings.",
    help: "Correct the key at this line; `toolwarden config schema` describes all keys.",
};

const SURPRISING: RuleInfo = RuleInfo {
    id: "surprising",
    finds: "A setting has an effect that is easily overlooked.",
    help: "Change the setting, or leave it if the effect is meant.",
};

const FAILING: &[FindingLevel] = &[FindingLevel::Error];

struct ConfigFindings {
    file: String,
    findings: Vec<ReportFinding>,
}

impl ConfigFindings {
    /// The settings; none where there are mistakes in them.
    fn check_settings(
        &mut self,
        args: &ConfigCheckArgs,
    ) -> Result<Option<LoadedSettings>, CliError> {
        match load::load_settings(args.settings.path()) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    let message = warning.message.clone();
                    let (pointer, at) = (&warning.pointer, warning.position);
                    self.add_finding("settings", FindingLevel::Warning, pointer, at, message);
                }
                Ok(Some(loaded))
            }
            Err(GatewayCommandError::Settings(SettingsError::Invalid { mistakes, .. })) => {
                for it in &mistakes {
                    let message = it.kind.to_string();
                    self.add_finding(
                        "settings",
                        FindingLevel::Error,
                        &it.pointer,
                        it.position,
                        message,
                    );
                }
                Ok(None)
            }
            Err(GatewayCommandError::Settings(SettingsError::File(FileError::Document {
                source,
                ..
            }))) => {
                let message = source.kind.to_string();
                let root = Pointer::root();
                self.add_finding(
                    "settings",
                    FindingLevel::Error,
                    &root,
                    source.position,
                    message,
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check_policy(&mut self, loaded: &LoadedSettings) -> Result<Option<LoadedPolicy>, CliError> {
        match load_policy(&loaded.settings, &loaded.path) {
            Ok(policy) => {
                let file = std::mem::replace(&mut self.file, policy.path.display().to_string());
                for warning in &policy.warnings {
                    let at = policy.document.position(&warning.pointer);
                    let message = warning.message.clone();
                    self.add_finding(
                        "policy",
                        FindingLevel::Warning,
                        &warning.pointer,
                        at,
                        message,
                    );
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
        self.add_finding("policy", FindingLevel::Error, &error.pointer, at, message);
    }

    /// What `serve` refuses once settings and policy are read.
    fn check_start(&mut self, loaded: &LoadedSettings, policy: &LoadedPolicy) {
        for it in load::start_mistakes(loaded, policy) {
            let file = std::mem::replace(&mut self.file, it.path.display().to_string());
            let level = FindingLevel::Error;
            self.add_finding("settings", level, &it.pointer, it.position, it.message);
            self.file = file;
        }
    }

    /// What these settings ask for that this build cannot do.
    fn check_build(&mut self, loaded: &LoadedSettings) {
        if let Some((at, message)) = load::unsupported_setting(loaded, TRACES_BUILT) {
            let position = loaded.position(&at);
            self.add_finding("settings", FindingLevel::Error, &at, position, message);
        }
    }

    fn check_servers(&mut self, loaded: &LoadedSettings, reached: &[ServerReachability]) {
        for it in reached {
            let at = loaded.server_pointer(&it.server);
            let position = loaded.position(&at);
            match &it.outcome {
                Ok(1) => print_status(&format!("{}: 1 tool", escape_controls(&it.server))),
                Ok(tools) => {
                    print_status(&format!("{}: {tools} tools", escape_controls(&it.server)))
                }
                Err(why) => self.add_finding(
                    SERVERS_CHECK,
                    FindingLevel::Error,
                    &at,
                    position,
                    why.clone(),
                ),
            }
        }
    }

    fn add_finding(
        &mut self,
        check: &str,
        level: FindingLevel,
        pointer: &Pointer,
        at: Position,
        message: String,
    ) {
        let subject = pointer.segments().collect::<Vec<_>>().join(".");
        let about = match (check, level) {
            (SERVERS_CHECK, _) => &UNREACHABLE,
            (_, FindingLevel::Error) => &MISTAKE,
            (_, FindingLevel::Warning | FindingLevel::Note) => &SURPRISING,
        };
        self.findings.push(ReportFinding {
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
            detail: FindingDetail {
                rule_info: Some(*about),
                ..FindingDetail::default()
            },
        });
    }

    fn print(self, format: ReportFormat, servers: usize) -> Result<(), CliError> {
        let errors = self
            .findings
            .iter()
            .filter(|it| it.level == FindingLevel::Error);
        let errors = errors.count();
        if format == ReportFormat::Text {
            return print_text(&self.text(errors, servers));
        }
        let report = FindingReport {
            schema: "toolwarden/config/check/v1",
            checks: vec![ReportCheck {
                name: "settings".to_owned(),
                basis: None,
                rejected: errors,
                outcome: "with findings",
                tools: servers,
                failing: FAILING,
            }],
            subjects: vec![Subject::of(&self.file)],
            findings: self.findings,
        };
        print_text(&report.render(format))
    }

    fn text(&self, errors: usize, servers: usize) -> String {
        let (place, good) = (style::LOCATION, style::SUCCESS);
        let mut out = String::new();
        for it in &self.findings {
            let (colour, word) = match it.level {
                FindingLevel::Error => (style::ERROR, "error"),
                FindingLevel::Warning | FindingLevel::Note => (style::WARNING, "warning"),
            };
            let (line, column) = (it.line, it.column);
            out.push_str(&format!(
                "{place}{}:{line}:{column}{place:#}: {colour}{word}{colour:#} {}: {}\n",
                it.file,
                escape_controls(&it.tool),
                escape_controls(&it.message),
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

/// The result of contacting a server: the number of its tools, or why it did not answer.
struct ServerReachability {
    server: String,
    outcome: Result<usize, String>,
}

/// Reaches every server at once and asks for its tools.
async fn connect_servers(servers: Vec<ServerSettings>) -> Vec<ServerReachability> {
    let mut tasks = JoinSet::new();
    for (index, server) in servers.into_iter().enumerate() {
        tasks.spawn(async move {
            let tools = count_tools(&server).await;
            let secrets = server.endpoint.secrets();
            let reached = ServerReachability {
                outcome: tools.map_err(|error| secrets.mask(with_causes(&error))),
                server: server.name,
            };
            (index, reached)
        });
    }
    let mut reached = tasks.join_all().await;
    reached.sort_by_key(|(index, _)| *index);
    reached.into_iter().map(|(_, reached)| reached).collect()
}

async fn count_tools(server: &ServerSettings) -> Result<usize, McpError> {
    /// A user waits at a terminal.
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut limits = server.limits();
    limits.start = limits.start.min(PATIENCE);
    limits.total = limits.total.min(PATIENCE * 2);
    let client = McpClient::connect(&server.endpoint, &limits).await?;
    let listed = client.list_tools().await;
    client.close().await;
    Ok(listed?.tools.len())
}
