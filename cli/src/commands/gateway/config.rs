//! Checks, converts, describes and shows settings.

use serde_json::{Value, json};
use toolwarden_settings::{schema, to_yaml};
use toolwarden_watch::WatchConfig;

use super::{config_check, load};
use crate::args::{ConfigCommand, ConfigConvertArgs, ConfigShowArgs, PlainFormat, StoreArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::watch::store_path::store_path;
use crate::error::CliError;
use crate::output::print_text;

pub(in crate::commands) fn run(command: &ConfigCommand) -> Result<CommandOutcome, CliError> {
    match command {
        ConfigCommand::Check(args) => config_check::run(args),
        ConfigCommand::Schema => {
            print_text(&format!("{:#}\n", schema()))?;
            Ok(CommandOutcome::Pass)
        }
        ConfigCommand::Show(args) => show(args),
        ConfigCommand::Convert(args) => convert(args),
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

/// Prints a watch configuration from before the settings as settings.
fn convert(args: &ConfigConvertArgs) -> Result<CommandOutcome, CliError> {
    let text = toolwarden_files::read_to_string(&args.file).map_err(|source| CliError::Read {
        place: args.file.clone(),
        source,
    })?;
    let converted = WatchConfig::to_settings(&args.file, &text);
    let converted = converted.map_err(|source| CliError::Config {
        path: args.file.clone(),
        source: Box::new(source),
    })?;
    // Settings name their store. Without this key, the pins made so far would not be found.
    let mut settings = json!({"store": store_path(&StoreArgs::default())?});
    if let (Value::Object(settings), Value::Object(rest)) = (&mut settings, converted) {
        settings.extend(rest);
    }
    print_text(&to_yaml(&settings))?;
    Ok(CommandOutcome::Pass)
}
