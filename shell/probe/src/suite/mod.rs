//! Suites: tools, cases, and how often each case runs.

mod read;
mod read_turns;
mod tools;
mod turn;

use std::num::NonZeroU32;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_files::parse_document;
use toolwarden_model::json::Object;
use toolwarden_model::reply::StreamMode;
use toolwarden_model::{Fingerprint, Tool};
use toolwarden_trials::{CallExpectation, ExpectedCall, SuiteCase, SuiteTool, TrialSuite};

use crate::probe_file::{self, ProbeFileError};

pub use turn::ProbeTurn;

/// The suite that runs when none is named.
const BUNDLED: &str = include_str!("../../data/suite.weather.yaml");

/// Tools and cases to send to providers.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSuite {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The tools offered to the model.
    pub tools: Vec<Tool>,
    /// The cases.
    pub cases: Vec<ProbeCase>,
    /// How often and in which modes each case runs.
    pub sampling: ProbeSampling,
    /// Members added to the body of every request.
    pub extra: Object,
}

/// One prompt and its correct answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeCase {
    /// Its name.
    pub name: String,
    /// The conversation so far, in OpenAI's chat format.
    pub messages: Vec<Value>,
    /// Whether the model may, must or must not call a tool, in OpenAI's chat format. `None` omits
    /// it from the request.
    pub tool_choice: Option<Value>,
    /// Whether the model should call a tool.
    pub expect: CallExpectation,
    /// The calls it should make.
    pub calls: Vec<ExpectedCall>,
    /// The tools it must not call.
    pub forbid: Vec<String>,
    /// Members added to the body of its requests.
    pub extra: Object,
    /// What follows after the model's calls: results, and the calls expected then.
    pub turns: Vec<ProbeTurn>,
}

/// How often and in which modes each case runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSampling {
    /// The number of repetitions.
    pub repeat: NonZeroU32,
    /// The sampling temperature. `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Whether replies are streamed; each case runs in every mode.
    pub modes: Vec<StreamMode>,
}

impl Default for ProbeSampling {
    fn default() -> Self {
        Self {
            repeat: NonZeroU32::MIN,
            temperature: None,
            modes: vec![StreamMode::Nonstream],
        }
    }
}

impl ProbeSuite {
    /// Reads a suite file and the tools file it refers to.
    ///
    /// # Errors
    /// The file is invalid; the error lists every mistake.
    pub fn load(path: &Path) -> Result<Self, ProbeFileError> {
        Self::parse(&probe_file::read(path)?, path)
    }

    /// Like [`Self::load`], from the text of the file at a path.
    ///
    /// # Errors
    /// The text is invalid; the error lists every mistake.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ProbeFileError> {
        read::read_suite(&parse_document(text, path)?, path)
    }

    /// The suite bundled with the program: two tools, one question about the weather.
    ///
    /// # Errors
    /// Never in practice, because a test reads it.
    pub fn bundled() -> Result<Self, ProbeFileError> {
        Self::parse(BUNDLED, Path::new("suite.weather.yaml"))
    }

    /// The facts that a comparison needs.
    #[must_use]
    pub fn facts(&self) -> TrialSuite {
        let tools = self.tools.iter().map(|tool| {
            let facts = SuiteTool {
                schema: Value::Object(tool.inputs.clone()),
                hash: Fingerprint::of(&offered_definition(tool)),
            };
            (tool.name.clone(), facts)
        });
        let cases = self.cases.iter().flat_map(|case| {
            let first = SuiteCase {
                name: case.name.clone(),
                expect: case.expect,
                calls: case.calls.clone(),
                forbid: case.forbid.clone(),
            };
            let turns = case.turns.iter().enumerate();
            let turns = turns.map(|(at, turn)| turn.facts(case.turn_name(at)));
            [first].into_iter().chain(turns)
        });
        TrialSuite {
            name: self.name.clone(),
            hash: self.fingerprint(),
            tools: tools.collect(),
            cases: cases.collect(),
        }
    }

    /// The fingerprint of everything that is sent. The name, the number of repetitions and the
    /// expectations do not change the requests, so they are not included.
    fn fingerprint(&self) -> Fingerprint {
        let cases = self.cases.iter().map(|case| {
            let mut sent = json!({
                "messages": case.messages,
                "tool_choice": case.tool_choice,
                "extra": case.extra,
            });
            // Suites without turns keep the fingerprint that earlier versions gave them.
            if let (Value::Object(sent), false) = (&mut sent, case.turns.is_empty()) {
                let turns = case.turns.iter().map(ProbeTurn::sent);
                sent.insert("turns".to_owned(), turns.collect());
            }
            sent
        });
        Fingerprint::of(&json!({
            "tools": self.tools.iter().map(offered_definition).collect::<Vec<_>>(),
            "cases": cases.collect::<Vec<_>>(),
            "temperature": self.sampling.temperature,
            "extra": self.extra,
        }))
    }
}

impl ProbeCase {
    /// The name of a later turn in snapshots and captures: the second turn of `pay` is `pay#2`.
    pub(crate) fn turn_name(&self, at: usize) -> String {
        format!("{}#{}", self.name, at + 2)
    }
}

/// The description of a tool that a model gets, whatever the format of its definition.
fn offered_definition(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputs": tool.inputs,
        "strict": tool.strict,
    })
}
