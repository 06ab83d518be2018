mod aliases;
mod audit;
mod canon;
mod gateway;
mod guard;
mod probe;
pub(crate) mod progress;
mod store;
mod watch;

use clap::CommandFactory;

use crate::args::{Cli, CliCommand};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

/// Runs a command.
pub(crate) fn run(cli: Cli) -> Result<CommandOutcome, CliError> {
    match cli.command {
        CliCommand::Canon(command) => canon::run(command),
        CliCommand::Watch(command) => watch::run(&command),
        CliCommand::Guard(command) => guard::run(&command),
        CliCommand::Audit(command) => audit::run(&command),
        CliCommand::Store(command) => store::run(&command),
        CliCommand::Probe(command) => probe::run(&command),
        CliCommand::Demo(args) => gateway::demo(&args),
        CliCommand::Serve(args) => gateway::serve(&args),
        CliCommand::Wrap(args) => gateway::wrap(&args),
        CliCommand::Explain(args) => gateway::explain(&args),
        CliCommand::Import(args) => gateway::import(&args),
        CliCommand::Config(command) => gateway::config(&command),
        CliCommand::Alerts(command) => gateway::alerts(&command),
        CliCommand::Key(command) => gateway::key(&command),
        CliCommand::InstallAliases(args) => aliases::install(&args),
        CliCommand::Reaper => Ok(gateway::run_reaper()),
        CliCommand::DemoServer(args) => gateway::demo_server(&args),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "toolwarden", &mut script);
            let mut out = crate::output::OutputFile::open(None)?;
            out.write(&String::from_utf8_lossy(&script))?;
            out.finish()?;
            Ok(CommandOutcome::Pass)
        }
    }
}
