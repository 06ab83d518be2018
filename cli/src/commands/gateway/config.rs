//! Checks, describes and shows settings.

use toolwarden_warden::settings::{schema, to_yaml};

use super::{check, load};
use crate::args::{ConfigCommand, ConfigShowArgs, PlainFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};

pub(in crate::commands) fn run(command: &ConfigCommand) -> Result<Verdict, CliError> {
    match command {
        ConfigCommand::Check(args) => check::run(args),
        ConfigCommand::Schema => {
            print(&format!("{:#}\n", schema()))?;
            Ok(Verdict::Fine)
        }
        ConfigCommand::Show(args) => show(args),
    }
}

fn show(args: &ConfigShowArgs) -> Result<Verdict, CliError> {
    let masked = load::settings(&args.file)?.masked();
    print(&match args.format {
        PlainFormat::Text => to_yaml(&masked),
        PlainFormat::Json => format!("{masked:#}\n"),
    })?;
    Ok(Verdict::Fine)
}
