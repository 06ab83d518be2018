//! How a snapshot serializes values of other modules: as words.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the format, written into the file.
pub(super) const SCHEMA: &str = "toolwarden/probe/snapshot/v2";
/// The version of the format; tooldrift's format is version 1.
pub(super) const VERSION: u64 = 2;

/// Serializes as [`SCHEMA`] and accepts nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct SchemaName;

/// Serializes as [`VERSION`] and accepts nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u64", try_from = "u64")]
pub(super) struct SchemaVersion;

#[derive(Debug, Error)]
#[error("`{0}` is not {SCHEMA}")]
pub(super) struct UnknownSchemaName(String);

#[derive(Debug, Error)]
#[error("version {0} is not {VERSION}")]
pub(super) struct UnknownSchemaVersion(u64);

impl From<SchemaName> for String {
    fn from(_: SchemaName) -> Self {
        SCHEMA.to_owned()
    }
}

impl TryFrom<String> for SchemaName {
    type Error = UnknownSchemaName;

    fn try_from(name: String) -> Result<Self, UnknownSchemaName> {
        if name == SCHEMA {
            Ok(Self)
        } else {
            Err(UnknownSchemaName(name))
        }
    }
}

impl From<SchemaVersion> for u64 {
    fn from(_: SchemaVersion) -> Self {
        VERSION
    }
}

impl TryFrom<u64> for SchemaVersion {
    type Error = UnknownSchemaVersion;

    fn try_from(version: u64) -> Result<Self, UnknownSchemaVersion> {
        if version == VERSION {
            Ok(Self)
        } else {
            Err(UnknownSchemaVersion(version))
        }
    }
}

/// A value that is serialized as text.
pub(super) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Values that are serialized as text, by name.
pub(super) mod texts {
    use std::collections::BTreeMap;
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        values: &BTreeMap<String, impl Display>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(name, value)| (name, value.to_string())))
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
        let values = texts.into_iter().map(|(name, text)| {
            let value = text.parse().map_err(D::Error::custom)?;
            Ok((name, value))
        });
        values.collect()
    }
}

/// The marks of a trial.
pub(super) mod marks {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::trial_mark::TrialMark;

    pub(crate) fn serialize<S: Serializer>(marks: &[TrialMark], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(marks.iter().map(TrialMark::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<TrialMark>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let marks = texts.iter().map(|text| text.parse());
        let mut marks: Vec<TrialMark> =
            marks.collect::<Result<_, _>>().map_err(D::Error::custom)?;
        // INVARIANT: sorted without repeats, so that equal trials have equal marks.
        marks.sort();
        marks.dedup();
        Ok(marks)
    }
}

/// What a case expects.
pub(super) mod expect {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::suite::CallExpectation;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands out a reference"
    )]
    pub(crate) fn serialize<S: Serializer>(
        expect: &CallExpectation,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(expect.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<CallExpectation, D::Error> {
        let word = String::deserialize(from)?;
        let unknown = || D::Error::custom(format_args!("`{word}` is not an expectation"));
        CallExpectation::from_word(&word).ok_or_else(unknown)
    }
}
