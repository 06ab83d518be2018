use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwarden_model::json::parse;

use crate::argument_shape::MAX_PATHS;
use crate::sorted_json::to_sorted_text;
use crate::suite::TrialSuite;
use crate::trial::{MeasuredReply, ObservedCall, Trial, TrialOrigin};
use crate::trial_order::order_trials;

/// A snapshot in the tooldrift format: one reply, reduced to seven fields per tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooldriftSnapshot {
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model_id: String,
    /// The name of the suite.
    pub suite: String,
    /// The tools of the suite, and tools that were called without being in it.
    pub tools: BTreeMap<String, ToolCallShape>,
}

/// How a tool was called in one reply.
///
/// Only the first call of the tool supplies the fields about arguments and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolCallShape {
    /// Whether it was called.
    pub emitted: bool,
    /// The names of the arguments, sorted.
    pub arg_keys: Vec<String>,
    /// The type of each.
    pub arg_nesting: BTreeMap<String, String>,
    /// `json_string`, `object` or `absent`.
    pub arguments_encoding: String,
    /// How often it was called in the reply.
    pub parallel_arity: u64,
    /// `openai`, `custom` or `absent`.
    pub tool_call_id_format: String,
    /// The finish reason, in the provider's word.
    pub finish_reason: String,
}

impl Default for ToolCallShape {
    fn default() -> Self {
        Self::not_called("")
    }
}

impl ToolCallShape {
    fn not_called(finish: &str) -> Self {
        Self {
            emitted: false,
            arg_keys: Vec::new(),
            arg_nesting: BTreeMap::new(),
            arguments_encoding: "absent".to_owned(),
            parallel_arity: 0,
            tool_call_id_format: "absent".to_owned(),
            finish_reason: finish.to_owned(),
        }
    }
}

impl TooldriftSnapshot {
    /// What tooldrift would have kept; `None` if nothing was measured.
    ///
    /// tooldrift sends one request. For a suite with several cases, the first reply to each case
    /// counts, and the first of them that calls a tool supplies the fields of that tool.
    #[must_use]
    pub fn of(origin: &TrialOrigin, suite: &TrialSuite, trials: &[Trial]) -> Option<Self> {
        let firsts = first_replies(&order_trials(suite, trials));
        if firsts.is_empty() {
            return None;
        }
        Some(Self {
            provider: origin.provider.clone(),
            model_id: origin.model_id.clone(),
            suite: suite.name.clone(),
            tools: shapes(suite, &firsts),
        })
    }

    /// The bytes of the file, as Python's `json.dumps(indent=2, sort_keys=True, ensure_ascii=False)`
    /// writes them, with a newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_sorted_text(json!({
            "model_id": self.model_id,
            "provider": self.provider,
            "schema_version": 1,
            "suite": self.suite,
            "tools": self.tools,
        }))
    }
}

/// The first reply to each case.
pub(crate) fn first_replies<'t>(ordered: &[&'t Trial]) -> Vec<&'t MeasuredReply> {
    let mut firsts: Vec<(&str, &MeasuredReply)> = Vec::new();
    for trial in ordered {
        let Ok(measured) = &trial.outcome else {
            continue;
        };
        if firsts.last().is_none_or(|(case, _)| *case != trial.case) {
            firsts.push((&trial.case, measured));
        }
    }
    firsts.into_iter().map(|(_, measured)| measured).collect()
}

/// The shapes of all tools in these replies.
pub(crate) fn shapes(
    suite: &TrialSuite,
    replies: &[&MeasuredReply],
) -> BTreeMap<String, ToolCallShape> {
    let mut shapes = BTreeMap::new();
    for reply in replies {
        let finish = finish_reason(reply.finish.as_ref());
        let mut calls: BTreeMap<&String, (&ObservedCall, u64)> = BTreeMap::new();
        for call in &reply.calls {
            calls.entry(&call.name).or_insert((call, 0)).1 += 1;
        }
        for (name, (first, arity)) in calls {
            let known = shapes.entry(name.clone());
            known.or_insert_with(|| shape_of_call(first, arity, &finish));
        }
    }
    if let Some(first) = replies.first() {
        let finish = finish_reason(first.finish.as_ref());
        for name in suite.tools.keys() {
            let known = shapes.entry(name.clone());
            known.or_insert_with(|| ToolCallShape::not_called(&finish));
        }
    }
    shapes
}

/// The shape of one tool in one reply.
pub(crate) fn shape_of(reply: &MeasuredReply, tool: &str) -> ToolCallShape {
    let finish = finish_reason(reply.finish.as_ref());
    let mut calls = reply.calls.iter().filter(|call| call.name == tool);
    let Some(first) = calls.next() else {
        return ToolCallShape::not_called(&finish);
    };
    let arity = 1 + u64::try_from(calls.count()).unwrap_or(u64::MAX - 1);
    shape_of_call(first, arity, &finish)
}

fn shape_of_call(first: &ObservedCall, arity: u64, finish: &str) -> ToolCallShape {
    let arg_nesting = arg_nesting(first);
    ToolCallShape {
        emitted: true,
        arg_keys: arg_nesting.keys().cloned().collect(),
        arg_nesting,
        arguments_encoding: encoding(first.sent.as_ref()).to_owned(),
        parallel_arity: arity,
        tool_call_id_format: id_format(first.id.as_ref()).to_owned(),
        finish_reason: finish.to_owned(),
    }
}

/// The word; `None` for every value that Python treats as false.
pub(crate) fn finish_reason(finish: Option<&Value>) -> String {
    match finish {
        None | Some(Value::Null | Value::Bool(false)) => String::new(),
        Some(Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
    }
}

fn encoding(sent: Option<&Value>) -> &'static str {
    match sent {
        None | Some(Value::Null) => "absent",
        Some(Value::String(_)) => "json_string",
        Some(_) => "object",
    }
}

fn id_format(id: Option<&Value>) -> &'static str {
    match id {
        None | Some(Value::Null) => "absent",
        Some(Value::String(text)) if text.is_empty() => "absent",
        Some(Value::String(text)) if text.starts_with("call_") && text.chars().count() >= 8 => {
            "openai"
        }
        Some(_) => "custom",
    }
}

fn arg_nesting(call: &ObservedCall) -> BTreeMap<String, String> {
    let parsed = match &call.sent {
        Some(Value::String(text)) if !text.starts_with('\u{feff}') => {
            parse(&without_constants(text)).ok().map(|it| it.value)
        }
        Some(Value::String(_)) | None => None,
        Some(value) => Some(value.clone()),
    };
    let Some(Value::Object(arguments)) = parsed else {
        return BTreeMap::new();
    };
    let mut types: BTreeMap<String, String> = arguments
        .iter()
        .map(|(name, value)| (name.clone(), json_type(value).to_owned()))
        .collect();
    while types.len() > MAX_PATHS {
        types.pop_last();
    }
    types
}

/// The type as Python sees it: a number with a point or an exponent is a float.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.to_string().contains(['.', 'e', 'E']) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The text with a number for each constant that Python reads as one and JSON does not have.
fn without_constants(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    let mut escaped = false;
    while let Some(c) = rest.chars().next() {
        if !quoted {
            let constant = ["NaN", "-Infinity", "Infinity"];
            if let Some(after) = constant.iter().find_map(|it| rest.strip_prefix(*it)) {
                out.push_str("0.5");
                rest = after;
                continue;
            }
        }
        if escaped {
            escaped = false;
        } else if quoted && c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        }
        out.push(c);
        rest = rest.strip_prefix(c).unwrap_or_default();
    }
    out
}
