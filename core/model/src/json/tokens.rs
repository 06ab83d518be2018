//! The token boundaries of JSON text, without parsing its values.

/// The pieces of a JSON text between insignificant white space, in order.
///
/// Where white space separates two words, which never happens in JSON, a space is kept, so that
/// invalid JSON cannot look like valid JSON.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    Tokens {
        text,
        at: 0,
        last: None,
    }
}

struct Tokens<'t> {
    text: &'t str,
    at: usize,
    /// The last byte returned.
    last: Option<u8>,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let start = skip_blank(bytes, self.at);
        let first = *bytes.get(start)?;
        if start > self.at && self.last.is_some_and(is_word) && is_word(first) {
            self.at = start;
            self.last = None;
            return Some(" ");
        }
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if is_blank(byte) {
                break;
            }
            at = if byte == b'"' {
                end_of_string(bytes, at + 1)
            } else {
                at + 1
            };
        }
        let end = at.min(bytes.len());
        self.last = end.checked_sub(1).and_then(|it| bytes.get(it)).copied();
        self.at = end;
        // INVARIANT: both ends are next to ASCII bytes or at the ends of the text.
        self.text.get(start..end)
    }
}

/// The position after the string whose first character is at `from`.
fn end_of_string(bytes: &[u8], mut from: usize) -> usize {
    loop {
        let rest = bytes.get(from..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return bytes.len(),
            Some(found) if rest.get(found) == Some(&b'"') => return from + found + 1,
            // A character after a backslash does not end the string.
            Some(found) => from += found + 2,
        }
    }
}

fn skip_blank(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| is_blank(**byte)).count();
    from + blank
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// A JSON text with one member or item per line and unchanged tokens: strings keep their escapes
/// and numbers their digits. Lines after the first are indented by `margin` additional spaces.
#[must_use]
pub fn indent(text: &str, margin: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut depth = 0;
    let mut inside = false;
    let mut escaped = false;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', margin + depth * 2));
    };
    let mut chars = tokens(text).flat_map(str::chars).peekable();
    while let Some(c) = chars.next() {
        if inside {
            out.push(c);
            inside = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if matches!(chars.peek(), Some('}' | ']')) {
                    out.extend(chars.next());
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                inside = c == '"';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_indentation() {
        let text = r#"{"a":{},"b":[1e5,"x, {\"y\": \\"],"é\u00e9":[] }"#;
        let pretty = indent(text, 2);
        let expected = "{\n    \"a\": {},\n    \"b\": [\n      1e5,\n      \"x, {\\\"y\\\": \\\\\"\n    ],\n    \"é\\u00e9\": []\n  }";
        assert_eq!(pretty, expected);
        let compact = |text: &str| tokens(text).collect::<String>();
        assert_eq!(compact(&pretty), compact(text));
    }

    #[test]
    fn any_text_is_survived() {
        for text in [
            "",
            " ",
            "\"",
            "\"\\",
            "\\",
            "é \u{2028} \"é",
            "[1 2]",
            "{\"a\" 1}",
        ] {
            let kept: usize = tokens(text).map(str::len).sum();
            assert!(kept <= text.len(), "{text:?}");
            assert!(indent(text, 0).len() >= kept, "{text:?}");
        }
    }
}
