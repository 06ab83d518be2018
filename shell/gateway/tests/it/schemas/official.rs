//! The official schemas, taken from published packages: the conformance suite carries all revisions but
//! the first, for which the first Python SDK has models.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use toolwarden_testkit::conformance::ConformanceSuite;
use toolwarden_testkit::{Registry, installed};

/// The schema of each revision; none if the packages cannot be installed here.
pub(super) fn schemas() -> Option<&'static Map<String, Value>> {
    static SCHEMAS: OnceLock<Option<Map<String, Value>>> = OnceLock::new();
    SCHEMAS.get_or_init(read).as_ref()
}

fn read() -> Option<Map<String, Value>> {
    let suite = ConformanceSuite::newest()?;
    let programs = installed(Registry::PyPi, &["mcp==1.0.0"])?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schemas");
    let mut all = printed(
        Command::new("node")
            .arg(folder.join("bundled.mjs"))
            .arg(suite.bundle()),
    );
    all.append(&mut printed(
        Command::new(programs.join("python"))
            .arg(folder.join("models.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    ));
    Some(all)
}

fn printed(command: &mut Command) -> Map<String, Value> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}
