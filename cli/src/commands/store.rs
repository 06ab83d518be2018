//! The command about the store as a file.

use std::io::IsTerminal as _;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use toolwarden_live_guard::audit::{Verification, describe_fault};
use toolwarden_watch::{BackupError, BackupOptions, BackupReport, BackupStage, backup};

use super::gateway::load_settings;
use super::watch::store_path;
use crate::args::{BackupArgs, PlainFormat, StoreArgs, StoreCommand};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

const SCHEMA: &str = "toolwarden/store/backup/v1";

pub(super) fn run(command: &StoreCommand) -> Result<CommandOutcome, CliError> {
    match command {
        StoreCommand::Backup(args) => run_backup(args),
    }
}

fn run_backup(args: &BackupArgs) -> Result<CommandOutcome, CliError> {
    let path = match &args.config {
        Some(config) => load_settings(config)?.settings.store,
        None => store_path::store_path(&StoreArgs::at(args.store.as_ref()))?,
    };
    let store = store_path::require_store(&path)?;
    let options = BackupOptions {
        replace: args.force,
        verify: !args.unverified,
    };
    let bar = progress_bar();
    let done = backup(&store, &args.target, options, |stage| {
        show_progress(&bar, stage)
    });
    bar.finish_and_clear();
    let done = match done {
        Err(BackupError::Unverified { found }) => {
            print_text(&damage_text(&found, args.format))?;
            return Ok(CommandOutcome::Finding);
        }
        done => done?,
    };
    print_text(&match args.format {
        PlainFormat::Text => text(&done, &path, &args.target),
        PlainFormat::Json => {
            let log = done.log;
            let document = json!({
                "schema": SCHEMA,
                "written": true,
                "store": path,
                "path": args.target,
                "bytes": done.bytes,
                "verified": log.is_some(),
                "records": log.map(|it| it.records),
                "head": log.map(|it| it.head.to_string()),
            });
            format!("{document:#}\n")
        }
    })?;
    Ok(CommandOutcome::Pass)
}

fn text(done: &BackupReport, store: &Path, target: &Path) -> String {
    let good = style::SUCCESS;
    let shown = |path: &Path| escape_controls(&path.display().to_string());
    let mut out = format!(
        "{good}copied{good:#} {} to {}, {} bytes\n",
        shown(store),
        shown(target),
        done.bytes
    );
    match done.log {
        None => out.push_str("the copy was not verified\n"),
        Some(log) if log.head.seq == 0 => out.push_str("intact: no records\n"),
        Some(log) => {
            let records = super::audit::records(log.records, log.head.seq);
            out.push_str(&format!("intact: {records}\nhead: {}\n", log.head));
        }
    }
    out
}

/// What is wrong with the copy, and so with the store.
fn damage_text(found: &Verification, format: PlainFormat) -> String {
    if format == PlainFormat::Json {
        let document = json!({
            "schema": SCHEMA,
            "written": false,
            "verified": false,
            "verification": found.document(None),
        });
        return format!("{document:#}\n");
    }
    let (error, dim) = (style::ERROR, style::DIM);
    let mut out = match &found.chain {
        Err(fault) => format!(
            "{error}refused{error:#}: {fault}\n  {}\n",
            describe_fault(fault)
        ),
        Ok(_) => format!("{error}refused{error:#}: the file is damaged\n"),
    };
    for line in &found.damage {
        out.push_str(&format!("  {}\n", escape_controls(line)));
    }
    out.push_str(&format!(
        "  {dim}help:{dim:#} no copy was kept; --unverified makes one as it is\n"
    ));
    out
}

fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("copying {bar:30} {percent} % {elapsed} {msg}");
    let bar = ProgressBar::new(0);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn show_progress(bar: &ProgressBar, stage: BackupStage) {
    match stage {
        BackupStage::Copying(progress) => {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        }
        BackupStage::Verifying => bar.set_message("verifying the copy"),
    }
}
