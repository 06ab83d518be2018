//! The results of the suite.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The result of a check, best first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckStatus {
    /// The requirement is met.
    Success,
    /// A fact that is neither good nor bad.
    Info,
    /// Not checked, because the server does not offer the feature.
    Skipped,
    /// A recommendation is not met.
    Warning,
    /// A requirement is not met.
    Failure,
}

/// The checks of several scenarios.
#[derive(Clone, Debug, Default)]
pub struct ConformanceOutcome {
    /// The status of each check by scenario. A check that runs several times has its worst status.
    pub checks: BTreeMap<String, BTreeMap<String, CheckStatus>>,
    /// The message of each check that did not succeed, by scenario and check.
    pub messages: Vec<String>,
    /// How many checks succeeded, counting every run of a check, as the suite prints it.
    pub passed: usize,
    /// How many checks failed, counted the same way.
    pub failed: usize,
}

/// The suite's trace of messages on the wire, which is not a check.
const TRACE_CHECKS: [&str; 4] = [
    "outgoing-request",
    "incoming-response",
    "incoming-sse-event",
    "stream-closed",
];
/// The length of the timestamp at the end of a directory name, with its dash.
const TIMESTAMP_LENGTH: usize = "-2026-01-01T00-00-00-000Z".len();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckResult {
    id: String,
    status: CheckStatus,
    error_message: Option<String>,
}

impl ConformanceOutcome {
    /// The checks that have one of these statuses, as `scenario/check`.
    #[must_use]
    pub fn checks_with(&self, statuses: &[CheckStatus]) -> Vec<String> {
        let all = self.checks.iter().flat_map(|(scenario, checks)| {
            checks
                .iter()
                .map(move |(check, status)| (scenario, check, status))
        });
        all.filter(|(_, _, status)| statuses.contains(status))
            .map(|(scenario, check, _)| format!("{scenario}/{check}"))
            .collect()
    }

    /// Reads the results that the suite wrote to a directory.
    #[expect(
        clippy::expect_used,
        reason = "results that cannot be read must fail the test"
    )]
    pub(super) fn read(directory: &Path) -> Self {
        let mut outcome = Self::default();
        for entry in fs::read_dir(directory).expect("the results") {
            let entry = entry.expect("the results");
            let name = entry.file_name().to_string_lossy().into_owned();
            let end = name.len().saturating_sub(TIMESTAMP_LENGTH);
            let scenario = name
                .get(..end)
                .and_then(|name| name.strip_prefix("server-"));
            let scenario = scenario.expect("the directory is named after its scenario");
            let checks = match fs::read(entry.path().join("checks.json")) {
                Ok(text) => serde_json::from_slice(&text).expect("checks have a known format"),
                // A scenario that throws leaves its directory empty.
                Err(_) => vec![CheckResult {
                    id: "scenario-ended".to_owned(),
                    status: CheckStatus::Failure,
                    error_message: None,
                }],
            };
            outcome.add_checks(scenario, checks);
        }
        outcome
    }

    pub(super) fn add(&mut self, other: Self) {
        self.checks.extend(other.checks);
        self.messages.extend(other.messages);
        self.passed += other.passed;
        self.failed += other.failed;
    }

    fn add_checks(&mut self, scenario: &str, checks: Vec<CheckResult>) {
        let statuses = self.checks.entry(scenario.to_owned()).or_default();
        for check in checks {
            let CheckResult {
                id,
                status,
                error_message,
            } = check;
            if status == CheckStatus::Info && TRACE_CHECKS.contains(&id.as_str()) {
                continue;
            }
            self.passed += usize::from(status == CheckStatus::Success);
            self.failed += usize::from(status == CheckStatus::Failure);
            if status >= CheckStatus::Skipped {
                let message = error_message.unwrap_or_default();
                self.messages
                    .push(format!("{scenario}/{id}: {status:?}: {message}"));
            }
            let worst = statuses.entry(id).or_insert(status);
            *worst = (*worst).max(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_statuses_counts() {
        let results = tempfile::tempdir().unwrap();
        let scenario = results.path().join("server-a-b-2026-11-16T15-38-17-448Z");
        fs::create_dir(&scenario).unwrap();
        let checks = r#"[
            {"id": "outgoing-request", "status": "INFO"},
            {"id": "one", "status": "SUCCESS", "details": {}},
            {"id": "one", "status": "WARNING", "errorMessage": "late"},
            {"id": "one", "status": "SUCCESS"},
            {"id": "two", "status": "INFO"},
            {"id": "incoming-sse-event", "status": "FAILURE", "errorMessage": "broken"}
        ]"#;
        fs::write(scenario.join("checks.json"), checks).unwrap();
        let outcome = ConformanceOutcome::read(results.path());
        let statuses = [
            ("incoming-sse-event", CheckStatus::Failure),
            ("one", CheckStatus::Warning),
            ("two", CheckStatus::Info),
        ];
        let statuses = statuses.map(|(id, status)| (id.to_owned(), status));
        let expected = BTreeMap::from([("a-b".to_owned(), BTreeMap::from(statuses))]);
        assert_eq!(outcome.checks, expected);
        assert_eq!(
            outcome.messages,
            [
                "a-b/one: Warning: late",
                "a-b/incoming-sse-event: Failure: broken"
            ]
        );
        assert_eq!(outcome.checks_with(&[CheckStatus::Warning]), ["a-b/one"]);
        assert_eq!((outcome.passed, outcome.failed), (2, 1));
    }
}
