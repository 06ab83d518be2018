//! Snapshots as files.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{JsonError, Object, parse, type_name};

use super::snapshot::Snapshot;
use super::tooldrift::{self, SnapshotOne};

/// How many trials a file may claim. What is compared is drawn from them trial by trial.
const MAX_TRIALS: u64 = 1_000_000;

/// A snapshot of either format.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is read at a time, and none is kept in a list"
)]
pub enum AnySnapshot {
    /// Of tooldrift.
    One(SnapshotOne),
    /// Ours.
    Two(Snapshot),
}

/// Why a text is no snapshot.
#[derive(Debug, Error)]
pub enum InvalidSnapshot {
    /// It is no JSON.
    #[error("not JSON")]
    Json(#[source] JsonError),
    /// It is JSON, but no object.
    #[error("expected an object, found {0}")]
    NotObject(&'static str),
    /// It is of a version that is not known.
    #[error("`schema_version` is {found}; known are 1 and 2")]
    Version {
        /// What stands there.
        found: String,
    },
    /// A member is missing, unknown, or not as snapshots have it.
    #[error("not a snapshot of version {version}")]
    Member {
        /// The version it says it is of.
        version: u64,
        /// What is wrong, with line and column.
        #[source]
        cause: serde_json::Error,
    },
    /// It contradicts itself.
    #[error("at {pointer}: {problem}")]
    Contradiction {
        /// Where.
        pointer: String,
        /// How.
        problem: &'static str,
    },
}

impl Snapshot {
    /// The snapshot as JSON, with sorted keys.
    #[must_use]
    pub fn to_document(&self) -> Value {
        sorted(serde_json::to_value(self).unwrap_or_default())
    }

    /// The bytes of the file: the same for the same trials.
    #[must_use]
    pub fn to_text(&self) -> String {
        text(self.to_document())
    }

    /// Reads a snapshot of either format.
    ///
    /// # Errors
    /// The text is none, or of a version that is not known.
    pub fn read(text: &str) -> Result<AnySnapshot, InvalidSnapshot> {
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
            return Ok(AnySnapshot::One(tooldrift::read(text).map_err(invalid)?));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let snapshot = Self::deserialize(&mut reader).map_err(invalid)?;
        consistent(&snapshot)?;
        Ok(AnySnapshot::Two(snapshot))
    }
}

/// Trials are counted in several places, which must agree: a rate of them is compared elsewhere.
fn consistent(snapshot: &Snapshot) -> Result<(), InvalidSnapshot> {
    let contradiction =
        |pointer: String, problem| Err(InvalidSnapshot::Contradiction { pointer, problem });
    let trials = &snapshot.trials;
    if trials.planned > MAX_TRIALS {
        let problem = "more trials than a snapshot can be made of";
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
            let problem = "the outcomes are not as many as the trials that were measured";
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

/// A document with sorted keys, two spaces a level and a newline.
pub(super) fn text(document: Value) -> String {
    let mut text = serde_json::to_string_pretty(&sorted(document)).unwrap_or_default();
    text.push('\n');
    text
}

/// Byte order of UTF-8 is the order of code points, which Python sorts by.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let members = members.into_iter().map(|(key, value)| (key, sorted(value)));
            Value::Object(members.collect::<Object>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
