use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PlainFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store, also while a gateway uses it
    ///
    /// The copy holds everything that was written before the command started. The command verifies
    /// the copy like `audit verify` and renames it when it is complete. Only the user can read it.
    /// A plain copy of the file is not a backup: the newest records are in the file beside it.
    #[command(after_help = "\
Exit codes:
  0  the copy is there
  1  the copy did not pass verification, as the store would not either; none was kept
  2  a mistake in the command
  3  no store, or it cannot be read, or the copy cannot be written

Examples:
  toolwarden store backup /backup/toolwarden.db
  toolwarden store backup --config prod.yaml /backup/prod.db
  toolwarden store backup --store gateway.db --force /backup/latest.db")]
    Backup(BackupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write
    #[arg(value_name = "DEST")]
    pub(crate) target: PathBuf,

    /// The store to use instead of the one in the user's data directory
    ///
    /// The environment variable TOOLWARDEN_STORE does the same.
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,

    /// The gateway settings that name the store
    #[arg(long, short, value_name = "FILE", conflicts_with = "store")]
    pub(crate) config: Option<PathBuf>,

    /// Replace DEST if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Do not verify the copy: the store may be damaged or tampered with
    #[arg(long)]
    pub(crate) unverified: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}
