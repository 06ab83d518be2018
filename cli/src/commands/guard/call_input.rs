//! Calls as people and programs write them down.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;
use toolwarden_guard::{REDACTED, RequestedGroups};
use toolwarden_live_guard::{Call, LiveGuard, UNKNOWN_PRINCIPAL};
use toolwarden_model::StateName;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{JsonError, Object, Parsed, parse, type_name};

use super::feature_input::FeatureInput;
use super::policy;
use crate::args::{CallArgs, ConditionArgs};
use crate::error::{CallProblem, CliError, GuardError};

/// A call read from arguments, a file or the audit log.
#[derive(Debug, Default)]
pub(super) struct CallInput {
    pub(super) line: usize,
    pub(super) tool: String,
    /// What is used where that is not a tool.
    pub(super) feature: Option<FeatureInput>,
    pub(super) principal: String,
    pub(super) session: Option<String>,
    pub(super) groups: Option<RequestedGroups>,
    pub(super) state: Option<StateName>,
    pub(super) arguments: Arc<Value>,
    pub(super) attributes: BTreeMap<String, Value>,
    pub(super) at: Option<Timestamp>,
    /// Whether the call did what it should, where that is known.
    pub(super) success: Option<bool>,
    /// What was decided then, for a call out of the log.
    pub(super) recorded: Option<LoggedDecision>,
}

/// A decision out of the log.
#[derive(Debug)]
pub(super) struct LoggedDecision {
    pub(super) id: String,
    pub(super) allowed: bool,
    pub(super) code: String,
    /// Where the session stood.
    pub(super) state: Option<StateName>,
}

/// One line of a file: a call, how an earlier one ended, or something else out of the log.
pub(super) enum CallLine {
    Call(Box<CallInput>),
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
    "toolUseId",
    "status",
    "index",
    "caller",
    "jsonrpc",
    "id",
    "method",
    "type",
    "call_id",
    "question",
    "history",
];

/// What holds the tool and its arguments in a request or a provider's tool call.
const HOLDERS: &[&str] = &["params", "function", "functionCall", "toolUse"];

impl CallInput {
    /// Whether its arguments are not all there.
    pub(super) fn is_redacted(&self) -> bool {
        fn redacted(value: &Value) -> bool {
            match value {
                Value::String(text) => text == REDACTED,
                Value::Array(items) => items.iter().any(redacted),
                Value::Object(members) => members.values().any(redacted),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            }
        }
        let digest = |it: &Value| it.get("digest").is_some_and(Value::is_string);
        let arguments = &*self.arguments;
        let kept = arguments.is_object() && !redacted(arguments) && !digest(arguments);
        self.recorded.is_some() && !kept
    }

    /// Makes the server known to a guard that offers what is used, where that is not a tool.
    pub(super) fn register_server(&self, guard: &LiveGuard) {
        if let Some(feature) = &self.feature {
            feature.register_server(guard);
        }
    }

    pub(super) fn call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            feature: self.feature.as_ref().map(FeatureInput::feature),
            principal: &self.principal,
            session: self.session.as_deref(),
            groups: self.groups.clone(),
            state: self.state.as_ref(),
            arguments: Arc::clone(&self.arguments),
            attributes: self.attributes.clone(),
            variant: None,
            claims: None,
        }
    }
}

/// The calls of a command, one after the other.
pub(super) fn each_call(
    args: &CallArgs,
    condition_inputs: &ConditionArgs,
    mut see: impl FnMut(CallInput) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let given = policy::attributes(condition_inputs);
    let with_attributes = |mut call: CallInput| {
        for (key, value) in &given {
            call.attributes.insert(key.clone(), value.clone());
        }
        call
    };
    let Some(file) = &args.call else {
        return see(with_attributes(call_from_args(args)?));
    };
    let mut seen = false;
    each_line(file, |line| match line {
        CallLine::Call(call) if call.recorded.is_none() => {
            seen = true;
            see(with_attributes(*call))
        }
        CallLine::Call(_) | CallLine::Outcome { .. } | CallLine::Other => {
            let (place, line, problem) = (file.clone(), 1, CallProblem::Record);
            Err(GuardError::Call {
                place,
                line,
                problem,
            }
            .into())
        }
    })?;
    if !seen {
        let place = file.clone();
        return Err(GuardError::NoCalls { place }.into());
    }
    Ok(())
}

fn call_from_args(args: &CallArgs) -> Result<CallInput, CliError> {
    let arguments = match &args.arguments {
        None => Value::Object(Object::new()),
        Some(text) => {
            let parsed = parse(text).map_err(|error| json_problem(&error));
            parsed
                .and_then(reject_duplicate_keys)
                .map_err(GuardError::Arguments)?
        }
    };
    let groups = args.groups.iter().map(String::as_str);
    let feature = FeatureInput::from_args(args);
    let named = feature
        .as_ref()
        .map(|it| it.feature().record_name().into_owned());
    Ok(CallInput {
        line: 1,
        tool: args.tool.clone().or(named).unwrap_or_default(),
        feature,
        principal: args
            .principal
            .clone()
            .unwrap_or_else(|| UNKNOWN_PRINCIPAL.to_owned()),
        groups: (!args.groups.is_empty()).then(|| groups.collect()),
        arguments: Arc::new(arguments),
        ..CallInput::default()
    })
}

/// Hands over every document of a file, one per line or over several.
pub(super) fn each_line(
    file: &Path,
    mut see: impl FnMut(CallLine) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |source| GuardError::Read {
        place: file.to_owned(),
        source,
    };
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(toolwarden_files::open(file).map_err(failed)?)
    };
    let lines = Rc::new(Cell::new(1));
    let counting = LineCountingReader {
        reader: BufReader::new(reader),
        lines: Rc::clone(&lines),
    };
    let documents = serde_json::Deserializer::from_reader(counting);
    for document in documents.into_iter::<Box<RawValue>>() {
        let document = document.map_err(|error| match error.classify() {
            Category::Io => failed(error.into()),
            Category::Syntax | Category::Data | Category::Eof => GuardError::Call {
                place: file.to_owned(),
                line: error.line(),
                problem: json_problem(&JsonError::from_serde(&error)),
            },
        })?;
        let text = document.get();
        let within = text.bytes().filter(|byte| *byte == b'\n').count();
        see(parse_text(file, lines.get() - within, text)?)?;
    }
    Ok(())
}

/// A reader that knows on which line it is. It hands out what was asked for and no more, so that a call
/// is seen as soon as it is written.
struct LineCountingReader<R> {
    reader: BufReader<R>,
    lines: Rc<Cell<usize>>,
}

impl<R: Read> Read for LineCountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let new = buffer.iter().take(read).filter(|byte| **byte == b'\n');
        self.lines.set(self.lines.get() + new.count());
        Ok(read)
    }
}

fn parse_text(file: &Path, line: usize, text: &str) -> Result<CallLine, CliError> {
    let read = parse(text)
        .map_err(|error| json_problem(&error))
        .and_then(|parsed| parse_line(&reject_duplicate_keys(parsed)?, line));
    let read = read.map_err(|problem| GuardError::Call {
        place: file.to_owned(),
        line,
        problem,
    });
    Ok(read?)
}

/// The value of a text without duplicate keys: another parser may use the other value.
fn reject_duplicate_keys(parsed: Parsed) -> Result<Value, CallProblem> {
    match parsed.duplicates.first() {
        None => Ok(parsed.value),
        Some(twice) => {
            let key = twice.pointer.as_str().trim_start_matches('/').to_owned();
            Err(CallProblem::DuplicateKey { key })
        }
    }
}

fn json_problem(error: &JsonError) -> CallProblem {
    CallProblem::NotJson {
        message: error.kind.to_string(),
        column: error.position.column,
    }
}

fn parse_line(value: &Value, line: usize) -> Result<CallLine, CallProblem> {
    let Some(object) = value.as_object() else {
        let found = type_name(value);
        return Err(CallProblem::NotAnObject { found });
    };
    if object.contains_key("kind") && object.contains_key("seq") {
        return parse_record(object, line);
    }
    Ok(CallLine::Call(Box::new(parse_call(object, line)?)))
}

fn parse_call(object: &Object, line: usize) -> Result<CallInput, CallProblem> {
    let mut said: BTreeMap<&'static str, &Value> = BTreeMap::new();
    let held = find_holder(object)?;
    for (key, value) in object.iter().chain(held.into_iter().flatten()) {
        let known = KEYS
            .iter()
            .find(|(name, others)| name == key || others.contains(&key.as_str()));
        if let Some((name, _)) = known {
            if said.insert(name, value).is_some() {
                let key = (*name).to_owned();
                return Err(CallProblem::DuplicateKey { key });
            }
        } else if !ENVELOPE.contains(&key.as_str())
            && !HOLDERS.contains(&key.as_str())
            && key != "_meta"
        {
            let suggestion = did_you_mean(key, KEYS.iter().map(|(name, _)| *name));
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
    Ok(CallInput {
        line,
        tool: text("tool")?
            .filter(|it| !it.trim().is_empty())
            .ok_or(CallProblem::NoTool)?,
        feature: None,
        principal: text("principal")?.unwrap_or_else(|| UNKNOWN_PRINCIPAL.to_owned()),
        session: text("session")?,
        groups: groups(said.get("group").copied())?,
        state: text("state")?.map(StateName::new),
        arguments: Arc::new(arguments(said.get("arguments").copied())?),
        attributes: attributes(said.get("attributes").copied())?,
        at: text("at")?.map(|text| time("at", &text)).transpose()?,
        success: outcome,
        recorded: None,
    })
}

/// What holds the tool and its arguments, if anything but the call itself does. An
/// ambiguous call is rejected: the caller might read it the other way.
fn find_holder(object: &Object) -> Result<Option<&Object>, CallProblem> {
    if let Some(method) = object.get("method").filter(|it| *it != "tools/call") {
        let method = method.to_string();
        return Err(CallProblem::Method { method });
    }
    let mut holders = HOLDERS.iter().filter(|key| object.contains_key(**key));
    let Some(first) = holders.next() else {
        return Ok(None);
    };
    if let Some(second) = holders.next() {
        return Err(CallProblem::TwoCalls { first, second });
    }
    match object.get(*first) {
        Some(Value::Object(held)) => match HOLDERS.iter().find(|key| held.contains_key(**key)) {
            Some(second) => Err(CallProblem::TwoCalls { first, second }),
            None => Ok(Some(held)),
        },
        other => Err(CallProblem::Type {
            key: first,
            expected: "an object",
            found: other.map_or("nothing", type_name),
        }),
    }
}

/// The groups of a request. A text is not a list: as in the original only `*` has a meaning then, so
/// that no caller gets a group by mistake.
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
            Ok(parsed) => reject_duplicate_keys(parsed),
            Err(error) => Err(json_problem(&error)),
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
fn parse_record(record: &Object, line: usize) -> Result<CallLine, CallProblem> {
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
        Some("outcome") => Ok(CallLine::Outcome {
            call: within("call")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            success: code == "succeeded",
        }),
        Some("decision") => Ok(CallLine::Call(Box::new(CallInput {
            line,
            tool: text("tool").ok_or(CallProblem::NoTool)?,
            feature: FeatureInput::from_record(&text("tool").unwrap_or_default(), body),
            principal: text("principal").unwrap_or_default(),
            session: text("session"),
            groups: groups(within("groups"))?,
            state: None,
            // As it was kept, which may be a word in place of the arguments.
            arguments: Arc::new(within("arguments").cloned().unwrap_or_default()),
            attributes: attributes(within("attributes")).unwrap_or_default(),
            at: text("at").map(|text| time("at", &text)).transpose()?,
            success: None,
            recorded: Some(LoggedDecision {
                id: within("id")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                allowed: record
                    .get("allowed")
                    .and_then(Value::as_bool)
                    .unwrap_or(false),
                code,
                state: within("state").and_then(Value::as_str).map(StateName::new),
            }),
        }))),
        _ => Ok(CallLine::Other),
    }
}
