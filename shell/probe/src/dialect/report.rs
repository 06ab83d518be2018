use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use toolwarden_model::reply::{UnknownWire, Wire};

use super::family::Family;

/// The name of the format.
const SCHEMA: &str = "toolwarden/probe/dialect/v1";

/// What a provider takes, as of a day.
#[derive(Clone, Debug, PartialEq)]
pub struct DialectReport {
    /// The provider.
    pub provider: String,
    /// The model that was asked for.
    pub model_id: String,
    /// How the endpoint speaks.
    pub wire: Wire,
    /// When, in RFC 3339.
    pub at: Option<String>,
    /// The choice that the families were sent with: `required`, or `auto` where that is refused.
    pub tool_choice: String,
    /// What became of a plain schema.
    pub plain: FamilyReport,
    /// What became of each family.
    pub families: Vec<FamilyReport>,
}

/// What a provider did with one family of keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyReport {
    /// The family.
    pub id: String,
    /// What it is about.
    pub what: String,
    /// What the provider did.
    pub outcome: FamilyOutcome,
    /// Whether the tool was called.
    pub called: bool,
    /// The status of the answer, if one came.
    pub status: Option<u16>,
    /// The provider's words, or what the schema says against the call.
    pub message: Option<String>,
    /// The schema that was sent.
    pub schema: Value,
}

/// What a provider did with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyOutcome {
    /// It took it, and no call went against it. Whether there was one is told beside.
    Accepted,
    /// It refused the request.
    Rejected,
    /// It took it, and the call that was asked for went against it.
    Ignored,
    /// Nobody knows.
    NotMeasured,
}

/// Why a document is no dialect table.
#[derive(Debug, Error)]
pub enum DialectError {
    /// It is not JSON of this shape.
    #[error("not a dialect table: {0}")]
    Shape(#[from] serde_json::Error),
    /// It is of another format, or of a version that is not known.
    #[error("the document is `{found}`, expected `{SCHEMA}`")]
    Schema {
        /// What it says it is.
        found: String,
    },
    /// The wire is unknown.
    #[error(transparent)]
    Wire(#[from] UnknownWire),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    provider: String,
    model_id: String,
    wire: String,
    at: Option<String>,
    tool_choice: String,
    plain: FamilyReport,
    families: Vec<FamilyReport>,
}

impl FamilyReport {
    /// A family of which nothing is known.
    pub(super) fn not_measured(family: &Family) -> Self {
        Self {
            id: family.id.to_owned(),
            what: family.what.to_owned(),
            outcome: FamilyOutcome::NotMeasured,
            called: false,
            status: None,
            message: None,
            schema: family.schema.clone(),
        }
    }
}

impl DialectReport {
    /// The document of the report, as a file holds it.
    ///
    /// # Errors
    /// None in fact: everything in it is JSON.
    pub fn to_json(&self) -> Result<String, DialectError> {
        let document = Document {
            schema: SCHEMA.to_owned(),
            provider: self.provider.clone(),
            model_id: self.model_id.clone(),
            wire: self.wire.as_str().to_owned(),
            at: self.at.clone(),
            tool_choice: self.tool_choice.clone(),
            plain: self.plain.clone(),
            families: self.families.clone(),
        };
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads the document of a report.
    ///
    /// # Errors
    /// The text is none.
    pub fn of_json(text: &str) -> Result<Self, DialectError> {
        let value: Value = serde_json::from_str(text)?;
        let found = value.get("schema").and_then(Value::as_str);
        if found != Some(SCHEMA) {
            return Err(DialectError::Schema {
                found: found.unwrap_or("something else").to_owned(),
            });
        }
        let Document {
            schema: _,
            provider,
            model_id,
            wire,
            at,
            tool_choice,
            plain,
            families,
        } = serde_json::from_value(value)?;
        Ok(Self {
            provider,
            model_id,
            wire: wire.parse()?,
            at,
            tool_choice,
            plain,
            families,
        })
    }
}
