use std::path::Path;

use toolwarden_drift::contract::{AnySnapshot, Snapshot};

use super::snapshot::all_measured;
use super::{ProbeError, comparing, report};
use crate::args::ProbeDiffArgs;
use crate::error::CliError;
use crate::output::Verdict;

pub(super) fn run(args: &ProbeDiffArgs) -> Result<Verdict, CliError> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let compared = [comparing::snapshots(&old, &new, &args.judge)?];
    let taken: Vec<Snapshot> = [old, new]
        .into_iter()
        .filter_map(|it| match it {
            AnySnapshot::Two(taken) => Some(taken),
            AnySnapshot::One(_) => None,
        })
        .collect();
    let place = args.new.display().to_string();
    report::show(&compared, &taken, &place, &args.judge)?;
    let measured = taken.iter().all(all_measured);
    Ok(comparing::verdict(&compared, &args.judge, measured))
}

fn read(path: &Path) -> Result<AnySnapshot, ProbeError> {
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
