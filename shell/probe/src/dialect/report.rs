use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use toolwarden_model::reply::{UnknownWireApi, WireApi};

use super::family::KeywordFamily;

/// The name of the format.
const SCHEMA: &str = "toolwarden/probe/dialect/v1";

/// Which schemas a provider accepts, as of a date.
#[derive(Clone, Debug, PartialEq)]
pub struct DialectReport {
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model_id: String,
    /// The wire protocol of the endpoint.
    pub wire: WireApi,
    /// The time of the test, in RFC 3339.
    pub at: Option<String>,
    /// The `tool_choice` that the families were sent with: `required`, or `auto` if that is
    /// refused.
    pub tool_choice: String,
    /// The outcome for a plain schema.
    pub plain: KeywordFamilyReport,
    /// The outcome for each family.
    pub families: Vec<KeywordFamilyReport>,
}

/// How a provider handled one family of keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordFamilyReport {
    /// The family.
    pub id: String,
    /// A short description.
    pub what: String,
    /// The outcome.
    pub outcome: KeywordFamilyOutcome,
    /// Whether the tool was called.
    pub called: bool,
    /// The HTTP status, if a response arrived.
    pub status: Option<u16>,
    /// The provider's message, or how the call violates the schema.
    pub message: Option<String>,
    /// The schema that was sent.
    pub schema: Value,
}

/// How a provider handled a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeywordFamilyOutcome {
    /// It accepted the schema, and no call violated it. `called` says whether there was a call.
    Accepted,
    /// It refused the request.
    Rejected,
    /// It accepted the schema, and the requested call violated it.
    Ignored,
    /// The outcome is unknown.
    NotMeasured,
}

/// Why a document is not a dialect table.
#[derive(Debug, Error)]
pub enum DialectError {
    /// It is not JSON of the expected structure.
    #[error("not a dialect table: {0}")]
    Shape(#[from] serde_json::Error),
    /// It has another format, or an unknown version.
    #[error("the document is `{found}`, expected `{SCHEMA}`")]
    Schema {
        /// The format it names.
        found: String,
    },
    /// The wire is unknown.
    #[error(transparent)]
    Wire(#[from] UnknownWireApi),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportDocument {
    schema: String,
    provider: String,
    model_id: String,
    wire: String,
    at: Option<String>,
    tool_choice: String,
    plain: KeywordFamilyReport,
    families: Vec<KeywordFamilyReport>,
}

impl KeywordFamilyReport {
    /// A family without a measurement.
    pub(super) fn not_measured(family: &KeywordFamily) -> Self {
        Self {
            id: family.id.to_owned(),
            what: family.what.to_owned(),
            outcome: KeywordFamilyOutcome::NotMeasured,
            called: false,
            status: None,
            message: None,
            schema: family.schema.clone(),
        }
    }
}

impl DialectReport {
    /// The report as a JSON document.
    ///
    /// # Errors
    /// Never in practice: everything in it can be serialized.
    pub fn to_json(&self) -> Result<String, DialectError> {
        let document = ReportDocument {
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
    /// The text is not a dialect table.
    pub fn from_json(text: &str) -> Result<Self, DialectError> {
        let value: Value = serde_json::from_str(text)?;
        let found = value.get("schema").and_then(Value::as_str);
        if found != Some(SCHEMA) {
            return Err(DialectError::Schema {
                found: found.unwrap_or("something else").to_owned(),
            });
        }
        let ReportDocument {
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
