//! Writes settings with the servers of a desktop client.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use serde_json::json;
use toolwarden_settings::{ClientApp, ImportedServers, config_paths, import_client_file};

use super::load::print_warning;
use crate::args::ImportClientArgs;
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::commands::watch::store_path;
use crate::error::{CliError, GatewayCommandError};
use crate::output::OutputFile;
use crate::style::escape_controls;

/// The largest file of a client that is read.
const MAX_BYTES: u64 = 64 << 20;

const HEAD: &str = "\
# Settings of the gateway. `toolwarden config check` finds mistakes, `toolwarden serve` runs it.
";

pub(in crate::commands) fn run(args: &ImportClientArgs) -> Result<CommandOutcome, CliError> {
    let client = args.client.client();
    let file = match &args.file {
        Some(file) => file.clone(),
        None => default_file(client)?,
    };
    let to_stdout = args.output == Path::new("-");
    if !to_stdout && !args.force && args.output.exists() {
        let path = args.output.clone();
        return Err(GatewayCommandError::Exists { path }.into());
    }
    let imported = import_client_file(client, &read_client_file(&file)?, &file)
        .map_err(GatewayCommandError::from)?;
    for note in &imported.notes {
        let position = note.position;
        let (line, column) = (position.line, position.column);
        print_warning(&format!(
            "{}:{line}:{column}: {}",
            file.display(),
            note.message
        ));
    }
    let path = (!to_stdout).then_some(args.output.as_path());
    if let Some(path) = path {
        create_private(path)?;
    }
    let mut out = OutputFile::open(path)?;
    out.write(&settings(&imported))?;
    out.finish()?;
    if !to_stdout {
        print_status(&summary(&imported, &file, &args.output));
    }
    Ok(CommandOutcome::Pass)
}

/// Makes the file where there is none, so that only the user may read what will stand in it.
fn create_private(path: &Path) -> Result<(), CliError> {
    let mut options = std::fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => Err(CliError::Write {
            place: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// The settings, with a caller that needs no key, so that they can be used as they are.
fn settings(imported: &ImportedServers) -> String {
    let user = json!(
        Some(store_path::user_name())
            .filter(|it| it != "unknown")
            .unwrap_or_else(|| "me".to_owned())
    );
    format!(
        "{HEAD}{}
identity:
  # The principal of callers without a key. The gateway listens on this machine only.
  anonymous: {user}
  # Who may approve changes and see what others do by the API. Agents come without a key, so this must be
  # another principal: make its key with `toolwarden key new --principal admin`, add what that prints, and
  # remove the `#` of the next line. `toolwarden watch approve --store toolwarden.db` needs no key.
  # admins: [admin]
",
        imported.to_yaml(),
    )
}

fn summary(imported: &ImportedServers, from: &Path, to: &Path) -> String {
    let names: Vec<String> = imported
        .servers
        .iter()
        .map(|it| escape_controls(&it.name))
        .collect();
    let servers = match names.len() {
        0 => "no server".to_owned(),
        1 => format!("1 server ({})", names.join(", ")),
        count => format!("{count} servers ({})", names.join(", ")),
    };
    format!(
        "{servers} of {} written to {}; `toolwarden serve --config {}` runs the gateway",
        from.display(),
        to.display(),
        to.display(),
    )
}

/// The first file of the client that is there.
fn default_file(client: ClientApp) -> Result<PathBuf, CliError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| CliError::NoHome)?;
    let places = config_paths(client, strategy.home_dir());
    match places.iter().find(|it| it.is_file()) {
        Some(file) => Ok(file.clone()),
        None => {
            for place in &places {
                print_status(&format!("not found: {}", place.display()));
            }
            let client = client.as_str();
            Err(GatewayCommandError::NoClientFile { client }.into())
        }
    }
}

fn read_client_file(file: &Path) -> Result<String, CliError> {
    let failed = |source| CliError::Read {
        place: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(MAX_BYTES).read_to_end(&mut bytes)
    } else {
        let opened = toolwarden_files::open(file).map_err(failed)?;
        opened.take(MAX_BYTES).read_to_end(&mut bytes)
    };
    read.map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| failed(std::io::Error::other(error)))
}
