//! The files people write, and what the program says about them.

mod contracts;
mod presets;
mod suites;

use std::path::Path;

use toolwarden_probe::ProbeFileError;

/// What an error says, each line without the folder of its file.
fn told(error: &ProbeFileError, folder: &Path) -> String {
    let folder = format!("{}/", folder.display());
    error.to_string().replace(&folder, "")
}
