use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Object, parse};

use super::{InvalidTable, SCHEMA};
use crate::dialect::facts::KeywordSupport;

const MEMBERS: &[&str] = &[
    "schema",
    "provider",
    "model_id",
    "wire",
    "at",
    "tool_choice",
    "plain",
    "families",
];
const FAMILY_MEMBERS: &[&str] = &[
    "id", "what", "outcome", "called", "status", "message", "schema",
];

/// The parts of a table document that matter for schemas.
pub(super) struct TableDocument {
    pub(super) provider: String,
    pub(super) model_id: String,
    /// The day the provider was probed.
    pub(super) day: Cow<'static, str>,
    pub(super) families: Vec<FamilyEntry>,
}

pub(super) struct FamilyEntry {
    pub(super) id: String,
    pub(super) outcome: FamilyMeasurement,
}

/// How a provider handled a keyword family, if that was measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyMeasurement {
    Measured(KeywordSupport),
    NotMeasured,
}

impl FamilyMeasurement {
    pub(super) const WORDS: [&'static str; 4] = ["accepted", "rejected", "ignored", "not_measured"];

    fn read(word: &str) -> Option<Self> {
        match word {
            "accepted" => Some(Self::Measured(KeywordSupport::Supported)),
            "rejected" => Some(Self::Measured(KeywordSupport::Refused)),
            "ignored" => Some(Self::Measured(KeywordSupport::Ignored)),
            "not_measured" => Some(Self::NotMeasured),
            _ => None,
        }
    }
}

impl TableDocument {
    pub(super) fn read(text: &str) -> Result<Self, InvalidTable> {
        let value = parse(text).map_err(InvalidTable::NotJson)?.value;
        let found = value.get("schema").and_then(Value::as_str);
        let (Some(SCHEMA), Value::Object(document)) = (found, &value) else {
            return Err(InvalidTable::UnknownSchema {
                found: found.unwrap_or("something else").to_owned(),
            });
        };
        let document = Members {
            members: document,
            place: "the table",
        };
        document.reject_unknown_members(MEMBERS)?;
        let entries = document.get("families", "a list", Value::as_array)?;
        let mut families: Vec<FamilyEntry> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let family = FamilyEntry::read(entry, &format!("family {}", index + 1))?;
            if families.iter().any(|it| it.id == family.id) {
                return Err(InvalidTable::DuplicateFamily { family: family.id });
            }
            families.push(family);
        }
        Ok(Self {
            provider: document.text("provider")?.to_owned(),
            model_id: document.text("model_id")?.to_owned(),
            day: day(document)?,
            families,
        })
    }
}

impl FamilyEntry {
    fn read(entry: &Value, place: &str) -> Result<Self, InvalidTable> {
        let Value::Object(members) = entry else {
            return Err(InvalidTable::InvalidMember {
                member: "families",
                place: "the table".to_owned(),
                expected: "a list of objects",
            });
        };
        let members = Members { members, place };
        members.reject_unknown_members(FAMILY_MEMBERS)?;
        let (id, word) = (members.text("id")?, members.text("outcome")?);
        let outcome =
            FamilyMeasurement::read(word).ok_or_else(|| InvalidTable::UnknownOutcome {
                outcome: word.to_owned(),
                family: id.to_owned(),
            })?;
        Ok(Self {
            id: id.to_owned(),
            outcome,
        })
    }
}

/// The members of an object, and its place.
#[derive(Clone, Copy)]
struct Members<'d> {
    members: &'d Object,
    place: &'d str,
}

impl<'d> Members<'d> {
    fn reject_unknown_members(self, known: &[&str]) -> Result<(), InvalidTable> {
        let unknown = self.members.keys().find(|it| !known.contains(&it.as_str()));
        unknown.map_or(Ok(()), |member| {
            Err(InvalidTable::UnknownMember {
                member: member.clone(),
                place: self.place.to_owned(),
                suggestion: did_you_mean(member, known.iter().copied()),
            })
        })
    }

    fn text(self, member: &'static str) -> Result<&'d str, InvalidTable> {
        self.get(member, "a string", Value::as_str)
    }

    fn get<T: ?Sized>(
        self,
        member: &'static str,
        expected: &'static str,
        read: impl Fn(&'d Value) -> Option<&'d T>,
    ) -> Result<&'d T, InvalidTable> {
        let value = self.members.get(member).and_then(read);
        value.ok_or_else(|| InvalidTable::InvalidMember {
            member,
            place: self.place.to_owned(),
            expected,
        })
    }
}

/// The day the provider was probed, or a phrase that says it is unknown.
fn day(document: Members<'_>) -> Result<Cow<'static, str>, InvalidTable> {
    if matches!(document.members.get("at"), None | Some(Value::Null)) {
        return Ok("on an unknown day".into());
    }
    let text = document.text("at")?;
    let day = text.split_once('T').map(|(day, _)| day);
    let parts: Vec<&str> = day.into_iter().flat_map(|it| it.split('-')).collect();
    let digits = |part: &str, length: usize| {
        part.len() == length && part.chars().all(|it| it.is_ascii_digit())
    };
    match (day, parts.as_slice()) {
        (Some(day), [y, m, d]) if digits(y, 4) && digits(m, 2) && digits(d, 2) => {
            Ok(day.to_owned().into())
        }
        _ => Err(InvalidTable::InvalidMember {
            member: "at",
            place: document.place.to_owned(),
            expected: "a time in RFC 3339",
        }),
    }
}
