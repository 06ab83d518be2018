//! Programs that print JSON and end.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a client may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A script among the fixtures.
pub(super) fn client_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/clients")
        .join(name)
}

/// The JSON document that a program prints.
pub(super) async fn printed(command: &mut Command) -> Value {
    let command = command
        // Nothing is written beside the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = timeout(LIMIT, command.output()).await;
    let Output {
        status,
        stdout,
        stderr,
    } = ended
        .unwrap_or_else(|_| panic!("{command:?} does not end"))
        .unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {errors}");
    serde_json::from_slice(&stdout).unwrap_or_else(|_| {
        let said = String::from_utf8_lossy(&stdout);
        panic!("{command:?}: {said}\n{errors}")
    })
}
