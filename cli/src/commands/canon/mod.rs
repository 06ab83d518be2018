mod canonicalize;
mod detect;
mod emit;
mod lint;
mod rewrite_check;
mod satisfiability;

use crate::args::CanonCommand;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;

pub(super) fn run(command: CanonCommand) -> Result<CommandOutcome, CliError> {
    match command {
        CanonCommand::Canonicalize(args) => canonicalize::run(&args),
        CanonCommand::Emit(args) => emit::run(&args),
        CanonCommand::Detect(args) => detect::run(&args),
        CanonCommand::Lint(args) => lint::run(&args),
    }
}
