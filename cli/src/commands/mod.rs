mod aliases;
mod audit;
mod canon;
mod gateway;
mod guard;
mod probe;
mod store;
pub(crate) mod talk;
mod watch;

pub(crate) use audit::AuditCommandError;
pub(crate) use canon::BrokenRewrite;
pub(crate) use gateway::GatewayCommandError;
pub(crate) use guard::GuardError;
pub(crate) use probe::ProbeError;
pub(crate) use watch::Source;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::output::Verdict;

/// Runs a command.
pub(crate) fn run(cli: Cli) -> Result<Verdict, CliError> {
    match cli.command {
        Command::Canon(command) => canon::run(command),
        Command::Watch(command) => watch::run(&command),
        Command::Guard(command) => guard::run(&command),
        Command::Audit(command) => audit::run(&command),
        Command::Store(command) => store::run(&command),
        Command::Probe(command) => probe::run(&command),
        Command::Demo(args) => gateway::demo(&args),
        Command::Serve(args) => gateway::serve(&args),
        Command::Wrap(args) => gateway::wrap(&args),
        Command::Explain(args) => gateway::explain(&args),
        Command::Import(args) => gateway::import(&args),
        Command::Config(command) => gateway::config(&command),
        Command::Alerts(command) => gateway::alerts(&command),
        Command::Key(command) => gateway::key(&command),
        Command::InstallAliases(args) => aliases::install(&args),
        Command::Reaper => Ok(gateway::reaper()),
        Command::DemoServer(args) => gateway::demo_server(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "toolwarden", &mut script);
            let mut out = crate::output::Output::open(None)?;
            out.write(&String::from_utf8_lossy(&script))?;
            out.finish()?;
            Ok(Verdict::Fine)
        }
    }
}
