//! Snapshots as files.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{JsonError, parse, type_name};

use super::snapshot::Snapshot;
use super::sorted_json::{sorted, to_sorted_text};
use super::tooldrift::{self, TooldriftSnapshot};

/// The maximum number of trials a file may claim. The comparison resamples them one by one.
const MAX_TRIALS: u64 = 1_000_000;

/// A snapshot of either format.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is read at a time, and none is kept in a list"
)]
pub enum VersionedSnapshot {
    /// Written by tooldrift.
    V1(TooldriftSnapshot),
    /// Written by Toolwarden.
    V2(Snapshot),
}

/// The error for a text that is not a snapshot.
#[derive(Debug, Error)]
pub enum InvalidSnapshot {
    /// It is not JSON.
    #[error("not JSON")]
    Json(#[source] JsonError),
    /// It is JSON, but not an object.
    #[error("expected an object, found {0}")]
    NotObject(&'static str),
    /// Its version is unknown.
    #[error("`schema_version` is {found}; supported versions are 1 and 2")]
    Version {
        /// The version in the file.
        found: String,
    },
    /// A member is missing, unknown, or malformed.
    #[error("not a snapshot of version {version}")]
    Member {
        /// The version that it declares.
        version: u64,
        /// What is wrong, with line and column.
        #[source]
        cause: serde_json::Error,
    },
    /// It contradicts itself.
    #[error("at {pointer}: {problem}")]
    Contradiction {
        /// The place of the contradiction.
        pointer: String,
        /// The contradiction.
        problem: &'static str,
    },
}

impl Snapshot {
    /// The snapshot as JSON, with sorted keys.
    #[must_use]
    pub fn to_document(&self) -> Value {
        sorted(serde_json::to_value(self).unwrap_or_default())
    }

    /// The bytes of the file, which are the same for the same trials.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_sorted_text(self.to_document())
    }

    /// Reads a snapshot of either format.
    ///
    /// # Errors
    /// Fails if the text is not a snapshot, or has an unknown version.
    pub fn read(text: &str) -> Result<VersionedSnapshot, InvalidSnapshot> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = parse(text).map_err(InvalidSnapshot::Json)?.value;
        let Value::Object(members) = &document else {
            return Err(InvalidSnapshot::NotObject(type_name(&document)));
        };
        let version = match members.get("schema_version") {
            None => 1,
            Some(found) => match found.as_u64() {
                Some(version @ (1 | 2)) => version,
                _ => {
                    let found = found.to_string().chars().take(40).collect();
                    return Err(InvalidSnapshot::Version { found });
                }
            },
        };
        let invalid = |cause| InvalidSnapshot::Member { version, cause };
        if version == 1 {
            return Ok(VersionedSnapshot::V1(
                tooldrift::read(text).map_err(invalid)?,
            ));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let snapshot = Self::deserialize(&mut reader).map_err(invalid)?;
        check_consistency(&snapshot)?;
        Ok(VersionedSnapshot::V2(snapshot))
    }
}

/// Checks that the trial counts in several places agree, because rates of them are compared elsewhere.
fn check_consistency(snapshot: &Snapshot) -> Result<(), InvalidSnapshot> {
    let contradiction =
        |pointer: String, problem| Err(InvalidSnapshot::Contradiction { pointer, problem });
    let trials = &snapshot.trials;
    if trials.planned > MAX_TRIALS {
        let problem = "more trials than a snapshot may have";
        return contradiction("/trials/planned".to_owned(), problem);
    }
    if trials.measured > trials.planned {
        let problem = "more trials were measured than planned";
        return contradiction("/trials/measured".to_owned(), problem);
    }
    let mut measured = 0_u64;
    for (name, case) in &snapshot.cases {
        let outcomes = case.outcomes.iter().map(|it| it.trials);
        let sum = outcomes.fold(0, u64::saturating_add);
        if sum != case.measured {
            let problem = "the number of outcomes differs from the number of measured trials";
            return contradiction(format!("/cases/{name}/outcomes"), problem);
        }
        measured = measured.saturating_add(sum);
    }
    if measured != trials.measured {
        let problem = "the cases do not add up to the trials that were measured";
        return contradiction("/trials/measured".to_owned(), problem);
    }
    Ok(())
}
