//! Checks, describes and shows settings.

use toolwarden_settings::{schema, to_yaml};

use super::{config_check, load};
use crate::args::{ConfigCommand, ConfigShowArgs, PlainFormat};
use crate::error::CliError;
use crate::output::{CommandOutcome, print_text};

pub(in crate::commands) fn run(command: &ConfigCommand) -> Result<CommandOutcome, CliError> {
    match command {
        ConfigCommand::Check(args) => config_check::run(args),
        ConfigCommand::Schema => {
            print_text(&format!("{:#}\n", schema()))?;
            Ok(CommandOutcome::Pass)
        }
        ConfigCommand::Show(args) => show(args),
    }
}

fn show(args: &ConfigShowArgs) -> Result<CommandOutcome, CliError> {
    let masked = load::load_settings(args.settings.path())?.masked();
    print_text(&match args.format {
        PlainFormat::Text => to_yaml(&masked),
        PlainFormat::Json => format!("{masked:#}\n"),
    })?;
    Ok(CommandOutcome::Pass)
}
