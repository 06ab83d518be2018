//! Reads a suite from what its file says.

use std::path::Path;

use serde_json::Value;
use toolwarden_drift::contract::{Expect, ExpectedCall};
use toolwarden_model::document::{Document, Key, Mistake, Placed, Reader, Section};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::Mode;

use super::tools::Tools;
use super::{Case, Sampling, Suite};
use crate::file::{self, ProbeFileError, Problem};
use crate::provider::read::extra;

const ROOT: &[Key] = &[
    Key::new("name"),
    Key::new("description").may_be_empty(),
    Key::new("messages"),
    Key::new("tools"),
    Key::new("tool_choice").may_be_empty(),
    Key::new("cases"),
    Key::new("expect"),
    Key::new("calls"),
    Key::new("forbid").texts(),
    Key::new("sampling"),
    Key::new("repeat"),
    Key::new("temperature"),
    Key::new("modes").texts(),
    Key::new("extra").or(&["request", "extra_body"]),
];
const CASE: &[Key] = &[
    Key::new("name"),
    Key::new("messages"),
    Key::new("tool_choice").may_be_empty(),
    Key::new("expect"),
    Key::new("calls"),
    Key::new("forbid").texts(),
    Key::new("extra").or(&["request", "extra_body"]),
];
const CALL: &[Key] = &[Key::new("tool").or(&["name"]), Key::new("arguments")];
const SAMPLING: &[Key] = &[
    Key::new("repeat"),
    Key::new("temperature"),
    Key::new("modes").texts(),
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
const EXPECTATIONS: [(&str, Expect); 3] = [
    (Expect::Call.as_str(), Expect::Call),
    (Expect::NoCall.as_str(), Expect::NoCall),
    (Expect::Either.as_str(), Expect::Either),
];
const MODES: [(&str, Mode); 2] = [
    (Mode::Nonstream.as_str(), Mode::Nonstream),
    (Mode::Stream.as_str(), Mode::Stream),
];

/// The suite of a document.
pub(super) fn suite(document: &Document, path: &Path) -> Result<Suite, ProbeFileError> {
    let mut reading = Reading::default();
    let suite = reading.suite(&document.root(), path);
    file::finish(reading.reader, document, path, suite)
}

/// A suite that is being read.
#[derive(Default)]
struct Reading {
    reader: Reader<Problem>,
    tools: Tools,
}

impl Reading {
    fn suite(&mut self, root: &Placed<'_>, path: &Path) -> Suite {
        let section = self.reader.section(root, ROOT);
        let written = section.said("name");
        let name = written.and_then(|at| self.reader.line(at, "a suite's name"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.map_or_else(|| stem.into_owned(), ToOwned::to_owned);
        if let Some(at) = self.reader.required(&section, "tools") {
            let folder = path.parent().unwrap_or(Path::new(""));
            self.tools = Tools::read(&mut self.reader, at, folder);
        }
        let choice = match section.get("tool_choice") {
            Some(at) => self.tool_choice(at),
            None => Some(Value::from("auto")),
        };
        let cases = match section.said("cases") {
            Some(at) => self.cases(at, &section, choice.as_ref()),
            None => vec![self.case(&section, name.clone(), choice.as_ref())],
        };
        Suite {
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

    fn cases(&mut self, at: &Placed<'_>, root: &Section<'_>, choice: Option<&Value>) -> Vec<Case> {
        for key in ["messages", "expect", "calls", "forbid"] {
            if let Some(at) = root.get(key) {
                let other = "cases";
                let mistake = Mistake::Exclusive { one: key, other };
                self.reader.error(&at.pointer, mistake);
            }
        }
        let mut cases: Vec<Case> = Vec::new();
        self.not_empty(at, "at least one case");
        for item in self.reader.list(at) {
            let section = self.reader.section(&item, CASE);
            let Some(named) = self.reader.required(&section, "name") else {
                continue;
            };
            let name = self.reader.line(named, "a case's name").unwrap_or_default();
            if cases.iter().any(|it| it.name == name) {
                let twice = Problem::Twice {
                    what: "cases",
                    name: name.to_owned(),
                };
                self.reader.error(&named.pointer, twice);
            }
            let own = section.get("tool_choice").map(|at| self.tool_choice(at));
            let choice = own.unwrap_or_else(|| choice.cloned());
            let mut case = self.case(&section, name.to_owned(), choice.as_ref());
            case.extra = self.extra(&section);
            cases.push(case);
        }
        cases
    }

    /// A case without its extras.
    fn case(&mut self, section: &Section<'_>, name: String, choice: Option<&Value>) -> Case {
        let messages = match self.reader.required(section, "messages") {
            Some(at) => self.messages(at),
            None => Vec::new(),
        };
        let calls = section.said("calls").map(|at| self.calls(at));
        // Who names a tool in the request expects that tool, unless the case says otherwise.
        let silent = section.said("expect").is_none();
        let calls = calls.unwrap_or_else(|| match choice.and_then(named).filter(|_| silent) {
            Some(tool) => vec![ExpectedCall {
                tool: tool.to_owned(),
                arguments: None,
            }],
            None => Vec::new(),
        });
        let expect = self.expect(section, &calls, choice);
        let mut forbid = Vec::new();
        if let Some(at) = section.said("forbid") {
            for (tool, pointer) in self.reader.texts(at, "a tool's name") {
                self.tools.check(&mut self.reader, &tool, &pointer);
                if calls.iter().any(|it| it.tool == tool) {
                    let tool = tool.clone();
                    let problem = Problem::ExpectedAndForbidden { tool };
                    self.reader.error(&pointer, problem);
                }
                forbid.push(tool);
            }
        }
        Case {
            name,
            messages,
            tool_choice: choice.cloned(),
            expect,
            calls,
            forbid,
            extra: Object::new(),
        }
    }

    fn messages(&mut self, at: &Placed<'_>) -> Vec<Value> {
        self.not_empty(at, "at least one message");
        let items = self.reader.list(at);
        for item in &items {
            let Some(message) = self.reader.object(item) else {
                continue;
            };
            let Some(role) = message.get("role") else {
                let key = "role";
                self.reader.error(&item.pointer, Mistake::Missing { key });
                continue;
            };
            let role = Placed {
                pointer: item.pointer.child("role"),
                value: role,
            };
            self.reader.word(&role, ROLES);
        }
        items.into_iter().map(|it| it.value.clone()).collect()
    }

    /// What is asked of the model; null leaves it out of the request.
    fn tool_choice(&mut self, at: &Placed<'_>) -> Option<Value> {
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
    ) -> Expect {
        let Some(at) = section.said("expect") else {
            return match choice.and_then(Value::as_str) {
                _ if !calls.is_empty() => Expect::Call,
                Some("required") => Expect::Call,
                Some("none") => Expect::NoCall,
                _ => Expect::default(),
            };
        };
        let expect = self.reader.word(at, &EXPECTATIONS).unwrap_or_default();
        if expect == Expect::NoCall && !calls.is_empty() {
            self.reader.error(&at.pointer, Problem::CallsOfNoCall);
        }
        expect
    }

    fn calls(&mut self, at: &Placed<'_>) -> Vec<ExpectedCall> {
        let items = self.reader.list(at);
        items.iter().filter_map(|item| self.call(item)).collect()
    }

    /// A tool by its name, or with the only right arguments.
    fn call(&mut self, at: &Placed<'_>) -> Option<ExpectedCall> {
        let (named, arguments) = match at.value {
            Value::String(_) => (at.clone(), None),
            _ => {
                let section = self.reader.section(at, CALL);
                let named = self.reader.required(&section, "tool")?.clone();
                (named, section.said("arguments").cloned())
            }
        };
        let tool = self.reader.line(&named, "a tool's name")?;
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

    /// How often and how: in its own section, or at the top.
    fn sampling(&mut self, root: &Section<'_>) -> Sampling {
        let mut sampling = Sampling::default();
        let Some(at) = root.said("sampling") else {
            self.sampled(root, &mut sampling);
            return sampling;
        };
        for one in ["repeat", "temperature", "modes"] {
            if let Some(at) = root.get(one) {
                let other = "sampling";
                let mistake = Mistake::Exclusive { one, other };
                self.reader.error(&at.pointer, mistake);
            }
        }
        let section = self.reader.section(at, SAMPLING);
        self.sampled(&section, &mut sampling);
        sampling
    }

    fn sampled(&mut self, section: &Section<'_>, sampling: &mut Sampling) {
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
                    .error(&at.pointer, Mistake::Type { expected, found });
            }
        }
        if let Some(at) = section.said("modes") {
            sampling.modes = self.modes(at);
        }
    }

    fn modes(&mut self, at: &Placed<'_>) -> Vec<Mode> {
        let items = match at.value {
            Value::String(_) => vec![at.clone()],
            _ => self.reader.list(at),
        };
        self.not_empty(at, "at least one of nonstream and stream");
        let mut modes = Vec::new();
        for item in items {
            let mode = self.reader.word(&item, &MODES);
            modes.extend(mode.filter(|it| !modes.contains(it)));
        }
        modes
    }

    fn extra(&mut self, section: &Section<'_>) -> Object {
        let at = section.said("extra");
        at.map_or_else(Object::new, |at| extra(&mut self.reader, at))
    }

    fn not_empty(&mut self, at: &Placed<'_>, expected: &'static str) {
        if at.value.as_array().is_some_and(Vec::is_empty) {
            let found = "an empty list".to_owned();
            let mistake = Mistake::Type { expected, found };
            self.reader.error(&at.pointer, mistake);
        }
    }
}

/// The tool that a `tool_choice` names.
fn named(choice: &Value) -> Option<&str> {
    choice.pointer("/function/name")?.as_str()
}
