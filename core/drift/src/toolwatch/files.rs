use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Pointer, type_name};

/// What toolwatch kept of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldFingerprint {
    /// The tool.
    pub tool: String,
    /// The label its user gave it.
    pub version: String,
    /// The hash of its definition.
    pub schema_hash: String,
    /// The hash of the keys and types of its results.
    pub response_pattern_hash: String,
    /// When it was seen, as written.
    pub captured_at: String,
}

/// An alert of toolwatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldAlert {
    /// The tool.
    pub tool: String,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: String,
    /// What was pinned.
    pub old: OldFingerprint,
    /// What was seen.
    pub new: OldFingerprint,
    /// When, as written.
    pub detected_at: String,
    /// `low`, `medium` or `high`.
    pub severity: String,
}

/// Why a file is not one toolwatch wrote.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at {}: {problem}", if pointer.as_str().is_empty() { "the root" } else { pointer.as_str() })]
pub struct InvalidFile {
    /// Where.
    pub pointer: Pointer,
    /// What is wrong there.
    pub problem: FileProblem,
}

/// What is wrong with a file of toolwatch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileProblem {
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What was expected.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A member is missing.
    #[error("`{member}` is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A hash is none.
    #[error("not a SHA-256 in hexadecimal: `{found}`")]
    Hash {
        /// What is there.
        found: String,
    },
    /// A word is not one of those known.
    #[error("unknown {what} `{found}`")]
    Word {
        /// What the word stands for.
        what: &'static str,
        /// The word.
        found: String,
    },
}

/// Reads `baselines.json`.
///
/// # Errors
/// Names the place that is not as toolwatch writes it.
pub fn read_baselines(document: &Value) -> Result<Vec<OldFingerprint>, InvalidFile> {
    let root = Pointer::root();
    let entries = list(document, &root)?.iter().enumerate();
    entries
        .map(|(index, entry)| fingerprint(entry, &root.index(index)))
        .collect()
}

/// Reads `alerts.json`.
///
/// # Errors
/// Names the place that is not as toolwatch writes it.
pub fn read_alerts(document: &Value) -> Result<Vec<OldAlert>, InvalidFile> {
    let root = Pointer::root();
    let entries = list(document, &root)?.iter().enumerate();
    entries
        .map(|(index, entry)| alert(entry, &root.index(index)))
        .collect()
}

fn alert(entry: &Value, at: &Pointer) -> Result<OldAlert, InvalidFile> {
    let types = ["schema_change", "response_change", "behavior_change"];
    let severities = ["low", "medium", "high"];
    Ok(OldAlert {
        tool: text(entry, "tool_name", at)?,
        change_type: word(entry, "change_type", &types, at)?,
        old: fingerprint(
            member(entry, "old_fingerprint", at)?,
            &at.child("old_fingerprint"),
        )?,
        new: fingerprint(
            member(entry, "new_fingerprint", at)?,
            &at.child("new_fingerprint"),
        )?,
        detected_at: text(entry, "detected_at", at)?,
        severity: word(entry, "severity", &severities, at)?,
    })
}

fn fingerprint(entry: &Value, at: &Pointer) -> Result<OldFingerprint, InvalidFile> {
    Ok(OldFingerprint {
        tool: text(entry, "tool_name", at)?,
        version: text(entry, "version", at)?,
        schema_hash: hash(entry, "schema_hash", at)?,
        response_pattern_hash: hash(entry, "response_pattern_hash", at)?,
        captured_at: text(entry, "captured_at", at)?,
    })
}

fn list<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Vec<Value>, InvalidFile> {
    value.as_array().ok_or_else(|| InvalidFile {
        pointer: at.clone(),
        problem: FileProblem::Type {
            expected: "an array",
            found: type_name(value),
        },
    })
}

fn member<'v>(
    entry: &'v Value,
    member: &'static str,
    at: &Pointer,
) -> Result<&'v Value, InvalidFile> {
    let problem = match entry.as_object() {
        Some(members) => match members.get(member) {
            Some(value) => return Ok(value),
            None => FileProblem::Missing { member },
        },
        None => FileProblem::Type {
            expected: "an object",
            found: type_name(entry),
        },
    };
    Err(InvalidFile {
        pointer: at.clone(),
        problem,
    })
}

fn text(entry: &Value, key: &'static str, at: &Pointer) -> Result<String, InvalidFile> {
    let value = member(entry, key, at)?;
    value
        .as_str()
        .map(ToOwned::to_owned)
        .ok_or_else(|| InvalidFile {
            pointer: at.child(key),
            problem: FileProblem::Type {
                expected: "a string",
                found: type_name(value),
            },
        })
}

fn word(
    entry: &Value,
    key: &'static str,
    known: &[&str],
    at: &Pointer,
) -> Result<String, InvalidFile> {
    let found = text(entry, key, at)?;
    if known.contains(&found.as_str()) {
        return Ok(found);
    }
    Err(InvalidFile {
        pointer: at.child(key),
        problem: FileProblem::Word { what: key, found },
    })
}

fn hash(entry: &Value, key: &'static str, at: &Pointer) -> Result<String, InvalidFile> {
    let found = text(entry, key, at)?;
    if found.len() == 64 && found.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(found.to_ascii_lowercase());
    }
    Err(InvalidFile {
        pointer: at.child(key),
        problem: FileProblem::Hash { found },
    })
}
