//! Calls as people and programs write them down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_guard::RequestedGroups;
use toolwarden_model::closest;
use toolwarden_model::json::{JsonError, Object, parse, type_name};
use toolwarden_warden::guard::Call;

use super::GuardError;
use super::error::CallProblem;
use super::policy;
use crate::args::{CallArgs, CircumstancesArgs};
use crate::error::CliError;

/// One call as it is written down.
#[derive(Debug, Default)]
pub(super) struct WrittenCall {
    pub(super) line: usize,
    pub(super) tool: String,
    pub(super) principal: String,
    pub(super) session: Option<String>,
    pub(super) groups: Option<RequestedGroups>,
    pub(super) state: Option<String>,
    pub(super) arguments: Arc<Value>,
    pub(super) attributes: BTreeMap<String, Value>,
    pub(super) at: Option<Timestamp>,
    /// Whether the call did what it should, where that is known.
    pub(super) success: Option<bool>,
    /// What was decided then, for a call out of the log.
    pub(super) recorded: Option<Recorded>,
}

/// A decision out of the log.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) id: String,
    pub(super) allowed: bool,
    pub(super) code: String,
}

/// One line of a file: a call, how an earlier one ended, or something else out of the log.
pub(super) enum Line {
    Call(Box<WrittenCall>),
    Outcome { call: String, success: bool },
    Other,
}

/// Words for the same thing: ours first, then those of logs and of the document.
const KEYS: &[(&str, &[&str])] = &[
    ("tool", &["name", "tool_name", "connector_name"]),
    ("principal", &["agent", "source_agent", "user"]),
    ("arguments", &["args", "input", "input_data"]),
    ("group", &["groups"]),
    ("state", &[]),
    ("session", &["session_id", "request_id"]),
    ("attributes", &[]),
    ("at", &["timestamp"]),
    ("outcome", &[]),
];

/// What a JSON-RPC request or a provider's tool call has besides.
const ENVELOPE: &[&str] = &[
    "jsonrpc", "id", "method", "type", "call_id", "question", "history",
];

/// What holds the tool and its arguments in a request or a provider's tool call.
const HOLDERS: &[&str] = &["params", "function", "functionCall", "toolUse"];

impl WrittenCall {
    pub(super) fn call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            principal: &self.principal,
            session: self.session.as_deref(),
            groups: self.groups.clone(),
            state: self.state.as_deref(),
            arguments: Arc::clone(&self.arguments),
            attributes: self.attributes.clone(),
        }
    }
}

/// The calls of a command, one after the other.
pub(super) fn each(
    args: &CallArgs,
    circumstances: &CircumstancesArgs,
    mut see: impl FnMut(WrittenCall) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let given = policy::attributes(circumstances);
    let with_attributes = |mut call: WrittenCall| {
        for (key, value) in &given {
            call.attributes.insert(key.clone(), value.clone());
        }
        call
    };
    let Some(file) = &args.call else {
        return see(with_attributes(spelled_out(args)?));
    };
    let mut seen = false;
    each_line(file, |line| {
        if let Line::Call(call) = line {
            seen = true;
            see(with_attributes(*call))?;
        }
        Ok(())
    })?;
    if !seen {
        let place = file.clone();
        return Err(GuardError::NoCalls { place }.into());
    }
    Ok(())
}

fn spelled_out(args: &CallArgs) -> Result<WrittenCall, CliError> {
    let arguments = match &args.arguments {
        None => Value::Object(Object::new()),
        Some(text) => {
            let parsed = parse(text).map_err(|error| GuardError::Arguments(no_json(&error)))?;
            parsed.value
        }
    };
    let groups = args.groups.iter().map(String::as_str);
    Ok(WrittenCall {
        line: 1,
        tool: args.tool.clone().unwrap_or_default(),
        principal: args.principal.clone().unwrap_or_default(),
        groups: (!args.groups.is_empty()).then(|| groups.collect()),
        state: args.state.clone(),
        arguments: Arc::new(arguments),
        ..WrittenCall::default()
    })
}

/// Hands over every line of a file; a document over several lines is one call.
pub(super) fn each_line(
    file: &Path,
    mut see: impl FnMut(Line) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |source| GuardError::Read {
        place: file.to_owned(),
        source,
    };
    let mut reader: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(file).map_err(failed)?))
    };
    let mut text = String::new();
    let (mut number, mut from) = (0, 1);
    loop {
        let start = text.len();
        if reader.read_line(&mut text).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        let line = text.get(start..).unwrap_or_default();
        // Only a document that starts on its own line may go on: a broken line stays one mistake.
        if text.trim().is_empty() || is_unfinished(&text, line) {
            if text.trim().is_empty() {
                text.clear();
                from = number + 1;
            }
            continue;
        }
        see(read(file, from, &text)?)?;
        text.clear();
        from = number + 1;
    }
    if !text.trim().is_empty() {
        see(read(file, from, &text)?)?;
    }
    Ok(())
}

/// Whether a text stops inside a document.
fn is_unfinished(text: &str, last_line: &str) -> bool {
    let starts_a_call = text.len() > last_line.len() && last_line.starts_with('{');
    if starts_a_call && serde_json::from_str::<serde::de::IgnoredAny>(last_line).is_ok() {
        return false;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

fn read(file: &Path, line: usize, text: &str) -> Result<Line, CliError> {
    let read = parse(text)
        .map_err(|error| no_json(&error))
        .and_then(|parsed| {
            if let Some(twice) = parsed.duplicates.first() {
                let key = twice.pointer.as_str().trim_start_matches('/').to_owned();
                return Err(CallProblem::Twice { key });
            }
            understood(&parsed.value, line)
        });
    let read = read.map_err(|problem| GuardError::Call {
        place: file.to_owned(),
        line,
        problem,
    });
    Ok(read?)
}

fn no_json(error: &JsonError) -> CallProblem {
    CallProblem::NoJson {
        message: error.kind.to_string(),
        column: error.position.column,
    }
}

fn understood(value: &Value, line: usize) -> Result<Line, CallProblem> {
    let Some(object) = value.as_object() else {
        let found = type_name(value);
        return Err(CallProblem::NoObject { found });
    };
    if object.contains_key("kind") && object.contains_key("seq") {
        return out_of_the_log(object, line);
    }
    Ok(Line::Call(Box::new(call(object, line)?)))
}

fn call(object: &Object, line: usize) -> Result<WrittenCall, CallProblem> {
    let mut said: BTreeMap<&'static str, &Value> = BTreeMap::new();
    let held = HOLDERS.iter().find_map(|key| object.get(*key)?.as_object());
    for (key, value) in object.iter().chain(held.into_iter().flatten()) {
        let known = KEYS
            .iter()
            .find(|(name, others)| name == key || others.contains(&key.as_str()));
        if let Some((name, _)) = known {
            if said.insert(name, value).is_some() {
                let key = (*name).to_owned();
                return Err(CallProblem::Twice { key });
            }
        } else if !ENVELOPE.contains(&key.as_str())
            && !HOLDERS.contains(&key.as_str())
            && key != "_meta"
        {
            let suggestion = closest(key, KEYS.iter().map(|(name, _)| *name));
            let key = key.clone();
            return Err(CallProblem::UnknownKey { key, suggestion });
        }
    }
    let text = |key: &'static str| match said.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(CallProblem::Type {
            key,
            expected: "a text",
            found: type_name(other),
        }),
    };
    let outcome = match text("outcome")?.as_deref() {
        None => None,
        Some("success" | "succeeded") => Some(true),
        Some("failure" | "failed") => Some(false),
        Some(other) => {
            let text = other.to_owned();
            return Err(CallProblem::Outcome { text });
        }
    };
    Ok(WrittenCall {
        line,
        tool: text("tool")?
            .filter(|it| !it.trim().is_empty())
            .ok_or(CallProblem::NoTool)?,
        principal: text("principal")?.unwrap_or_else(|| "unknown".to_owned()),
        session: text("session")?,
        groups: groups(said.get("group").copied())?,
        state: text("state")?,
        arguments: Arc::new(arguments(said.get("arguments").copied())?),
        attributes: attributes(said.get("attributes").copied())?,
        at: text("at")?.map(|text| time("at", &text)).transpose()?,
        success: outcome,
        recorded: None,
    })
}

/// The groups of a request. A text is no list: as in the original only `*` means anything then, so
/// that nobody is given a group by mistake.
fn groups(said: Option<&Value>) -> Result<Option<RequestedGroups>, CallProblem> {
    let wrong = |found: &Value| CallProblem::Type {
        key: "group",
        expected: "a list of texts",
        found: type_name(found),
    };
    match said {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text == "*" => Ok(Some(["*"].into_iter().collect())),
        Some(Value::Array(items)) => {
            let names = items
                .iter()
                .map(|item| item.as_str().ok_or_else(|| wrong(item)));
            names.collect::<Result<RequestedGroups, _>>().map(Some)
        }
        Some(other) => Err(wrong(other)),
    }
}

fn arguments(said: Option<&Value>) -> Result<Value, CallProblem> {
    match said {
        None | Some(Value::Null) => Ok(Value::Object(Object::new())),
        // OpenAI writes the arguments as JSON in a text.
        Some(Value::String(text)) => match parse(text) {
            Ok(parsed) => Ok(parsed.value),
            Err(error) => Err(no_json(&error)),
        },
        Some(other) => Ok(other.clone()),
    }
}

fn attributes(said: Option<&Value>) -> Result<BTreeMap<String, Value>, CallProblem> {
    match said {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(members)) => {
            let members = members.iter();
            Ok(members
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect())
        }
        Some(other) => Err(CallProblem::Type {
            key: "attributes",
            expected: "an object",
            found: type_name(other),
        }),
    }
}

fn time(key: &'static str, text: &str) -> Result<Timestamp, CallProblem> {
    text.parse().map_err(|_| CallProblem::Time {
        key,
        text: text.to_owned(),
    })
}

/// A record as `audit export` writes it.
fn out_of_the_log(record: &Object, line: usize) -> Result<Line, CallProblem> {
    let text = |key: &str| {
        record
            .get(key)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let body = record.get("body").and_then(Value::as_object);
    let within = |key: &str| body.and_then(|body| body.get(key));
    let code = text("code").unwrap_or_default();
    match text("kind").as_deref() {
        Some("outcome") => Ok(Line::Outcome {
            call: within("call")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            success: code == "succeeded",
        }),
        Some("decision") => Ok(Line::Call(Box::new(WrittenCall {
            line,
            tool: text("tool").ok_or(CallProblem::NoTool)?,
            principal: text("principal").unwrap_or_default(),
            session: text("session"),
            groups: groups(within("groups"))?,
            state: None,
            arguments: Arc::new(arguments(within("arguments"))?),
            attributes: BTreeMap::new(),
            at: text("at").map(|text| time("at", &text)).transpose()?,
            success: None,
            recorded: Some(Recorded {
                id: within("id")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                allowed: record
                    .get("allowed")
                    .and_then(Value::as_bool)
                    .unwrap_or(false),
                code,
            }),
        }))),
        _ => Ok(Line::Other),
    }
}
