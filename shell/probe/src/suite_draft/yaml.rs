use serde_json::Value;

/// The longest value that is written on one line, unless it is a text.
const MAX_LINE: usize = 72;
/// The words that YAML 1.1 or 1.2 reads as something other than text.
const RESERVED: [&str; 12] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "~",
];

/// Writes YAML with comments. An indent is a number of levels of two spaces.
#[derive(Debug, Default)]
pub(super) struct YamlWriter {
    out: String,
}

impl YamlWriter {
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A comment. Line breaks and control characters in it become spaces.
    pub(super) fn comment(&mut self, indent: usize, text: &str) {
        let plain = text
            .chars()
            .map(|it| if is_printable(it) { it } else { ' ' });
        let plain: String = plain.collect();
        self.line(indent, &format!("# {plain}"));
    }

    /// `key:`, with its value on the following lines.
    pub(super) fn key(&mut self, indent: usize, key: &str) {
        self.line(indent, &format!("{key}:"));
    }

    /// `key: value`.
    pub(super) fn member(&mut self, indent: usize, key: &str, value: &Value) {
        self.pad(indent);
        self.entry(indent, key, value);
    }

    /// `- key: value`: the first member of an object in a list, whose other members follow one level
    /// deeper.
    pub(super) fn item_member(&mut self, indent: usize, key: &str, value: &Value) {
        self.pad(indent);
        self.out.push_str("- ");
        self.entry(indent + 1, key, value);
    }

    /// `- value`.
    pub(super) fn item(&mut self, indent: usize, value: &Value) {
        self.pad(indent);
        self.out.push('-');
        self.value(indent, value, true);
    }

    fn entry(&mut self, indent: usize, key: &str, value: &Value) {
        self.out.push_str(&scalar(key));
        self.out.push(':');
        self.value(indent, value, false);
    }

    /// A value after `-` or `key:`. Objects in a list begin on the line of their dash.
    fn value(&mut self, indent: usize, value: &Value, in_list: bool) {
        let line = flow(value);
        let nested = match value {
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if !nested || line.chars().count() <= MAX_LINE {
            self.out.push(' ');
            self.out.push_str(&line);
            self.out.push('\n');
            return;
        }
        match value {
            Value::Object(members) => {
                for (at, (key, member)) in members.iter().enumerate() {
                    if at == 0 && in_list {
                        self.out.push(' ');
                    } else {
                        if at == 0 {
                            self.out.push('\n');
                        }
                        self.pad(indent + 1);
                    }
                    self.entry(indent + 1, key, member);
                }
            }
            Value::Array(items) => {
                self.out.push('\n');
                for item in items {
                    self.item(indent + 1, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.pad(indent);
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn pad(&mut self, indent: usize) {
        self.out.push_str(&"  ".repeat(indent));
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, it)| format!("{}: {}", scalar(key), flow(it)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text: plain where YAML cannot read it as anything else, and quoted otherwise.
fn scalar(text: &str) -> String {
    let mut characters = text.chars();
    let starts_plain = characters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '/' | '.');
    let reserved = RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if starts_plain && characters.all(is_plain) && !reserved {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for it in text.chars() {
        match it {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            it if is_printable(it) => out.push(it),
            it if u32::from(it) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(it))),
            it => out.push_str(&format!("\\U{:08x}", u32::from(it))),
        }
    }
    out.push('"');
    out
}

/// Whether a character may stand in a YAML document and does not disturb a terminal.
fn is_printable(it: char) -> bool {
    !it.is_control()
        && !matches!(
            it,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
        && !matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        && !matches!(it, '\u{e0000}'..='\u{e0fff}')
}
