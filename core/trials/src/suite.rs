use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::Fingerprint;

/// The facts about a suite that a comparison needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSuite {
    /// Its name.
    pub name: String,
    /// The fingerprint of the whole suite. Snapshots of different suites are not compared.
    pub hash: Fingerprint,
    /// The tools the model may call, by name.
    pub tools: BTreeMap<String, SuiteTool>,
    /// The cases, in order.
    pub cases: Vec<SuiteCase>,
}

/// A tool of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteTool {
    /// The schema of its arguments.
    pub schema: Value,
    /// The fingerprint of its definition.
    pub hash: Fingerprint,
}

/// What a suite expects of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuiteCase {
    /// Its name.
    pub name: String,
    /// Whether the model must call a tool.
    pub expect: CallExpectation,
    /// The calls that it must make.
    pub calls: Vec<ExpectedCall>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
}

/// A call that a model must make.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCall {
    /// The tool.
    pub tool: String,
    /// The arguments, if only these are correct.
    pub arguments: Option<Value>,
}

/// Whether a case expects a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallExpectation {
    /// It must call a tool.
    Call,
    /// It must not call a tool.
    NoCall,
    /// It may call a tool.
    #[default]
    Either,
}

impl CallExpectation {
    /// Every expectation.
    pub const ALL: [Self; 3] = [Self::Call, Self::NoCall, Self::Either];

    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::NoCall => "no_call",
            Self::Either => "either",
        }
    }

    /// Parses the word used in files.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
