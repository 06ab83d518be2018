use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::Fingerprint;

/// What a comparison needs to know of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The fingerprint of all of it. Snapshots of other suites are not compared.
    pub hash: Fingerprint,
    /// The tools the model may call, by name.
    pub tools: BTreeMap<String, SuiteTool>,
    /// What the model is asked, in order.
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
    /// Whether the model is to call a tool.
    pub expect: Expect,
    /// The calls it is to make.
    pub calls: Vec<ExpectedCall>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
}

/// A call a model is to make.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCall {
    /// The tool.
    pub tool: String,
    /// The arguments, where only these are right.
    pub arguments: Option<Value>,
}

/// Whether a model is to call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// It must.
    Call,
    /// It must not.
    NoCall,
    /// It may.
    #[default]
    Either,
}

impl Expect {
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

    /// The expectation of a word of a file.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
