//! What a reply says about the model: its calls checked against the schemas of the offered tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jsonschema::PatternOptions;
use serde_json::Value;
use toolwarden_canon::RenamedTool;
use toolwarden_canon::reply::{ClassifiedArguments, arguments, find_leaks};
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::reply::{Reply, ReplyCall};
use toolwarden_trials::{ArgumentFault, MeasuredReply, ObservedCall};

use crate::backtracking_patterns::without_backtracking_patterns;
use crate::secret::Redactor;

/// The rule of notes on patterns that are not checked.
const UNCHECKED_PATTERN: &str = "pattern-not-checked";

/// The maximum number of faults reported for one call.
const MAX_FAULTS: usize = 32;
/// The maximum length of a reported message; messages quote values.
const MAX_MESSAGE: usize = 300;
/// The memory limit of one compiled pattern, so that nested repeats cannot exhaust memory.
const PATTERN_BYTES: usize = 16 << 20;
/// The longest number that is compared; longer ones would need big-integer arithmetic.
const MAX_DIGITS: usize = 400;

/// Checks replies against the tools of a suite.
pub struct ReplyObserver {
    tools: BTreeMap<String, ToolValidator>,
}

/// The schema of a tool, compiled once.
struct ToolValidator {
    schema: Value,
    /// Where the schema has patterns that are not checked.
    unchecked: Vec<Pointer>,
    /// The validator, or why there is none. Without one no arguments pass: unknown is not a pass.
    validator: Result<jsonschema::Validator, String>,
}

impl fmt::Debug for ReplyObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

impl ReplyObserver {
    /// Compiles the schemas of tools, each in the draft it names, or 2020-12 by default. Nothing is
    /// fetched, formats are annotations only, and patterns match in linear time.
    #[must_use]
    pub fn new(tools: &[Tool]) -> Self {
        Self::with(tools, false)
    }

    /// Like [`Self::new`], with formats enforced.
    pub(crate) fn with_formats(tools: &[Tool]) -> Self {
        Self::with(tools, true)
    }

    fn with(tools: &[Tool], formats: bool) -> Self {
        let checks = tools
            .iter()
            .map(|tool| (tool.name.clone(), ToolValidator::new(&tool.inputs, formats)));
        Self {
            tools: checks.collect(),
        }
    }

    /// What a reply says about the model, with keys masked. Tools that were renamed on the wire get
    /// their original names back.
    #[must_use]
    pub fn observe(
        &self,
        mut reply: Reply,
        renamed: &[RenamedTool],
        redactor: Option<&Redactor>,
    ) -> MeasuredReply {
        for call in &mut reply.calls {
            if let Some(tool) = renamed.iter().find(|it| it.emitted == call.name) {
                call.name.clone_from(&tool.original);
            }
        }
        let leaks = find_leaks(&reply);
        let mask = |text: String| match redactor {
            Some(redactor) => redactor.redact_text(&text),
            None => text,
        };
        let notes = reply.notes.iter().map(|note| {
            let pointer = note.pointer.as_str().to_owned();
            (
                note.rule.to_owned(),
                mask(pointer),
                mask(note.message.clone()),
            )
        });
        let notes = notes.chain(self.unchecked_patterns(&reply));
        MeasuredReply {
            notes: notes.collect(),
            calls: reply
                .calls
                .into_iter()
                .map(|call| self.observe_call(call, redactor))
                .collect(),
            finish: reply.finish.map(|it| mask_value(it, redactor)),
            finish_class: reply.finish_class,
            leaks,
            model: reply.model.map(mask),
            usage: reply.usage,
            has_text: !reply.text.trim().is_empty(),
        }
    }

    /// The patterns of the called tools that are not checked.
    fn unchecked_patterns(&self, reply: &Reply) -> Vec<(String, String, String)> {
        let called: BTreeSet<&String> = reply.calls.iter().map(|it| &it.name).collect();
        let tools = called
            .into_iter()
            .filter_map(|name| Some((name, self.tools.get(name)?)));
        let patterns = tools.flat_map(|(name, tool)| {
            tool.unchecked.iter().map(move |pattern| {
                let message = format!(
                    "a pattern of `{name}` needs lookahead or backreferences and is not checked"
                );
                let rule = UNCHECKED_PATTERN.to_owned();
                (rule, pattern.as_str().to_owned(), message)
            })
        });
        patterns.collect()
    }

    fn observe_call(&self, call: ReplyCall, redactor: Option<&Redactor>) -> ObservedCall {
        // In the body a key may have been escaped or split, which masking could miss; here it is
        // neither.
        let name = match redactor {
            Some(redactor) => redactor.redact_text(&call.name),
            None => call.name,
        };
        let sent = call.arguments.map(|it| mask_value(it, redactor));
        let check = self.tools.get(&name);
        let sorted = arguments(sent.as_ref(), check.map(|it| &it.schema));
        let ClassifiedArguments { class, value, .. } = sorted;
        let faults = match (check, &value) {
            (Some(check), Some(value)) => check.faults(value),
            _ => Vec::new(),
        };
        ObservedCall {
            name,
            id: call.id.map(|it| mask_value(it, redactor)),
            sent,
            class,
            value,
            faults,
        }
    }
}

impl ToolValidator {
    fn new(schema: &Object, formats: bool) -> Self {
        let schema = Value::Object(schema.clone());
        let draft = match jsonschema::Draft::default().detect(&schema) {
            jsonschema::Draft::Unknown => jsonschema::Draft::default(),
            known => known,
        };
        // Whether a provider enforces such a pattern cannot be known without checking it.
        let (checked, unchecked) = if formats {
            (schema.clone(), Vec::new())
        } else {
            without_backtracking_patterns(&schema)
        };
        let validator = jsonschema::options()
            .with_draft(draft)
            .offline()
            .should_validate_formats(formats)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
            .build(&checked)
            .map_err(|error| truncate_text(error.to_string()));
        Self {
            schema,
            unchecked,
            validator,
        }
    }

    /// The violations of the schema by these arguments, the one nearest to the root first.
    fn faults(&self, arguments: &Object) -> Vec<ArgumentFault> {
        let validator = match &self.validator {
            Ok(validator) => validator,
            Err(reason) => {
                return vec![ArgumentFault {
                    pointer: Pointer::root(),
                    keyword: "$schema".to_owned(),
                    message: format!("the schema cannot be used: {reason}"),
                }];
            }
        };
        let value = Value::Object(arguments.clone());
        if let Some(pointer) = long_number(&value, &Pointer::root()) {
            return vec![ArgumentFault {
                pointer,
                keyword: "type".to_owned(),
                message: format!("the number has more than {MAX_DIGITS} digits"),
            }];
        }
        let errors = validator.iter_errors(&value).take(MAX_FAULTS);
        let mut faults: Vec<ArgumentFault> = errors
            .map(|error| ArgumentFault {
                pointer: Pointer::from(error.instance_path().as_str()),
                keyword: error.kind().keyword().to_owned(),
                message: truncate_text(error.to_string()),
            })
            .collect();
        faults.sort_by_key(|fault| fault.pointer.segments().count());
        faults
    }
}

/// The value with keys masked.
pub(crate) fn mask_value(value: Value, redactor: Option<&Redactor>) -> Value {
    let Some(redactor) = redactor else {
        return value;
    };
    match value {
        Value::String(text) => Value::String(redactor.redact_text(&text)),
        Value::Array(items) => {
            let items = items.into_iter().map(|it| mask_value(it, Some(redactor)));
            Value::Array(items.collect())
        }
        Value::Object(members) => {
            let members = members
                .into_iter()
                .map(|(name, it)| (redactor.redact_text(&name), mask_value(it, Some(redactor))));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn truncate_text(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(MAX_MESSAGE) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// The location of a number that is too long to compare.
fn long_number(value: &Value, at: &Pointer) -> Option<Pointer> {
    match value {
        Value::Number(number) => (number.as_str().len() > MAX_DIGITS).then(|| at.clone()),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| long_number(item, &at.index(index)))
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.find_map(|(name, item)| long_number(item, &at.child(name)))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwarden_model::Format;

    use super::*;

    fn faults(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
        let mut tool = Tool::new(Format::OpenaiChat);
        "t".clone_into(&mut tool.name);
        tool.inputs = schema.as_object().unwrap().clone();
        let reply = Reply {
            calls: vec![call("t", arguments)],
            ..Reply::default()
        };
        let measured = ReplyObserver::new(&[tool]).observe(reply, &[], None);
        let faults = measured.calls[0].faults.iter();
        faults
            .map(|it| (it.keyword.clone(), it.pointer.as_str().to_owned()))
            .collect()
    }

    fn call(name: &str, arguments: &Value) -> ReplyCall {
        ReplyCall {
            name: name.to_owned(),
            id: None,
            arguments: Some(arguments.clone()),
            pointer: Pointer::root(),
        }
    }

    #[test]
    fn schemas_are_read_in_their_draft_and_formats_do_not_bind() {
        let tuple = json!({"properties": {"a": {"items": [{"type": "string"}]}}});
        let old = "http://json-schema.org/draft-07/schema#";
        let mut old_tuple = tuple.clone();
        old_tuple["$schema"] = json!(old);
        let date = json!({"properties": {"a": {"format": "date"}}});
        let nowhere = json!({"properties": {"a": {"$ref": "https://example.com/a.json"}}});
        let arguments = json!({"a": [1]});
        let type_fault = vec![("type".to_owned(), "/a/0".to_owned())];
        assert_eq!(faults(&old_tuple, &arguments), type_fault);
        assert_eq!(faults(&date, &json!({"a": "soon"})), []);
        // An unusable schema accepts nothing: the first is invalid in 2020-12, the second is never
        // fetched.
        for unusable in [tuple, nowhere] {
            let unusable = faults(&unusable, &arguments);
            assert_eq!(unusable, [("$schema".to_owned(), String::new())]);
        }
    }

    #[test]
    fn a_tool_gets_its_own_name_back() {
        let mut tool = Tool::new(Format::Mcp);
        "a.b".clone_into(&mut tool.name);
        tool.inputs = json!({"required": ["x"]}).as_object().unwrap().clone();
        let renamed = RenamedTool {
            original: "a.b".to_owned(),
            emitted: "a_b".to_owned(),
        };
        let reply = Reply {
            calls: vec![call("a_b", &json!({})), call("c", &json!({}))],
            ..Reply::default()
        };
        let measured = ReplyObserver::new(&[tool]).observe(reply, &[renamed], None);
        let seen = measured.calls.iter();
        let seen: Vec<_> = seen.map(|it| (it.name.as_str(), it.faults.len())).collect();
        assert_eq!(seen, [("a.b", 1), ("c", 0)]);
    }
}
