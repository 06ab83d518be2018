//! Dictionaries as Python prints them: single quotes, `True`, `None`, tuples.

use serde_json::{Number, Value};
use toolwarden_model::json::{MAX_DEPTH, Object};

/// The dictionary that a text prints.
pub(super) fn parse_dictionary(text: &str) -> Option<Object> {
    let mut parser = Parser { rest: text };
    parser.space();
    let value = parser.value(0)?;
    parser.space();
    match value {
        Value::Object(members) if parser.rest.is_empty() => Some(members),
        _ => None,
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest;
        true
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.rest = chars.as_str();
        Some(next)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        for (word, value) in [
            ("True", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("None", Value::Null),
        ] {
            if self.take(word) {
                return Some(value);
            }
        }
        match self.rest.chars().next()? {
            '{' => self.members(depth).map(Value::Object),
            '[' => self.items(depth, "[", "]"),
            '(' => self.items(depth, "(", ")"),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.number(),
        }
    }

    fn members(&mut self, depth: usize) -> Option<Object> {
        let mut members = Object::new();
        self.take("{");
        self.space();
        if self.take("}") {
            return Some(members);
        }
        loop {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
            };
            self.space();
            if !self.take(":") {
                return None;
            }
            self.space();
            let value = self.value(depth + 1)?;
            members.insert(key, value);
            if self.closes("}")? {
                return Some(members);
            }
        }
    }

    fn items(&mut self, depth: usize, open: &str, close: &str) -> Option<Value> {
        let mut items = Vec::new();
        self.take(open);
        self.space();
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if self.closes(close)? {
                break;
            }
            // Only a tuple of one is printed with a comma at its end.
            if close == "]" && self.rest.starts_with(close) {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// Consumes what follows an item: the end, or a comma before the next item.
    fn closes(&mut self, close: &str) -> Option<bool> {
        self.space();
        if self.take(close) {
            return Some(true);
        }
        if !self.take(",") {
            return None;
        }
        self.space();
        Some(false)
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.next()?;
        let mut text = String::new();
        loop {
            let end = self.rest.find([quote, '\\', '\n'])?;
            let (plain, rest) = self.rest.split_at_checked(end)?;
            text.push_str(plain);
            self.rest = rest;
            match self.next()? {
                '\\' => text.push(self.escaped()?),
                '\n' => return None,
                _ => return Some(text),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            c @ ('\\' | '\'' | '"') => c,
            _ => return None,
        })
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<char> {
        let (code, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        char::from_u32(u32::from_str_radix(code, 16).ok()?)
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        let number: Number = serde_json::from_str(text).ok()?;
        self.rest = rest;
        Some(Value::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_python_prints_is_read() {
        let text = r#"{'a': True, "it's": None, 'b': [1, -2.5, (3,), ()], 'c': {'d': 'it\'s \x41\u00e9\n'}, 'e': {}, 1: False}"#;
        let expect = json!({"a": true, "it's": null, "b": [1, -2.5, [3], []], "c": {"d": "it's Aé\n"}, "e": {}, "1": false});
        assert_eq!(parse_dictionary(text).map(Value::Object), Some(expect));
    }

    #[test]
    fn other_texts_are_not() {
        for text in [
            "",
            "{'a': 1",
            "{'a': 1} x",
            "{'a': 1,}",
            "{\"a\": [1,]}",
            "{'a': it}",
            "{'a': NaN}",
            "{'it's': 1}",
            "['a']",
            "{'a', 'b'}",
            "{'a': '\\ud800'}",
        ] {
            assert_eq!(parse_dictionary(text), None, "{text}");
        }
        assert_eq!(parse_dictionary(&"{'a':".repeat(100_000)), None);
    }
}
