use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_trials::{CallExpectation, ExpectedCall, SuiteCase};

/// What the model gets for a called tool without a result in the turn. Providers refuse a
/// conversation in which a call has no result.
const NO_RESULT: &str = r#"{"error":"not available"}"#;

/// A later turn of a case: the results of the model's calls, and the correct answer to them.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeTurn {
    /// What each tool returns, as the text that is sent.
    pub results: BTreeMap<String, String>,
    /// Messages after the results, in OpenAI's chat format.
    pub messages: Vec<Value>,
    /// Whether the model may, must or must not call a tool now.
    pub tool_choice: Option<Value>,
    /// Whether the model should call a tool now.
    pub expect: CallExpectation,
    /// The calls it should make now.
    pub calls: Vec<ExpectedCall>,
    /// The tools it must not call now.
    pub forbid: Vec<String>,
}

impl ProbeTurn {
    /// Whether the turn has a result for any of the called tools. Without one, the model left the
    /// conversation that the case describes, and the turn cannot be asked.
    pub(crate) fn continues<'c>(&self, mut called: impl Iterator<Item = &'c str>) -> bool {
        called.any(|name| self.results.contains_key(name))
    }

    /// The text that a tool returns.
    pub(crate) fn result(&self, tool: &str) -> String {
        let result = self.results.get(tool);
        result.map_or_else(|| NO_RESULT.to_owned(), Clone::clone)
    }

    /// The facts that a comparison needs.
    pub(super) fn facts(&self, name: String) -> SuiteCase {
        SuiteCase {
            name,
            expect: self.expect,
            calls: self.calls.clone(),
            forbid: self.forbid.clone(),
        }
    }

    /// The part of it that is sent.
    pub(super) fn sent(&self) -> Value {
        json!({
            "results": self.results,
            "messages": self.messages,
            "tool_choice": self.tool_choice,
        })
    }
}
