use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Pointer, type_name};

/// What toolwatch stored about a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolwatchFingerprint {
    /// The tool.
    pub tool: String,
    /// The label that the user gave it.
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
pub struct ToolwatchAlert {
    /// The tool.
    pub tool: String,
    /// `schema_change`, `response_change` or `behavior_change`.
    pub change_type: String,
    /// The pinned fingerprint.
    pub old: ToolwatchFingerprint,
    /// The observed fingerprint.
    pub new: ToolwatchFingerprint,
    /// The time, as written.
    pub detected_at: String,
    /// `low`, `medium` or `high`.
    pub severity: String,
}

/// The error for a file that toolwatch did not write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at {}: {problem}", if pointer.as_str().is_empty() { "the root" } else { pointer.as_str() })]
pub struct InvalidToolwatchFile {
    /// The place of the error.
    pub pointer: Pointer,
    /// What is wrong there.
    pub problem: ToolwatchFileProblem,
}

/// What is wrong with a file of toolwatch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToolwatchFileProblem {
    /// A value of another kind was expected.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What was expected.
        expected: &'static str,
        /// What the file contains.
        found: &'static str,
    },
    /// A member is missing.
    #[error("`{member}` is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A value is not a hash.
    #[error("not a SHA-256 in hexadecimal: `{found}`")]
    Hash {
        /// What the file contains.
        found: String,
    },
    /// An unknown word.
    #[error("unknown {what} `{found}`")]
    Word {
        /// What the word is for.
        what: &'static str,
        /// The word.
        found: String,
    },
}

/// Reads `baselines.json`.
///
/// # Errors
/// Names the place that differs from the format that toolwatch writes.
pub fn read_baselines(document: &Value) -> Result<Vec<ToolwatchFingerprint>, InvalidToolwatchFile> {
    let root = Pointer::root();
    let entries = list(document, &root)?.iter().enumerate();
    entries
        .map(|(index, entry)| fingerprint(entry, &root.index(index)))
        .collect()
}

/// Reads `alerts.json`.
///
/// # Errors
/// Names the place that differs from the format that toolwatch writes.
pub fn read_alerts(document: &Value) -> Result<Vec<ToolwatchAlert>, InvalidToolwatchFile> {
    let root = Pointer::root();
    let entries = list(document, &root)?.iter().enumerate();
    entries
        .map(|(index, entry)| alert(entry, &root.index(index)))
        .collect()
}

fn alert(entry: &Value, at: &Pointer) -> Result<ToolwatchAlert, InvalidToolwatchFile> {
    let types = ["schema_change", "response_change", "behavior_change"];
    let severities = ["low", "medium", "high"];
    Ok(ToolwatchAlert {
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

fn fingerprint(entry: &Value, at: &Pointer) -> Result<ToolwatchFingerprint, InvalidToolwatchFile> {
    Ok(ToolwatchFingerprint {
        tool: text(entry, "tool_name", at)?,
        version: text(entry, "version", at)?,
        schema_hash: hash(entry, "schema_hash", at)?,
        response_pattern_hash: hash(entry, "response_pattern_hash", at)?,
        captured_at: text(entry, "captured_at", at)?,
    })
}

fn list<'v>(value: &'v Value, at: &Pointer) -> Result<&'v Vec<Value>, InvalidToolwatchFile> {
    value.as_array().ok_or_else(|| InvalidToolwatchFile {
        pointer: at.clone(),
        problem: ToolwatchFileProblem::Type {
            expected: "an array",
            found: type_name(value),
        },
    })
}

fn member<'v>(
    entry: &'v Value,
    member: &'static str,
    at: &Pointer,
) -> Result<&'v Value, InvalidToolwatchFile> {
    let problem = match entry.as_object() {
        Some(members) => match members.get(member) {
            Some(value) => return Ok(value),
            None => ToolwatchFileProblem::Missing { member },
        },
        None => ToolwatchFileProblem::Type {
            expected: "an object",
            found: type_name(entry),
        },
    };
    Err(InvalidToolwatchFile {
        pointer: at.clone(),
        problem,
    })
}

fn text(entry: &Value, key: &'static str, at: &Pointer) -> Result<String, InvalidToolwatchFile> {
    let value = member(entry, key, at)?;
    value
        .as_str()
        .map(ToOwned::to_owned)
        .ok_or_else(|| InvalidToolwatchFile {
            pointer: at.child(key),
            problem: ToolwatchFileProblem::Type {
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
) -> Result<String, InvalidToolwatchFile> {
    let found = text(entry, key, at)?;
    if known.contains(&found.as_str()) {
        return Ok(found);
    }
    Err(InvalidToolwatchFile {
        pointer: at.child(key),
        problem: ToolwatchFileProblem::Word { what: key, found },
    })
}

fn hash(entry: &Value, key: &'static str, at: &Pointer) -> Result<String, InvalidToolwatchFile> {
    let found = text(entry, key, at)?;
    if found.len() == 64 && found.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(found.to_ascii_lowercase());
    }
    Err(InvalidToolwatchFile {
        pointer: at.child(key),
        problem: ToolwatchFileProblem::Hash { found },
    })
}
