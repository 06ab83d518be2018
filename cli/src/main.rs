//! The `toolwarden` command: arguments in, one function per command, a report and an exit code out.

mod args;
mod ci_escape;
mod command_outcome;
mod commands;
mod error;
mod input;
mod output;
mod report;
mod style;

use std::process::ExitCode;

use crate::error::CliError;

/// The gateway frees on one thread what it made on another, for each call, which this one is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = args::parse(std::env::args_os());
    cli.color.apply();
    let exit_zero = cli.exit_zero;
    match commands::run(cli) {
        Ok(outcome) => ExitCode::from(outcome.exit_code(exit_zero)),
        // The reader closed the pipe.
        Err(CliError::Write { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_code())
        }
    }
}
