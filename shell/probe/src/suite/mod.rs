//! What providers are asked: tools, cases, and how often each is put.

mod read;
mod tools;

use std::num::NonZeroU32;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_drift::contract::{self, Expect, ExpectedCall, SuiteCase, SuiteTool};
use toolwarden_files::as_document;
use toolwarden_model::json::Object;
use toolwarden_model::reply::Mode;
use toolwarden_model::{Fingerprint, Tool};

use crate::file::{self, ProbeFileError};

/// The suite that is put to providers when none is named.
const BUNDLED: &str = include_str!("../../data/suite.weather.yaml");

/// Tools and cases that are put to providers.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The tools the model is offered.
    pub tools: Vec<Tool>,
    /// What the model is asked.
    pub cases: Vec<Case>,
    /// How often and how each case is put.
    pub sampling: Sampling,
    /// What is added to the body of every request.
    pub extra: Object,
}

/// One question, and what a right answer is.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The conversation so far, as OpenAI's chat has it.
    pub messages: Vec<Value>,
    /// Whether the model may, must or must not call a tool, as OpenAI's chat says it. None to leave
    /// it out of the request.
    pub tool_choice: Option<Value>,
    /// Whether the model is to call a tool.
    pub expect: Expect,
    /// The calls it is to make.
    pub calls: Vec<ExpectedCall>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
    /// What is added to the body of its requests.
    pub extra: Object,
}

/// How often and how each case is put.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// How often.
    pub repeat: NonZeroU32,
    /// How freely the model chooses its words. None to leave it to the provider.
    pub temperature: Option<f64>,
    /// Whether replies come whole or in pieces; each case is put in every mode.
    pub modes: Vec<Mode>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            repeat: NonZeroU32::MIN,
            temperature: None,
            modes: vec![Mode::Nonstream],
        }
    }
}

impl Suite {
    /// Reads a suite file, with the file of tools it refers to.
    ///
    /// # Errors
    /// The file cannot be used; every mistake in it is told.
    pub fn load(path: &Path) -> Result<Self, ProbeFileError> {
        Self::of_text(&file::read(path)?, path)
    }

    /// As [`Self::load`], from a text that stands in the file of a path.
    ///
    /// # Errors
    /// The text cannot be used; every mistake in it is told.
    pub fn of_text(text: &str, path: &Path) -> Result<Self, ProbeFileError> {
        read::suite(&as_document(text, path)?, path)
    }

    /// The suite that comes with the program: two tools, one question about the weather.
    ///
    /// # Errors
    /// None in fact, for a test reads it.
    pub fn bundled() -> Result<Self, ProbeFileError> {
        Self::of_text(BUNDLED, Path::new("suite.weather.yaml"))
    }

    /// What a comparison needs to know of it.
    #[must_use]
    pub fn facts(&self) -> contract::Suite {
        let tools = self.tools.iter().map(|tool| {
            let facts = SuiteTool {
                schema: Value::Object(tool.inputs.clone()),
                hash: Fingerprint::of(&offered(tool)),
            };
            (tool.name.clone(), facts)
        });
        let cases = self.cases.iter().map(|case| SuiteCase {
            name: case.name.clone(),
            expect: case.expect,
            calls: case.calls.clone(),
            forbid: case.forbid.clone(),
        });
        contract::Suite {
            name: self.name.clone(),
            hash: self.hash(),
            tools: tools.collect(),
            cases: cases.collect(),
        }
    }

    /// The fingerprint of everything that is asked. What it is called and how often it is asked does
    /// not change the question, and neither does what is expected.
    fn hash(&self) -> Fingerprint {
        let cases = self.cases.iter().map(|case| {
            json!({
                "messages": case.messages,
                "tool_choice": case.tool_choice,
                "extra": case.extra,
            })
        });
        Fingerprint::of(&json!({
            "tools": self.tools.iter().map(offered).collect::<Vec<_>>(),
            "cases": cases.collect::<Vec<_>>(),
            "temperature": self.sampling.temperature,
            "extra": self.extra,
        }))
    }
}

/// What a model is told of a tool, whatever the format of its definition.
fn offered(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputs": tool.inputs,
        "strict": tool.strict,
    })
}
