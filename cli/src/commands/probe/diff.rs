use std::path::Path;

use toolwarden_trials::{Snapshot, VersionedSnapshot};

use super::snapshot::all_measured;
use super::{comparison, report};
use crate::args::ProbeDiffArgs;
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, ProbeError};

pub(super) fn run(args: &ProbeDiffArgs) -> Result<CommandOutcome, CliError> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let compared = [comparison::compare_snapshots(&old, &new, &args.judge)?];
    let taken: Vec<Snapshot> = [old, new]
        .into_iter()
        .filter_map(|it| match it {
            VersionedSnapshot::V2(taken) => Some(taken),
            VersionedSnapshot::V1(_) => None,
        })
        .collect();
    let place = args.new.display().to_string();
    report::print_comparisons(&compared, &taken, &place, &args.judge)?;
    let measured = taken.iter().all(all_measured);
    Ok(comparison::overall_verdict(&compared, &args.judge, measured).into())
}

/// Reads a snapshot of either version; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<VersionedSnapshot, ProbeError> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        toolwarden_files::read_to_string(path)
    };
    let text = text.map_err(|source| ProbeError::Read {
        path: path.to_owned(),
        source,
    })?;
    Snapshot::read(&text).map_err(|source| ProbeError::Snapshot {
        path: path.to_owned(),
        source,
    })
}
