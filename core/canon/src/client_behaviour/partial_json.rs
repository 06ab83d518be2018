//! How clients parse arguments that may be incomplete.

use serde_json::{Map, Value};
use toolwarden_model::json;

/// How many bytes are parsed to repair one text; the clients take time that grows with its square.
const MAX_REPAIR_BYTES: usize = 64 << 20;

/// `json.loads(text, strict=False)` of Python, which accepts control characters in strings.
pub(super) fn loads(text: &str) -> Option<Value> {
    if let Ok(parsed) = json::parse(text) {
        return Some(parsed.value);
    }
    if !text.contains(|it: char| it.is_ascii_control()) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let (mut inside, mut backslash) = (false, false);
    for it in text.chars() {
        if inside && it.is_ascii_control() && it != '\u{7f}' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(it)));
            backslash = false;
            continue;
        }
        match it {
            '"' if !backslash => inside = !inside,
            _ => {}
        }
        backslash = inside && it == '\\' && !backslash;
        escaped.push(it);
    }
    json::parse(&escaped).ok().map(|it| it.value)
}

/// LangChain's repair: it closes what is open, and drops characters at the end until the text parses.
/// `None` if that fails.
pub(super) fn repair(text: &str) -> Option<Value> {
    if let Some(value) = loads(text) {
        return Some(value);
    }
    let mut kept: Vec<String> = Vec::new();
    let mut open: Vec<char> = Vec::new();
    let (mut inside, mut escaped) = (false, false);
    for it in text.chars() {
        let mut piece = it.to_string();
        if inside {
            if it == '"' && !escaped {
                inside = false;
            } else if it == '\n' && !escaped {
                "\\n".clone_into(&mut piece);
            } else if it == '\\' {
                escaped = !escaped;
            } else {
                escaped = false;
            }
        } else {
            match it {
                '"' => (inside, escaped) = (true, false),
                '{' => open.push('}'),
                '[' => open.push(']'),
                '}' | ']' => {
                    if open.last() != Some(&it) {
                        return None;
                    }
                    open.pop();
                }
                _ => {}
            }
        }
        kept.push(piece);
    }
    if inside {
        if escaped {
            kept.pop();
        }
        kept.push("\"".to_owned());
    }
    let closing: String = open.iter().rev().collect();
    let mut attempts = MAX_REPAIR_BYTES / text.len().max(1);
    while !kept.is_empty() && attempts > 0 {
        attempts -= 1;
        let candidate = kept.concat() + &closing;
        if let Some(value) = loads(&candidate) {
            return Some(value);
        }
        kept.pop();
    }
    None
}

/// The parser of Anthropic's library (jiter): values that the end cuts off are left out, and text after
/// the value is ignored.
pub(super) fn parse_incomplete(text: &str) -> Option<Value> {
    let mut parser = IncompleteParser {
        rest: text,
        depth: 0,
    };
    match parser.value() {
        Parsed::Whole(value) | Parsed::Cut(Some(value)) => Some(value),
        Parsed::Cut(None) | Parsed::Invalid => None,
    }
}

/// What was read of a value.
enum Parsed {
    Whole(Value),
    /// The text ended inside it; a container keeps what was complete.
    Cut(Option<Value>),
    Invalid,
}

struct IncompleteParser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> IncompleteParser<'t> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn value(&mut self) -> Parsed {
        self.skip_space();
        match self.rest.chars().next() {
            None => Parsed::Cut(None),
            Some('{' | '[') if self.depth >= json::MAX_DEPTH => Parsed::Invalid,
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"') => match self.string() {
                Parsed::Cut(_) => Parsed::Cut(None),
                other => other,
            },
            Some(_) => self.scalar(),
        }
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        self.rest = self.rest.get(1..).unwrap_or_default();
        let parsed = read(self);
        self.depth -= 1;
        parsed
    }

    fn object(&mut self) -> Parsed {
        let mut members = Map::new();
        let cut = |members: Map<String, Value>| Parsed::Cut(Some(Value::Object(members)));
        let mut first = true;
        loop {
            self.skip_space();
            match self.rest.chars().next() {
                None => return cut(members),
                Some('}') if first => {
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    return Parsed::Whole(Value::Object(members));
                }
                Some('"') => {}
                Some(_) => return Parsed::Invalid,
            }
            first = false;
            let key = match self.string() {
                Parsed::Whole(Value::String(key)) => key,
                Parsed::Cut(_) => return cut(members),
                _ => return Parsed::Invalid,
            };
            self.skip_space();
            match self.rest.chars().next() {
                None => return cut(members),
                Some(':') => self.rest = self.rest.get(1..).unwrap_or_default(),
                Some(_) => return Parsed::Invalid,
            }
            match self.value() {
                Parsed::Whole(value) => {
                    members.insert(key, value);
                }
                Parsed::Cut(value) => {
                    if let Some(value) = value {
                        members.insert(key, value);
                    }
                    return cut(members);
                }
                Parsed::Invalid => return Parsed::Invalid,
            }
            self.skip_space();
            match self.rest.chars().next() {
                None => return cut(members),
                Some(',') => self.rest = self.rest.get(1..).unwrap_or_default(),
                Some('}') => {
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    return Parsed::Whole(Value::Object(members));
                }
                Some(_) => return Parsed::Invalid,
            }
        }
    }

    fn array(&mut self) -> Parsed {
        let mut items = Vec::new();
        let cut = |items: Vec<Value>| Parsed::Cut(Some(Value::Array(items)));
        loop {
            self.skip_space();
            if items.is_empty() && self.rest.starts_with(']') {
                self.rest = self.rest.get(1..).unwrap_or_default();
                return Parsed::Whole(Value::Array(items));
            }
            match self.value() {
                Parsed::Whole(value) => items.push(value),
                Parsed::Cut(value) => {
                    items.extend(value);
                    return cut(items);
                }
                Parsed::Invalid => return Parsed::Invalid,
            }
            self.skip_space();
            match self.rest.chars().next() {
                None => return cut(items),
                Some(',') => self.rest = self.rest.get(1..).unwrap_or_default(),
                Some(']') => {
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    return Parsed::Whole(Value::Array(items));
                }
                Some(_) => return Parsed::Invalid,
            }
        }
    }

    fn string(&mut self) -> Parsed {
        let mut escaped = false;
        for (at, it) in self.rest.char_indices().skip(1) {
            match it {
                '"' if !escaped => {
                    let (text, rest) = self.rest.split_at(at + 1);
                    self.rest = rest;
                    return match json::parse(text) {
                        Ok(parsed) => Parsed::Whole(parsed.value),
                        Err(_) => Parsed::Invalid,
                    };
                }
                '\u{0}'..='\u{1f}' => return Parsed::Invalid,
                _ => escaped = it == '\\' && !escaped,
            }
        }
        self.rest = "";
        Parsed::Cut(None)
    }

    fn scalar(&mut self) -> Parsed {
        let end = self
            .rest
            .find([',', '}', ']', ' ', '\t', '\n', '\r', '"', ':']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if let Ok(parsed) = json::parse(word) {
            self.rest = rest;
            return Parsed::Whole(parsed.value);
        }
        let is_cut = rest.is_empty()
            && (["true", "false", "null"]
                .iter()
                .any(|it| it.starts_with(word))
                || word.ends_with(['-', '.', 'e', 'E', '+']));
        self.rest = rest;
        if is_cut {
            Parsed::Cut(None)
        } else {
            Parsed::Invalid
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_arguments_parse_as_the_clients_parse_them() {
        for (text, incomplete, repaired) in [
            (r#"{"a":"#, Some("{}"), Some("{}")),
            (r#"{"a":"b"#, Some("{}"), Some(r#"{"a":"b"}"#)),
            (r#"{"a":1"#, Some(r#"{"a":1}"#), Some(r#"{"a":1}"#)),
            (r#"{"a":1.""#, None, Some(r#"{"a":1}"#)),
            (r#"{"a":12, "b""#, Some(r#"{"a":12}"#), Some(r#"{"a":12}"#)),
            (
                r#"{"a":[1,"x"#,
                Some(r#"{"a":[1]}"#),
                Some(r#"{"a":[1,"x"]}"#),
            ),
            (
                r#"{"a":{"b":"c"#,
                Some(r#"{"a":{}}"#),
                Some(r#"{"a":{"b":"c"}}"#),
            ),
            (r#"{"a":1}x"#, Some(r#"{"a":1}"#), Some(r#"{"a":1}"#)),
            (r#"{"a":1,}"#, None, None),
            ("{'a': 1}", None, None),
            ("nul", None, None),
            ("", None, None),
            ("{\"a\":\"b\nc\"}", None, Some(r#"{"a":"b\nc"}"#)),
        ] {
            let parse = |it: &str| serde_json::from_str::<Value>(it).ok();
            assert_eq!(parse_incomplete(text), incomplete.and_then(parse), "{text}");
            assert_eq!(repair(text), repaired.and_then(parse), "{text}");
        }
    }
}
