use std::path::{Path, PathBuf};

use serde_json::Value;

/// The directory with the corpus and the vectors, if it exists beside this clone.
///
/// If not, prints a line that counts as a skip.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn shared_folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let found = std::env::var_os("TOOLWARDEN_SHARED").map_or(beside, PathBuf::from);
    if found.join("corpus").is_dir() {
        return Some(found);
    }
    eprintln!(
        "SKIPPED: no corpus beside this clone; set TOOLWARDEN_SHARED to a directory that holds one"
    );
    None
}

/// A file of acceptance vectors.
///
/// # Panics
/// The file exists and is not JSON.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "a broken vector file must fail the test that reads it"
)]
pub fn read_vectors(name: &str) -> Option<Value> {
    let path = shared_folder()?.join("acceptance/vectors").join(name);
    let text = std::fs::read_to_string(&path).expect("vector file is readable");
    Some(serde_json::from_str(&text).expect("vector file is JSON"))
}
