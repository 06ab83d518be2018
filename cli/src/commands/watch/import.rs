use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde_json::{Value, json};
use toolwarden_drift::toolwatch::{read_alerts, read_baselines};
use toolwarden_model::json::{decode_utf8, parse};
use toolwarden_store::{ServerKey, Store};
use toolwarden_watch::{
    DEFAULT_SCOPE, ImportReport, LOCAL_SERVER, ToolwatchState, import_toolwatch,
};

use super::{json_document, sources, store_path};
use crate::args::{ApprovalArgs, ImportArgs, PlainFormat, StoreArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::output::print_text;

const BASELINES: &str = "baselines.json";
const ALERTS: &str = "alerts.json";

pub(super) fn run(args: &ImportArgs) -> Result<CommandOutcome, CliError> {
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => default_folder()?,
    };
    let old = read(&folder)?;
    let store = store_path::open_store(&args.kept)?;
    let imported = import_folder(&folder, &store, &old)?;
    print_text(&match args.format {
        PlainFormat::Json => json_document::to_text(&json!({
            "schema": "toolwarden/watch/import/v1",
            "baselines": imported.baselines,
            "already_pinned": imported.known,
            "alerts": imported.alerts,
        })),
        PlainFormat::Text => text(imported),
    })?;
    Ok(CommandOutcome::Pass)
}

/// Imports what the toolwatch program kept, before anything is pinned or shown without it.
///
/// Called by that program's name, whatever it kept and the store has not is imported. Otherwise only a
/// store that is made by this command, in its usual place, starts from it.
pub(super) fn import_on_first_use(kept: &StoreArgs, as_toolwatch: bool) -> Result<(), CliError> {
    let in_settings = match &kept.config {
        Some(config) => sources::settings_store(config)?.is_some(),
        None => false,
    };
    let in_environment = std::env::var_os("TOOLWARDEN_STORE").is_some();
    let named = kept.store.is_some() || in_settings || in_environment;
    let path = store_path::store_path(kept)?;
    if !as_toolwatch && (named || path.exists()) {
        return Ok(());
    }
    let Ok(folder) = default_folder() else {
        return Ok(());
    };
    let files = [BASELINES, ALERTS].map(|file| folder.join(file));
    if !files.iter().any(|file| file.exists()) {
        return Ok(());
    }
    let old = read(&folder)?;
    if old.baselines.is_empty() && old.alerts.is_empty() {
        return Ok(());
    }
    let store = store_path::open_store(kept)?;
    if is_known(&store, &old)? {
        return Ok(());
    }
    let imported = import_folder(&folder, &store, &old)?;
    print_status(&format!(
        "{}: {}",
        folder.display(),
        text(imported).trim_end()
    ));
    Ok(())
}

/// Whether the store has seen every tool of the old program.
fn is_known(store: &Store, old: &ToolwatchState) -> Result<bool, CliError> {
    let key = ServerKey {
        name: LOCAL_SERVER.to_owned(),
        scope: DEFAULT_SCOPE.to_owned(),
    };
    let Some(server) = store.server(&key)? else {
        return Ok(false);
    };
    let known = store.tools(server.id)?;
    Ok(old
        .baselines
        .iter()
        .all(|baseline| known.contains(&baseline.tool)))
}

fn import_folder(
    folder: &Path,
    store: &Store,
    old: &ToolwatchState,
) -> Result<ImportReport, CliError> {
    let approval = store_path::approval(&ApprovalArgs {
        why: Some(format!("imported from {}", folder.display())),
        by: None,
    });
    Ok(import_toolwatch(store, old, &approval)?)
}

fn default_folder() -> Result<PathBuf, CliError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| CliError::NoHome)?;
    Ok(strategy.home_dir().join(".aumai").join("toolwatch"))
}

fn read(folder: &Path) -> Result<ToolwatchState, CliError> {
    let (baselines, alerts) = (folder.join(BASELINES), folder.join(ALERTS));
    let invalid = |place: &Path| {
        let place = place.to_owned();
        move |source| CliError::ToolwatchFile { place, source }
    };
    let mut old = ToolwatchState::default();
    if let Some(document) = read_json(&baselines)? {
        old.baselines = read_baselines(&document).map_err(invalid(&baselines))?;
    } else if !alerts.exists() {
        return Err(CliError::NothingToImport {
            folder: folder.to_owned(),
        });
    }
    if let Some(document) = read_json(&alerts)? {
        let read = read_alerts(&document).map_err(invalid(&alerts))?;
        let written = document.as_array().into_iter().flatten();
        old.alerts = read
            .into_iter()
            .zip(written.map(ToString::to_string))
            .collect();
    }
    Ok(old)
}

fn read_json(file: &Path) -> Result<Option<Value>, CliError> {
    if !file.exists() {
        return Ok(None);
    }
    let bytes = toolwarden_files::read_bytes(file).map_err(|source| CliError::Read {
        place: file.to_owned(),
        source,
    })?;
    let parsed = decode_utf8(&bytes).and_then(parse);
    let parsed = parsed.map_err(|error| CliError::Json {
        place: file.to_owned(),
        position: error.position,
        kind: error.kind,
    })?;
    Ok(Some(parsed.value))
}

fn text(imported: ImportReport) -> String {
    let ImportReport {
        baselines,
        known,
        alerts,
    } = imported;
    let count = |count: usize, word: &str| {
        let ending = if count == 1 { "" } else { "s" };
        format!("{count} {word}{ending}")
    };
    let (baselines, alerts) = (count(baselines, "baseline"), count(alerts, "alert"));
    let mut out = format!("{baselines} and {alerts} imported\n");
    if known > 0 {
        out.push_str(&format!(
            "{known} tools were already pinned and did not change\n"
        ));
    }
    out.push_str("the first check of each tool pins its definition if the old hash matches\n");
    out
}
