//! Makes keys for callers.

use serde_json::json;
use toolwarden_gateway::identity::ApiKey;

use crate::args::{KeyCommand, KeyNewArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::output::print_text;

pub(in crate::commands) fn run(command: &KeyCommand) -> Result<CommandOutcome, CliError> {
    match command {
        KeyCommand::New(args) => new(args),
    }
}

fn new(args: &KeyNewArgs) -> Result<CommandOutcome, CliError> {
    let key =
        ApiKey::generate().map_err(|error| CliError::Runtime(std::io::Error::other(error)))?;
    let (principal, digest) = (&args.principal, key.digest());
    if args.format == PlainFormat::Json {
        let document = json!({
            "schema": "toolwarden/key/new/v1",
            "principal": principal,
            "key": key.reveal(),
            "sha256": digest,
        });
        print_text(&format!("{document:#}\n"))?;
        return Ok(CommandOutcome::Pass);
    }
    print_text(&format!("{}\n", key.reveal()))?;
    // A name in quotes is the same in JSON and in YAML.
    print_status(&format!(
        "the key is shown this once; write into the settings:\n\nidentity:\n  api_keys:\n    - {{principal: {}, sha256: {digest}}}",
        json!(principal)
    ));
    Ok(CommandOutcome::Pass)
}
