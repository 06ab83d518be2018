//! Detects markup of a model's own template that leaked into the reply.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json;
use toolwarden_model::reply::{Leak, LeakPlace, Reply};

use super::leak_shapes::text_call;

/// The family of markup around reasoning.
pub(super) const THINKING: &str = "thinking";

/// Markup and whose it is. All of it begins with `<`, `[` or `]`.
const SENTINELS: &[(&str, &str)] = &[
    ("<｜DSML｜", "deepseek-dsml"),
    ("</｜DSML｜", "deepseek-dsml"),
    ("<｜｜DSML｜｜", "deepseek-dsml"),
    ("</｜｜DSML｜｜", "deepseek-dsml"),
    ("<‖DSML‖", "deepseek-dsml"),
    ("</‖DSML‖", "deepseek-dsml"),
    ("<|DSML|", "deepseek-dsml"),
    ("</|DSML|", "deepseek-dsml"),
    ("<||DSML||", "deepseek-dsml"),
    ("</||DSML||", "deepseek-dsml"),
    ("<｜tool▁calls▁begin｜>", "deepseek-tokens"),
    ("<｜tool▁call▁begin｜>", "deepseek-tokens"),
    ("<｜tool▁sep｜>", "deepseek-tokens"),
    ("<｜tool▁call▁end｜>", "deepseek-tokens"),
    ("<｜tool▁calls▁end｜>", "deepseek-tokens"),
    ("<|tool_calls_section_begin|>", "kimi"),
    ("<|tool_calls_section_end|>", "kimi"),
    ("<|tool_call_begin|>", "kimi"),
    ("<|tool_call_argument_begin|>", "kimi"),
    ("<|tool_call_end|>", "kimi"),
    ("<tool_call>", "tool-call-tag"),
    ("</tool_call>", "tool-call-tag"),
    ("<arg_key>", "glm"),
    ("</arg_value>", "glm"),
    ("<function=", "qwen-xml"),
    ("<minimax:tool_call>", "minimax"),
    ("</minimax:tool_call>", "minimax"),
    ("]<]minimax[>[", "minimax-m3"),
    ("<invoke name=", "invoke-xml"),
    ("</invoke>", "invoke-xml"),
    ("<function_calls>", "invoke-xml"),
    ("</function_calls>", "invoke-xml"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama"),
    ("<steptml:", "stepfun"),
    ("</steptml:", "stepfun"),
    ("<|FunctionCallBegin|>", "doubao"),
    ("<|FunctionCallEnd|>", "doubao"),
    ("<seed:tool_call>", "doubao"),
    ("</seed:tool_call>", "doubao"),
    ("<|channel|>", "harmony"),
    ("<|constrain|>", "harmony"),
    ("<|call|>", "harmony"),
    ("<|action_start|>", "internlm"),
    ("<|plugin|>", "internlm"),
    ("<|action_end|>", "internlm"),
    ("<tool_code>", "tool-code"),
    ("</tool_code>", "tool-code"),
    ("<|START_ACTION|>", "cohere"),
    ("<|END_ACTION|>", "cohere"),
    ("<think>", THINKING),
    ("</think>", THINKING),
    ("<mm:think>", THINKING),
    ("</mm:think>", THINKING),
];

/// The family of a call that is written as JSON in the text.
pub(super) const JSON_TEXT: &str = "json-text";

/// The markup that leaked into text, reasoning and arguments, each kind once per place.
#[must_use]
pub fn find_leaks(reply: &Reply) -> Vec<Leak> {
    let mut found = text_leaks(reply);
    let arguments: BTreeSet<Leak> = reply
        .calls
        .iter()
        .flat_map(|call| argument_leaks(call.arguments.as_ref()))
        .collect();
    found.extend(arguments);
    found
}

/// The markup in text and reasoning.
pub(super) fn text_leaks(reply: &Reply) -> Vec<Leak> {
    let mut found = BTreeSet::new();
    scan(&reply.text, LeakPlace::Text, &mut found);
    scan(&reply.reasoning, LeakPlace::Reasoning, &mut found);
    // A model that made a call may also show JSON as text.
    if reply.calls.is_empty()
        && let Some(sentinel) = json_call(&reply.text)
    {
        found.insert(Leak {
            family: JSON_TEXT,
            place: LeakPlace::Text,
            sentinel: sentinel.to_owned(),
        });
    }
    if reply.calls.is_empty()
        && let Some((family, sentinel)) = text_call(&reply.text)
    {
        found.insert(Leak {
            family,
            place: LeakPlace::Text,
            sentinel: sentinel.to_owned(),
        });
    }
    found.into_iter().collect()
}

/// The markup in the arguments of one call.
pub(super) fn argument_leaks(arguments: Option<&Value>) -> BTreeSet<Leak> {
    let mut found = BTreeSet::new();
    let Some(arguments) = arguments else {
        return found;
    };
    match arguments {
        Value::String(text) => {
            scan(text, LeakPlace::Arguments, &mut found);
            // Where nothing is escaped, the text shows all there is.
            if memchr::memchr(b'\\', text.as_bytes()).is_some()
                && let Ok(parsed) = json::parse(text)
            {
                scan_value(&parsed.value, &mut found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            scan_value(arguments, &mut found);
        }
    }
    found
}

/// Whether there is text besides a block of reasoning that leaked into it.
pub(super) fn has_visible_text(text: &str) -> bool {
    let mut rest = text.trim();
    for (open, close) in [("<think>", "</think>"), ("<mm:think>", "</mm:think>")] {
        if let Some(inside) = rest.strip_prefix(open) {
            rest = inside
                .split_once(close)
                .map_or("", |(_, after)| after.trim());
        }
    }
    !rest.is_empty()
}

fn scan(text: &str, place: LeakPlace, found: &mut BTreeSet<Leak>) {
    let bytes = text.as_bytes();
    for at in memchr::memchr3_iter(b'<', b'[', b']', bytes) {
        let rest = bytes.get(at..).unwrap_or_default();
        if !may_begin(rest) {
            continue;
        }
        for (sentinel, family) in SENTINELS {
            if rest.starts_with(sentinel.as_bytes()) {
                found.insert(Leak {
                    family,
                    place,
                    sentinel: (*sentinel).to_owned(),
                });
            }
        }
    }
}

/// Whether two bytes may begin markup; this quick test avoids the table for most texts.
fn may_begin(rest: &[u8]) -> bool {
    match rest {
        // The second byte of `<｜` and `<‖` is the first of a longer character.
        [b'<', second, ..] => matches!(
            second,
            b'/' | b'|' | b'a' | b'f' | b'i' | b'm' | b's' | b't' | 0xef | 0xe2
        ),
        [b'[', second, ..] => *second == b'T',
        [b']', second, ..] => *second == b'<',
        _ => false,
    }
}

fn scan_value(value: &Value, found: &mut BTreeSet<Leak>) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => scan(text, LeakPlace::Arguments, found),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    scan(key, LeakPlace::Arguments, found);
                    pending.push(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// How a call is written as JSON in a text: in a code fence, or as the whole text.
fn json_call(text: &str) -> Option<&'static str> {
    const FENCE: &str = "```";
    let bare = text.trim();
    if bare.starts_with(['{', '[']) && is_call_text(bare) {
        return Some("{\"name\": …}");
    }
    // Every second piece between fences is inside one.
    let inside = text.split(FENCE).skip(1).step_by(2);
    let mut json = inside.map(|piece| {
        let body = piece
            .strip_prefix("json")
            .or(piece.strip_prefix("tool_call"));
        body.unwrap_or(piece).trim()
    });
    let fenced = json.any(|it| it.starts_with(['{', '[']) && is_call_text(it));
    fenced.then_some("```json")
}

fn is_call_text(text: &str) -> bool {
    let is_call = |value: &Value| {
        let function = value.get("function").filter(|it| it.is_object());
        let subject = function.unwrap_or(value);
        let named = ["name", "tool", "tool_name"];
        let given = ["arguments", "parameters", "args", "input"];
        named
            .iter()
            .any(|key| subject.get(key).is_some_and(Value::is_string))
            && given.iter().any(|key| {
                subject
                    .get(key)
                    .is_some_and(|it| it.is_object() || it.is_string())
            })
    };
    json::parse(text).is_ok_and(|parsed| match &parsed.value {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_call),
        value => match value.get("tool_calls") {
            Some(Value::Array(items)) => items.iter().any(is_call),
            _ => is_call(value),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentinel_is_found_and_is_listed_once() {
        for (sentinel, family) in SENTINELS {
            let mut found = BTreeSet::new();
            scan(sentinel, LeakPlace::Text, &mut found);
            let leak = Leak {
                family,
                place: LeakPlace::Text,
                sentinel: (*sentinel).to_owned(),
            };
            assert!(found.contains(&leak), "{sentinel}");
        }
        let distinct: BTreeSet<&str> = SENTINELS.iter().map(|(it, _)| *it).collect();
        assert_eq!(distinct.len(), SENTINELS.len());
    }
}
