//! Reads a suite from its file.

use std::path::Path;

use serde_json::Value;
use toolwarden_model::document::{
    DiagnosticKind, Document, DocumentReader, KeySpec, LocatedValue, Section,
};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::StreamMode;
use toolwarden_trials::{CallExpectation, ExpectedCall};

use super::tools::SuiteTools;
use super::{ProbeCase, ProbeSampling, ProbeSuite};
use crate::probe_file::{self, ProbeFileError, ProbeFileProblem};
use crate::provider::read::read_extra_body;

const ROOT: &[KeySpec] = &[
    KeySpec::new("name"),
    KeySpec::new("description").may_be_empty(),
    KeySpec::new("messages"),
    KeySpec::new("tools"),
    KeySpec::new("tool_choice").may_be_empty(),
    KeySpec::new("cases"),
    KeySpec::new("expect"),
    KeySpec::new("calls"),
    KeySpec::new("forbid").text_list(),
    KeySpec::new("sampling"),
    KeySpec::new("repeat"),
    KeySpec::new("temperature"),
    KeySpec::new("modes").text_list(),
    KeySpec::new("extra").alias(&["request", "extra_body"]),
];
const CASE: &[KeySpec] = &[
    KeySpec::new("name"),
    KeySpec::new("messages"),
    KeySpec::new("tool_choice").may_be_empty(),
    KeySpec::new("expect"),
    KeySpec::new("calls"),
    KeySpec::new("forbid").text_list(),
    KeySpec::new("turns"),
    KeySpec::new("extra").alias(&["request", "extra_body"]),
];
const CALL: &[KeySpec] = &[
    KeySpec::new("tool").alias(&["name"]),
    KeySpec::new("arguments"),
];
const SAMPLING: &[KeySpec] = &[
    KeySpec::new("repeat"),
    KeySpec::new("temperature"),
    KeySpec::new("modes").text_list(),
];

const ROLES: &[(&str, ())] = &[
    ("system", ()),
    ("developer", ()),
    ("user", ()),
    ("assistant", ()),
    ("tool", ()),
    ("function", ()),
];
const CHOICES: &[(&str, ())] = &[("auto", ()), ("none", ()), ("required", ()), ("any", ())];
const EXPECTATIONS: [(&str, CallExpectation); 3] = [
    (CallExpectation::Call.as_str(), CallExpectation::Call),
    (CallExpectation::NoCall.as_str(), CallExpectation::NoCall),
    (CallExpectation::Either.as_str(), CallExpectation::Either),
];
const MODES: [(&str, StreamMode); 2] = [
    (StreamMode::Nonstream.as_str(), StreamMode::Nonstream),
    (StreamMode::Stream.as_str(), StreamMode::Stream),
];

/// The suite in a document.
pub(super) fn read_suite(document: &Document, path: &Path) -> Result<ProbeSuite, ProbeFileError> {
    let mut reading = SuiteReader::default();
    let suite = reading.suite(&document.root(), path);
    probe_file::finish(reading.reader, document, path, suite)
}

/// The state while a suite is read.
#[derive(Default)]
pub(super) struct SuiteReader {
    pub(super) reader: DocumentReader<ProbeFileProblem>,
    pub(super) tools: SuiteTools,
}

/// The correct answer to one request.
pub(super) struct ExpectedAnswer {
    pub(super) expect: CallExpectation,
    pub(super) calls: Vec<ExpectedCall>,
    pub(super) forbid: Vec<String>,
}

impl SuiteReader {
    fn suite(&mut self, root: &LocatedValue<'_>, path: &Path) -> ProbeSuite {
        let section = self.reader.section(root, ROOT);
        let written = section.said("name");
        let name = written.and_then(|at| self.reader.non_blank_text(at, "a suite's name"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.map_or_else(|| stem.into_owned(), ToOwned::to_owned);
        if let Some(at) = self.reader.required(&section, "tools") {
            let folder = path.parent().unwrap_or(Path::new(""));
            self.tools = SuiteTools::read(&mut self.reader, at, folder);
        }
        let choice = match section.get("tool_choice") {
            Some(at) => self.tool_choice(at),
            None => Some(Value::from("auto")),
        };
        let cases = match section.said("cases") {
            Some(at) => self.cases(at, &section, choice.as_ref()),
            None => vec![self.case(&section, name.clone(), choice.as_ref())],
        };
        ProbeSuite {
            name,
            description: self.description(&section),
            cases,
            sampling: self.sampling(&section),
            extra: self.extra(&section),
            tools: std::mem::take(&mut self.tools).into_tools(),
        }
    }

    fn description(&mut self, section: &Section<'_>) -> Option<String> {
        let text = self.reader.text(section.said("description")?)?;
        Some(text.trim().to_owned())
    }

    fn cases(
        &mut self,
        at: &LocatedValue<'_>,
        root: &Section<'_>,
        choice: Option<&Value>,
    ) -> Vec<ProbeCase> {
        for key in ["messages", "expect", "calls", "forbid"] {
            if let Some(at) = root.get(key) {
                let other = "cases";
                let mistake = DiagnosticKind::ConflictingKeys { one: key, other };
                self.reader.report(&at.pointer, mistake);
            }
        }
        let mut cases: Vec<ProbeCase> = Vec::new();
        self.require_not_empty(at, "at least one case");
        for item in self.reader.list(at) {
            let section = self.reader.section(&item, CASE);
            let Some(named) = self.reader.required(&section, "name") else {
                continue;
            };
            let name = self
                .reader
                .non_blank_text(named, "a case's name")
                .unwrap_or_default();
            if cases.iter().any(|it| it.name == name) {
                let twice = ProbeFileProblem::Twice {
                    what: "cases",
                    name: name.to_owned(),
                };
                self.reader.report(&named.pointer, twice);
            }
            let own = section.get("tool_choice").map(|at| self.tool_choice(at));
            let choice = own.unwrap_or_else(|| choice.cloned());
            let mut case = self.case(&section, name.to_owned(), choice.as_ref());
            case.extra = self.extra(&section);
            cases.push(case);
        }
        self.check_turn_names(at, &cases);
        cases
    }

    /// A case without its extra members.
    fn case(&mut self, section: &Section<'_>, name: String, choice: Option<&Value>) -> ProbeCase {
        let messages = match self.reader.required(section, "messages") {
            Some(at) => self.messages(at),
            None => Vec::new(),
        };
        // Turns belong to the cases of a list; elsewhere the key is unknown.
        let turns = self.turns(section, choice);
        let expected = self.expected(section, choice, !turns.is_empty());
        ProbeCase {
            name,
            messages,
            tool_choice: choice.cloned(),
            expect: expected.expect,
            calls: expected.calls,
            forbid: expected.forbid,
            extra: Object::new(),
            turns,
        }
    }

    /// The correct answer to a request with this `tool_choice`, and whether a turn follows it.
    pub(super) fn expected(
        &mut self,
        section: &Section<'_>,
        choice: Option<&Value>,
        is_continued: bool,
    ) -> ExpectedAnswer {
        let calls = section.said("calls").map(|at| self.calls(at));
        // A request that names a tool expects that tool, unless the case says otherwise.
        let silent = section.said("expect").is_none();
        let calls =
            calls.unwrap_or_else(|| match choice.and_then(chosen_tool).filter(|_| silent) {
                Some(tool) => vec![ExpectedCall {
                    tool: tool.to_owned(),
                    arguments: None,
                }],
                None => Vec::new(),
            });
        let expect = self.expect(section, &calls, choice, is_continued);
        let mut forbid = Vec::new();
        if let Some(at) = section.said("forbid") {
            for (tool, pointer) in self.reader.texts(at, "a tool's name") {
                self.tools.check(&mut self.reader, &tool, &pointer);
                if calls.iter().any(|it| it.tool == tool) {
                    let tool = tool.clone();
                    let problem = ProbeFileProblem::ExpectedAndForbidden { tool };
                    self.reader.report(&pointer, problem);
                }
                forbid.push(tool);
            }
        }
        ExpectedAnswer {
            expect,
            calls,
            forbid,
        }
    }

    pub(super) fn messages(&mut self, at: &LocatedValue<'_>) -> Vec<Value> {
        self.require_not_empty(at, "at least one message");
        let items = self.reader.list(at);
        for item in &items {
            let Some(message) = self.reader.object(item) else {
                continue;
            };
            let Some(role) = message.get("role") else {
                let key = "role";
                self.reader
                    .report(&item.pointer, DiagnosticKind::Missing { key });
                continue;
            };
            let role = LocatedValue {
                pointer: item.pointer.child("role"),
                value: role,
            };
            self.reader.word(&role, ROLES);
        }
        items.into_iter().map(|it| it.value.clone()).collect()
    }

    /// The `tool_choice` of a request; null omits it from the request.
    pub(super) fn tool_choice(&mut self, at: &LocatedValue<'_>) -> Option<Value> {
        match at.value {
            Value::Null => return None,
            Value::Object(_) => {
                let named = ["/function/name", "/name"].iter().find_map(|path| {
                    let name = at.value.pointer(path)?.as_str()?;
                    Some((name, at.pointer.join(&Pointer::from(*path))))
                });
                if let Some((name, pointer)) = named {
                    self.tools.check(&mut self.reader, name, &pointer);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.reader.word(at, CHOICES);
            }
        }
        Some(at.value.clone())
    }

    fn expect(
        &mut self,
        section: &Section<'_>,
        calls: &[ExpectedCall],
        choice: Option<&Value>,
        is_continued: bool,
    ) -> CallExpectation {
        let Some(at) = section.said("expect") else {
            return match choice.and_then(Value::as_str) {
                _ if !calls.is_empty() || is_continued => CallExpectation::Call,
                Some("required") => CallExpectation::Call,
                Some("none") => CallExpectation::NoCall,
                _ => CallExpectation::default(),
            };
        };
        let expect = self.reader.word(at, &EXPECTATIONS).unwrap_or_default();
        if expect == CallExpectation::NoCall && !calls.is_empty() {
            self.reader
                .report(&at.pointer, ProbeFileProblem::CallsOfNoCall);
        }
        if is_continued {
            self.check_continued(at, expect);
        }
        expect
    }

    fn calls(&mut self, at: &LocatedValue<'_>) -> Vec<ExpectedCall> {
        let items = self.reader.list(at);
        items.iter().filter_map(|item| self.call(item)).collect()
    }

    /// A tool by its name, or with the only correct arguments.
    fn call(&mut self, at: &LocatedValue<'_>) -> Option<ExpectedCall> {
        let (named, arguments) = match at.value {
            Value::String(_) => (at.clone(), None),
            _ => {
                let section = self.reader.section(at, CALL);
                let named = self.reader.required(&section, "tool")?.clone();
                (named, section.said("arguments").cloned())
            }
        };
        let tool = self.reader.non_blank_text(&named, "a tool's name")?;
        let found = self.tools.check(&mut self.reader, tool, &named.pointer);
        if let Some(at) = &arguments
            && self.reader.object(at).is_some()
            && let Some(index) = found
        {
            self.tools.check_arguments(&mut self.reader, index, at);
        }
        Some(ExpectedCall {
            tool: tool.to_owned(),
            arguments: arguments.map(|it| it.value.clone()),
        })
    }

    /// Repetitions, temperature and modes: in a separate section, or at the top level.
    fn sampling(&mut self, root: &Section<'_>) -> ProbeSampling {
        let mut sampling = ProbeSampling::default();
        let Some(at) = root.said("sampling") else {
            self.read_sampling(root, &mut sampling);
            return sampling;
        };
        for one in ["repeat", "temperature", "modes"] {
            if let Some(at) = root.get(one) {
                let other = "sampling";
                let mistake = DiagnosticKind::ConflictingKeys { one, other };
                self.reader.report(&at.pointer, mistake);
            }
        }
        let section = self.reader.section(at, SAMPLING);
        self.read_sampling(&section, &mut sampling);
        sampling
    }

    fn read_sampling(&mut self, section: &Section<'_>, sampling: &mut ProbeSampling) {
        if let Some(at) = section.said("repeat") {
            sampling.repeat = self.reader.count(at).unwrap_or(sampling.repeat);
        }
        if let Some(at) = section.said("temperature") {
            sampling.temperature = self.reader.number(at);
            if sampling
                .temperature
                .is_some_and(|it| !(0.0..=2.0).contains(&it))
            {
                let expected = "a number from 0 to 2";
                let found = at.value.to_string();
                self.reader
                    .report(&at.pointer, DiagnosticKind::WrongType { expected, found });
            }
        }
        if let Some(at) = section.said("modes") {
            sampling.modes = self.modes(at);
        }
    }

    fn modes(&mut self, at: &LocatedValue<'_>) -> Vec<StreamMode> {
        let items = match at.value {
            Value::String(_) => vec![at.clone()],
            _ => self.reader.list(at),
        };
        self.require_not_empty(at, "at least one of nonstream and stream");
        let mut modes = Vec::new();
        for item in items {
            let mode = self.reader.word(&item, &MODES);
            modes.extend(mode.filter(|it| !modes.contains(it)));
        }
        modes
    }

    fn extra(&mut self, section: &Section<'_>) -> Object {
        let at = section.said("extra");
        at.map_or_else(Object::new, |at| read_extra_body(&mut self.reader, at))
    }

    pub(super) fn require_not_empty(&mut self, at: &LocatedValue<'_>, expected: &'static str) {
        if at.value.as_array().is_some_and(Vec::is_empty) {
            let found = "an empty list".to_owned();
            let mistake = DiagnosticKind::WrongType { expected, found };
            self.reader.report(&at.pointer, mistake);
        }
    }
}

/// The tool that a `tool_choice` names.
fn chosen_tool(choice: &Value) -> Option<&str> {
    choice.pointer("/function/name")?.as_str()
}
