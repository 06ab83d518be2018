mod canonicalize;
mod detect;
mod emit;
mod lint;
mod rewrite_check;
mod satisfiability;

use crate::args::CanonCommand;
use crate::error::CliError;
use crate::output::CommandOutcome;

pub(super) fn run(command: CanonCommand) -> Result<CommandOutcome, CliError> {
    match command {
        CanonCommand::Canonicalize(args) => canonicalize::run(&args),
        CanonCommand::Emit(args) => emit::run(&args),
        CanonCommand::Detect(args) => detect::run(&args),
        CanonCommand::Lint(args) => lint::run(&args),
    }
}
