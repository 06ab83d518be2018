mod available;
mod call_input;
mod check;
mod explain;
mod feature_input;
mod graph;
mod groups;
mod lint;
mod policy;
mod policy_location;
mod simulate;
mod suggest;

use crate::args::GuardCommand;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

pub(super) fn run(command: &GuardCommand) -> Result<CommandOutcome, CliError> {
    match command {
        GuardCommand::Check(args) => check::run(args),
        GuardCommand::Available(args) => available::run(args),
        GuardCommand::Groups(args) => groups::run(args),
        GuardCommand::Lint(args) => lint::run(args),
        GuardCommand::Graph(args) => graph::run(args),
        GuardCommand::Simulate(args) => simulate::run(args),
        GuardCommand::Explain(args) => explain::run(args),
        GuardCommand::Suggest(args) => suggest::run(args),
    }
}
