//! Programs that print JSON and end.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use toolwarden_testkit::Registry;

/// How long a client may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);

/// A script among the fixtures.
fn client_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/clients")
        .join(name)
}

/// Runs a script among the fixtures with the packages that are installed there. Scripts for Node get the
/// folder of their packages as the first argument.
pub(crate) fn script_command(registry: Registry, programs: &Path, script: &str) -> Command {
    let script = client_script(script);
    match registry {
        Registry::PyPi => {
            let mut command = Command::new(programs.join("python"));
            command.arg(script);
            command
        }
        Registry::Npm => {
            let mut command = Command::new("node");
            command
                .arg(script)
                .arg(programs.ancestors().nth(2).unwrap());
            command
        }
    }
}

/// The JSON document that a program prints.
pub(crate) async fn printed(command: &mut Command) -> Value {
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
