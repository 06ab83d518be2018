//! What a provider does with families of keywords, as `toolwarden probe dialect` saved it.

mod document;
mod families;

use std::borrow::Cow;

use thiserror::Error;
use toolwarden_model::closest;
use toolwarden_model::json::JsonError;

use super::facts::{Facts, Keywords, Taken};
use super::known::ANYTHING;
use super::rules;
use document::{Document, Outcome};
use families::{Decides, FAMILIES};

/// The name of the format.
const SCHEMA: &str = "toolwarden/probe/dialect/v1";

/// What a provider was found to take on a day, instead of a dialect that is shipped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialectTable {
    /// The provider and the model that was asked.
    pub name: String,
    /// What follows for schemas and names.
    pub facts: Facts,
    /// The families of which the provider has not said what it does. Nothing is found in them.
    pub not_measured: Vec<String>,
}

/// Why a text is no dialect table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidTable {
    /// It is not JSON.
    #[error("not JSON at line {}, column {}: {}", .0.position.line, .0.position.column, .0.kind)]
    NotJson(JsonError),
    /// It is of another format, or of a version that is not known.
    #[error("the document is `{found}`, expected `{SCHEMA}`")]
    OtherSchema {
        /// What it says it is.
        found: String,
    },
    /// A member is not part of the format.
    #[error("`{member}` is no member of {place}{suggestion}")]
    UnknownMember {
        /// The member.
        member: String,
        /// Where it stands.
        place: String,
        /// The member that may be meant.
        suggestion: String,
    },
    /// A member is missing, or of another kind than the format has.
    #[error("`{member}` of {place} must be {expected}")]
    Member {
        /// The member.
        member: &'static str,
        /// Where it belongs.
        place: String,
        /// What it must be.
        expected: &'static str,
    },
    /// An outcome is none of the four.
    #[error(
        "the outcome `{outcome}` of the family `{family}` is unknown{}",
        closest(outcome, Outcome::WORDS)
    )]
    UnknownOutcome {
        /// The word.
        outcome: String,
        /// Of which family.
        family: String,
    },
    /// Something was measured that nobody here understands. A table that is half understood
    /// misleads.
    #[error(
        "the family `{family}` is unknown{}",
        closest(family, DialectTable::families())
    )]
    UnknownFamily {
        /// The family.
        family: String,
    },
    /// A family is there twice.
    #[error("the family `{family}` is there twice")]
    Twice {
        /// The family.
        family: String,
    },
    /// The provider has not said what it does with any family.
    #[error("nothing was measured, so nothing could be found")]
    NothingMeasured,
}

impl DialectTable {
    /// Reads the document of a table.
    ///
    /// # Errors
    /// Says why the text is none.
    pub fn read(text: &str) -> Result<Self, InvalidTable> {
        let document = Document::read(text)?;
        let mut measured = Measured::default();
        let mut not_measured = Vec::new();
        // A tuple of draft 7 has to name its draft. Where that is refused, nobody knows about tuples.
        let refuses_draft = document
            .families
            .iter()
            .any(|it| it.id == "$schema" && it.outcome == Outcome::Taken(Taken::Refused));
        for family in document.families {
            let row = FAMILIES.iter().find(|(id, _)| *id == family.id);
            match (row, family.outcome) {
                (_, Outcome::NotMeasured) => not_measured.push(family.id),
                (Some(("items-list", _)), Outcome::Taken(Taken::Refused)) if refuses_draft => {
                    not_measured.push(family.id);
                }
                (None, Outcome::Taken(_)) => {
                    return Err(InvalidTable::UnknownFamily { family: family.id });
                }
                (Some((id, decides)), Outcome::Taken(taken)) => measured.add(id, decides, taken),
            }
        }
        if measured.seen.is_empty() {
            return Err(InvalidTable::NothingMeasured);
        }
        let unasked = Self::families()
            .filter(|id| !measured.seen.contains(id) && !not_measured.iter().any(|it| it == id))
            .map(str::to_owned)
            .collect::<Vec<String>>();
        not_measured.extend(unasked);
        let name = format!("{}/{}", document.provider, document.model_id);
        Ok(Self {
            facts: Facts {
                verified_on: document.day,
                source: format!("probed {name}").into(),
                ..measured.into_facts()
            },
            name,
            not_measured,
        })
    }

    /// The families that a table may speak of.
    pub fn families() -> impl Iterator<Item = &'static str> {
        FAMILIES.iter().map(|(id, _)| *id)
    }
}

/// What the families of a table add up to.
struct Measured {
    seen: Vec<&'static str>,
    facts: Facts,
    refused: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// What becomes of keywords that nobody defines.
    undefined: Taken,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            seen: Vec::new(),
            facts: Facts {
                untyped_root: Taken::Honoured,
                ..ANYTHING
            },
            refused: Vec::new(),
            ignored: Vec::new(),
            undefined: Taken::Honoured,
        }
    }
}

impl Measured {
    fn add(&mut self, id: &'static str, decides: &Decides, taken: Taken) {
        self.seen.push(id);
        match decides {
            Decides::Fact(decide) => decide(&mut self.facts, taken),
            Decides::Undefined => self.undefined = taken,
            Decides::Keywords(keywords) => match taken {
                Taken::Honoured => {}
                Taken::Ignored => self.ignored.extend(*keywords),
                Taken::Refused => self.refused.extend(*keywords),
            },
        }
    }

    fn into_facts(mut self) -> Facts {
        self.tell_references_apart();
        self.tell_root_unions_apart();
        let Self {
            seen: _,
            facts,
            refused,
            ignored,
            undefined,
        } = self;
        let defined_but = |these: &[&'static str]| -> Cow<'static, [&'static str]> {
            rules::defined().filter(|it| !these.contains(it)).collect()
        };
        let keywords = match undefined {
            Taken::Refused => Keywords::Only(defined_but(&refused)),
            Taken::Honoured | Taken::Ignored => Keywords::AllBut(refused.into()),
        };
        let ignored = match undefined {
            Taken::Ignored => Keywords::AllBut(defined_but(&ignored)),
            Taken::Honoured | Taken::Refused => Keywords::Only(ignored.into()),
        };
        Facts {
            keywords,
            ignored,
            ..facts
        }
    }

    /// Where references into `definitions` are honoured, it is `$defs` that is not.
    fn tell_references_apart(&mut self) {
        let old_place = self.seen.contains(&"definitions")
            && !self.refused.contains(&"definitions")
            && !self.ignored.contains(&"definitions");
        let taken = self.facts.references.allowed;
        if old_place && taken != Taken::Honoured {
            self.facts.references.allowed = Taken::Honoured;
            self.add("$ref", &Decides::Keywords(&["$defs"]), taken);
        }
    }

    /// A union at the root stands beside a type. Where it was not tried, the union inside tells.
    fn tell_root_unions_apart(&mut self) {
        if !self.seen.contains(&"anyOf-at-root") {
            self.facts.type_beside_root_union = self.facts.type_beside_union;
        }
    }
}
