use std::path::Path;

use crate::error::{CliError, ProbeError};
use crate::output::OutputFile;

/// Writes a file that was asked for, and the folders it stands in. A place that cannot be written to
/// is a mistake in the command, not something that could not be measured.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), ProbeError> {
    let failed = |source| ProbeError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let written = || -> Result<(), CliError> {
        let mut out = OutputFile::open(Some(path))?;
        out.write(text)?;
        out.finish()
    };
    written().map_err(|error| match error {
        CliError::Write { source, .. } => failed(source),
        other => failed(std::io::Error::other(other)),
    })
}
