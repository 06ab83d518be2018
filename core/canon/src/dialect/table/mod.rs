//! What a provider does with families of keywords, as `toolwarden probe dialect` saved it.

mod document;
mod families;

use std::borrow::Cow;

use thiserror::Error;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::JsonError;

use super::facts::{DialectFacts, KeywordSet, KeywordSupport};
use super::provider_facts::UNRESTRICTED;
use super::rules;
use document::{FamilyMeasurement, TableDocument};
use families::{FAMILIES, FamilyEffect};

/// The name of the format.
const SCHEMA: &str = "toolwarden/probe/dialect/v1";

/// What a provider accepted when it was probed; used instead of a built-in dialect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialectTable {
    /// The provider and the model that was probed.
    pub name: String,
    /// The facts that follow for schemas and names.
    pub facts: DialectFacts,
    /// The families that were not measured. Lint finds nothing in them.
    pub not_measured: Vec<String>,
}

/// Why a text is not a valid dialect table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidTable {
    /// The text is not JSON.
    #[error("not JSON at line {}, column {}: {}", .0.position.line, .0.position.column, .0.kind)]
    NotJson(JsonError),
    /// The document has another format, or an unknown version.
    #[error("the document is `{found}`, expected `{SCHEMA}`")]
    UnknownSchema {
        /// The format the document names.
        found: String,
    },
    /// A member is not part of the format.
    #[error("`{member}` is not a member of {place}{suggestion}")]
    UnknownMember {
        /// The member.
        member: String,
        /// The object that has the member.
        place: String,
        /// The member that may be meant.
        suggestion: String,
    },
    /// A member is missing or has the wrong type.
    #[error("`{member}` of {place} must be {expected}")]
    InvalidMember {
        /// The member.
        member: &'static str,
        /// Where it belongs.
        place: String,
        /// What it must be.
        expected: &'static str,
    },
    /// An outcome is not one of the four that exist.
    #[error(
        "the outcome `{outcome}` of the family `{family}` is unknown{}",
        did_you_mean(outcome, FamilyMeasurement::WORDS)
    )]
    UnknownOutcome {
        /// The word.
        outcome: String,
        /// The family it belongs to.
        family: String,
    },
    /// The table measures a family that this version does not know. Reading the rest alone would
    /// mislead.
    #[error(
        "the family `{family}` is unknown{}",
        did_you_mean(family, DialectTable::families())
    )]
    UnknownFamily {
        /// The family.
        family: String,
    },
    /// A family is listed twice.
    #[error("the family `{family}` is listed twice")]
    DuplicateFamily {
        /// The family.
        family: String,
    },
    /// No family was measured.
    #[error("no family was measured, so lint cannot find anything")]
    NothingMeasured,
}

impl DialectTable {
    /// Reads the document of a table.
    ///
    /// # Errors
    /// Says why the text is not a valid table.
    pub fn read(text: &str) -> Result<Self, InvalidTable> {
        let document = TableDocument::read(text)?;
        let mut measured = FactsBuilder::default();
        let mut not_measured = Vec::new();
        // A tuple of draft 7 has to name its draft. If the provider refuses `$schema`, a refused tuple
        // says nothing about tuples.
        let refuses_draft = document.families.iter().any(|it| {
            it.id == "$schema" && it.outcome == FamilyMeasurement::Measured(KeywordSupport::Refused)
        });
        for family in document.families {
            let row = FAMILIES.iter().find(|(id, _)| *id == family.id);
            match (row, family.outcome) {
                (_, FamilyMeasurement::NotMeasured) => not_measured.push(family.id),
                (Some(("items-list", _)), FamilyMeasurement::Measured(KeywordSupport::Refused))
                    if refuses_draft =>
                {
                    not_measured.push(family.id);
                }
                (None, FamilyMeasurement::Measured(_)) => {
                    return Err(InvalidTable::UnknownFamily { family: family.id });
                }
                (Some((id, decides)), FamilyMeasurement::Measured(taken)) => {
                    measured.add(id, decides, taken)
                }
            }
        }
        if measured.families.is_empty() {
            return Err(InvalidTable::NothingMeasured);
        }
        let unasked = Self::families()
            .filter(|id| !measured.families.contains(id) && !not_measured.iter().any(|it| it == id))
            .map(str::to_owned)
            .collect::<Vec<String>>();
        not_measured.extend(unasked);
        let name = format!("{}/{}", document.provider, document.model_id);
        Ok(Self {
            facts: DialectFacts {
                verified_on: document.day,
                source: format!("probed {name}").into(),
                ..measured.into_facts()
            },
            name,
            not_measured,
        })
    }

    /// The families that a table may contain.
    pub fn families() -> impl Iterator<Item = &'static str> {
        FAMILIES.iter().map(|(id, _)| *id)
    }
}

/// Builds dialect facts from the measured families of a table.
struct FactsBuilder {
    families: Vec<&'static str>,
    facts: DialectFacts,
    refused: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// How the provider handles keywords that no specification defines.
    undefined: KeywordSupport,
}

impl Default for FactsBuilder {
    fn default() -> Self {
        Self {
            families: Vec::new(),
            facts: DialectFacts {
                untyped_root: KeywordSupport::Supported,
                ..UNRESTRICTED
            },
            refused: Vec::new(),
            ignored: Vec::new(),
            undefined: KeywordSupport::Supported,
        }
    }
}

impl FactsBuilder {
    fn add(&mut self, id: &'static str, decides: &FamilyEffect, taken: KeywordSupport) {
        self.families.push(id);
        match decides {
            FamilyEffect::Fact(decide) => decide(&mut self.facts, taken),
            FamilyEffect::Undefined => self.undefined = taken,
            FamilyEffect::Keywords(keywords) => match taken {
                KeywordSupport::Supported => {}
                KeywordSupport::Ignored => self.ignored.extend(*keywords),
                KeywordSupport::Refused => self.refused.extend(*keywords),
            },
        }
    }

    fn into_facts(mut self) -> DialectFacts {
        self.resolve_reference_support();
        self.resolve_root_union_support();
        let Self {
            families: _,
            facts,
            refused,
            ignored,
            undefined,
        } = self;
        let defined_but = |these: &[&'static str]| -> Cow<'static, [&'static str]> {
            rules::defined_keywords()
                .filter(|it| !these.contains(it))
                .collect()
        };
        let keywords = match undefined {
            KeywordSupport::Refused => KeywordSet::Only(defined_but(&refused)),
            KeywordSupport::Supported | KeywordSupport::Ignored => {
                KeywordSet::AllExcept(refused.into())
            }
        };
        let ignored = match undefined {
            KeywordSupport::Ignored => KeywordSet::AllExcept(defined_but(&ignored)),
            KeywordSupport::Supported | KeywordSupport::Refused => KeywordSet::Only(ignored.into()),
        };
        DialectFacts {
            keywords,
            ignored,
            ..facts
        }
    }

    /// If the provider honours `definitions` but not a reference into `$defs`, it supports references
    /// and does not support `$defs`.
    fn resolve_reference_support(&mut self) {
        let old_place = self.families.contains(&"definitions")
            && !self.refused.contains(&"definitions")
            && !self.ignored.contains(&"definitions");
        let taken = self.facts.references.allowed;
        if old_place && taken != KeywordSupport::Supported {
            self.facts.references.allowed = KeywordSupport::Supported;
            self.add("$ref", &FamilyEffect::Keywords(&["$defs"]), taken);
        }
    }

    /// A union at the root always has a type beside it. If the probe did not measure that, the result
    /// for inner unions is used.
    fn resolve_root_union_support(&mut self) {
        if !self.families.contains(&"anyOf-at-root") {
            self.facts.type_beside_root_union = self.facts.type_beside_union;
        }
    }
}
