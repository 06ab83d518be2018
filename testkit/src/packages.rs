//! Real servers from npm and PyPI, installed once into a cache.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a package comes from.
#[derive(Clone, Copy, Debug)]
pub enum Registry {
    /// Programs in `node_modules/.bin`.
    Npm,
    /// Programs of a virtual environment.
    PyPi,
}

/// Installs packages (`name@version` or `name==version`) unless they are already installed, and
/// returns the directory with their programs. Returns `None` if they cannot be installed here, and
/// prints the reason, because a skipped test must not look like a passed one.
///
/// # Panics
/// The cache cannot be written, or the environment forbids skipping tests.
#[must_use]
#[expect(clippy::expect_used, reason = "a test cannot run without its cache")]
pub fn installed(registry: Registry, packages: &[&str]) -> Option<PathBuf> {
    if std::env::var_os("TOOLWARDEN_TEST_FAST").is_some() {
        report_skip(&format!(
            "{packages:?}: `./test --fast` uses nothing from a network"
        ));
        return None;
    }
    let key: String = packages
        .join("+")
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() || ".-+".contains(char) {
                char
            } else {
                '_'
            }
        })
        .collect();
    let directory = cache_folder().join(key);
    fs::create_dir_all(&directory).expect("the cache of servers is writable");
    // Tests run in parallel and in several processes; closing the file releases the lock.
    let lock = File::create(directory.join("lock")).expect("the cache of servers is writable");
    lock.lock().expect("the cache of servers is writable");
    let programs = match registry {
        Registry::Npm => directory.join("node_modules/.bin"),
        Registry::PyPi => directory.join("venv/bin"),
    };
    let complete = directory.join("complete");
    if complete.exists() {
        return Some(programs);
    }
    let outcome = match registry {
        Registry::Npm => npm(&directory, packages),
        Registry::PyPi => pip(&directory, packages),
    };
    match outcome {
        Ok(()) => {
            File::create(complete).expect("the cache of servers is writable");
            Some(programs)
        }
        Err(reason) => {
            report_skip(&format!("{packages:?} cannot be installed: {reason}"));
            None
        }
    }
}

/// Reports that a test is skipped, and why. `./test` prints these reports at its end.
///
/// # Panics
/// The cache cannot be written, or the environment forbids skipping tests.
#[expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a skipped test must say so"
)]
pub fn report_skip(reason: &str) {
    // For continuous integration, where a skipped test would go unnoticed.
    let required = std::env::var_os("TOOLWARDEN_TEST_REQUIRE_SERVERS").is_some();
    assert!(!required, "{reason}");
    let line = format!("SKIPPED: {reason}");
    eprintln!("{line}");
    // Test runners hide the output of passing tests; `./test` shows this at its end.
    fs::create_dir_all(cache_folder()).expect("the cache of servers is writable");
    let told = File::options()
        .append(true)
        .create(true)
        .open(cache_folder().join("skipped"));
    let told = told.and_then(|mut file| writeln!(file, "{line}"));
    told.expect("the cache of servers is writable");
}

fn cache_folder() -> PathBuf {
    std::env::var_os("TOOLWARDEN_TEST_CACHE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-servers"),
        PathBuf::from,
    )
}

fn npm(directory: &Path, packages: &[&str]) -> Result<(), String> {
    run(Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--prefix",
        ])
        .arg(directory)
        .args(packages))
}

fn pip(directory: &Path, packages: &[&str]) -> Result<(), String> {
    let venv = directory.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(venv.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
        ])
        .args(packages))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| !line.contains("warn"))
        .take(3)
        .collect();
    Err(lines.join("; "))
}
