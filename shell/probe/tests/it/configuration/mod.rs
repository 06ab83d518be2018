//! The files that users write, and the program's error messages about them.

mod contracts;
mod presets;
mod suites;

use std::path::Path;

use toolwarden_probe::ProbeFileError;

/// The text of an error, without the folder in each line.
fn error_text(error: &ProbeFileError, folder: &Path) -> String {
    let folder = format!("{}/", folder.display());
    error.to_string().replace(&folder, "")
}
