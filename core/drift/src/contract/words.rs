//! How values of other modules stand in a snapshot: as words.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the format, which says so in the file.
pub(super) const SCHEMA: &str = "toolwarden/probe/snapshot/v2";
/// Its version, beside that of tooldrift, which is 1.
pub(super) const VERSION: u64 = 2;

/// Stands for [`SCHEMA`] and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct SchemaName;

/// Stands for [`VERSION`] and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u64", try_from = "u64")]
pub(super) struct SchemaVersion;

#[derive(Debug, Error)]
#[error("`{0}` is not {SCHEMA}")]
pub(super) struct OtherSchema(String);

#[derive(Debug, Error)]
#[error("version {0} is not {VERSION}")]
pub(super) struct OtherVersion(u64);

impl From<SchemaName> for String {
    fn from(_: SchemaName) -> Self {
        SCHEMA.to_owned()
    }
}

impl TryFrom<String> for SchemaName {
    type Error = OtherSchema;

    fn try_from(name: String) -> Result<Self, OtherSchema> {
        if name == SCHEMA {
            Ok(Self)
        } else {
            Err(OtherSchema(name))
        }
    }
}

impl From<SchemaVersion> for u64 {
    fn from(_: SchemaVersion) -> Self {
        VERSION
    }
}

impl TryFrom<u64> for SchemaVersion {
    type Error = OtherVersion;

    fn try_from(version: u64) -> Result<Self, OtherVersion> {
        if version == VERSION {
            Ok(Self)
        } else {
            Err(OtherVersion(version))
        }
    }
}

/// A value that is shown and read as text.
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

/// Values that are shown and read as text, by name.
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

    use crate::contract::mark::Mark;

    pub(crate) fn serialize<S: Serializer>(marks: &[Mark], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(marks.iter().map(Mark::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Mark>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let marks = texts.iter().map(|text| text.parse());
        let mut marks: Vec<Mark> = marks.collect::<Result<_, _>>().map_err(D::Error::custom)?;
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

    use crate::contract::suite::Expect;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands out a reference"
    )]
    pub(crate) fn serialize<S: Serializer>(expect: &Expect, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(expect.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Expect, D::Error> {
        let word = String::deserialize(from)?;
        let unknown = || D::Error::custom(format_args!("`{word}` is no expectation"));
        Expect::from_word(&word).ok_or_else(unknown)
    }
}
