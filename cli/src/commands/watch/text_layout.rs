//! Values and texts in lines of a width.

use serde_json::Value;

use crate::style::escape_controls;

/// The most lines of a value that are shown.
const MAX_LINES: usize = 6;

/// Lines of at most a width, broken at spaces where there are any.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in escape_controls(paragraph).split_inclusive(' ') {
            let mut word = word.to_owned();
            if !line.is_empty() && line.chars().count() + word.trim_end().chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            while word.chars().count() > width {
                let rest: String = word.chars().skip(width).collect();
                lines.push(word.chars().take(width).collect());
                word = rest;
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.trim_end().to_owned())
        .collect();
    if lines.is_empty() {
        vec!["(empty)".to_owned()]
    } else {
        lines
    }
}

/// JSON in one line that can be broken at its spaces.
pub(super) fn spaced_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| {
                format!("{}: {}", Value::from(key.as_str()), spaced_json(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(spaced_json);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Two texts from the line before the first that differs, as many lines as are shown.
pub(super) fn from_first_difference(
    before: Vec<String>,
    after: Vec<String>,
) -> (Vec<String>, Vec<String>) {
    let same = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let long = before.len().max(after.len()) > MAX_LINES;
    let skipped = if long { same.saturating_sub(1) } else { 0 };
    let cut = |lines: Vec<String>| {
        let mut shown: Vec<String> = Vec::new();
        if skipped > 0 {
            shown.push("…".to_owned());
        }
        let left = lines.len().saturating_sub(skipped);
        let room = MAX_LINES - shown.len();
        let take = if left > room { room - 1 } else { left };
        shown.extend(lines.into_iter().skip(skipped).take(take));
        if left > room {
            shown.push("…".to_owned());
        }
        shown
    };
    (cut(before), cut(after))
}

pub(super) fn truncate(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    text.chars().take(length).chain(['…']).collect()
}
