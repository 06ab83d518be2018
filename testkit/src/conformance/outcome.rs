//! What the suite found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// What a check came to, best first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// As demanded.
    Success,
    /// A fact that is neither good nor bad.
    Info,
    /// Not checked, because the server does not offer what is checked.
    Skipped,
    /// Not as recommended.
    Warning,
    /// Not as demanded.
    Failure,
}

/// The checks of several scenarios.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The status of each check by scenario. A check that is made several times has the worst.
    pub checks: BTreeMap<String, BTreeMap<String, Status>>,
    /// What was said about each check that did not succeed, by scenario and check.
    pub messages: Vec<String>,
    /// How many checks succeeded, each time that one was made: the number that the suite prints.
    pub passed: usize,
    /// How many checks failed, counted likewise.
    pub failed: usize,
}

/// The suite's record of what went over the wire, which is no check.
const TRACES: [&str; 4] = [
    "outgoing-request",
    "incoming-response",
    "incoming-sse-event",
    "stream-closed",
];
/// How long the time at the end of a directory's name is, with its dash.
const STAMP: usize = "-2026-01-01T00-00-00-000Z".len();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: Status,
    error_message: Option<String>,
}

impl Outcome {
    /// The checks that have one of these statuses, as `scenario/check`.
    #[must_use]
    pub fn with(&self, statuses: &[Status]) -> Vec<String> {
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
            let end = name.len().saturating_sub(STAMP);
            let scenario = name
                .get(..end)
                .and_then(|name| name.strip_prefix("server-"));
            let scenario = scenario.expect("a directory is named for its scenario");
            let checks = match fs::read(entry.path().join("checks.json")) {
                Ok(text) => serde_json::from_slice(&text).expect("checks are as known"),
                // A scenario that throws leaves its directory empty.
                Err(_) => vec![Check {
                    id: "scenario-ended".to_owned(),
                    status: Status::Failure,
                    error_message: None,
                }],
            };
            outcome.take(scenario, checks);
        }
        outcome
    }

    pub(super) fn add(&mut self, other: Self) {
        self.checks.extend(other.checks);
        self.messages.extend(other.messages);
        self.passed += other.passed;
        self.failed += other.failed;
    }

    fn take(&mut self, scenario: &str, checks: Vec<Check>) {
        let statuses = self.checks.entry(scenario.to_owned()).or_default();
        for check in checks {
            let Check {
                id,
                status,
                error_message,
            } = check;
            if status == Status::Info && TRACES.contains(&id.as_str()) {
                continue;
            }
            self.passed += usize::from(status == Status::Success);
            self.failed += usize::from(status == Status::Failure);
            if status >= Status::Skipped {
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
        let outcome = Outcome::read(results.path());
        let statuses = [
            ("incoming-sse-event", Status::Failure),
            ("one", Status::Warning),
            ("two", Status::Info),
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
        assert_eq!(outcome.with(&[Status::Warning]), ["a-b/one"]);
        assert_eq!((outcome.passed, outcome.failed), (2, 1));
    }
}
