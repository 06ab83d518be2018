//! Removes invisible characters from JSON.

use std::borrow::Cow;
use std::ops::Range;

use toolwarden_drift::text::find_invisible;

/// A JSON text without the characters in its strings that people cannot see but a model reads, escaped or
/// not. Everything else stays byte for byte, including joiners that spelling needs.
///
/// Keys are strings too: look up members by name before you strip them.
#[must_use]
pub fn strip_hidden(raw: &str) -> Cow<'_, str> {
    if raw.is_ascii() && !raw.contains("\\u") {
        return Cow::Borrowed(raw);
    }
    let mut out = String::new();
    let mut kept = 0;
    for string in strings(raw) {
        for hidden in hidden_ranges(raw, string) {
            out.push_str(raw.get(kept..hidden.start).unwrap_or_default());
            kept = hidden.end;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(raw);
    }
    out.push_str(raw.get(kept..).unwrap_or_default());
    Cow::Owned(out)
}

/// The strings of a text that should be JSON, decoded as far as possible.
pub(super) fn decode_strings(raw: &str) -> Vec<String> {
    let decode = |string: Range<usize>| {
        let mut rest = raw.get(string).unwrap_or_default();
        let mut text = String::with_capacity(rest.len());
        while let Some((c, length)) = next_char(rest) {
            text.push(c);
            rest = rest.get(length..).unwrap_or_default();
        }
        text
    };
    strings(raw).map(decode).collect()
}

/// The ranges of the strings in a JSON text, without their quotes.
fn strings(raw: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = raw.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let open = at + bytes.get(at..)?.iter().position(|byte| *byte == b'"')?;
        let start = open + 1;
        let mut end = start;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        at = end + 1;
        Some(start..end)
    })
}

/// The ranges of the invisible characters in a string.
fn hidden_ranges(raw: &str, string: Range<usize>) -> Vec<Range<usize>> {
    let text = raw.get(string.clone()).unwrap_or_default();
    if text.is_ascii() && !text.contains("\\u") {
        return Vec::new();
    }
    let mut chars = Vec::new();
    let mut places = Vec::new();
    let mut at = string.start;
    let mut rest = text;
    while let Some((c, length)) = next_char(rest) {
        chars.push(c);
        places.push(at..at + length);
        at += length;
        rest = rest.get(length..).unwrap_or_default();
    }
    let marked = places.into_iter().zip(find_invisible(&chars));
    marked
        .filter(|(_, unseen)| *unseen)
        .map(|(place, _)| place)
        .collect()
}

/// The first character of the inside of a JSON string, and its length in bytes as written. Half a surrogate
/// pair is not a character, and stays.
fn next_char(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    if first != '\\' {
        return Some((first, first.len_utf8()));
    }
    let Some(unit) = escaped_unit(text) else {
        // An escape of one letter; none of them is invisible.
        let letter = text.chars().nth(1).map_or(0, char::len_utf8);
        return Some(('\\', 1 + letter));
    };
    let low = text.get(6..).and_then(escaped_unit);
    let pair = low.and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
    match char::from_u32(u32::from(unit)) {
        Some(c) => Some((c, 6)),
        None => Some(pair.map_or((char::REPLACEMENT_CHARACTER, 6), |c| (c, 12))),
    }
}

fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_stripped_in_every_spelling() {
        let cases = [
            (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
            ("{\"a\" : \"x\u{200b}y\"}", r#"{"a" : "xy"}"#),
            (r#"["x\u200by","x\u200By"]"#, r#"["xy","xy"]"#),
            // Tag characters as surrogate pairs.
            (r#"["a\udb40\udc41\uDB40\uDC42b"]"#, r#"["ab"]"#),
            // An escaped backslash before a `u` does not start an escape.
            (r#"["\\u200b\u200b"]"#, r#"["\\u200b"]"#),
            (r#"["\"\u202e\"","é\n"]"#, r#"["\"\"","é\n"]"#),
            // Half a pair stays, and so does a family emoji.
            (r#"["\ud83d\u200bx"]"#, r#"["\ud83dx"]"#),
            (
                r#"["\ud83d\udc68\u200d\ud83d\udc69"]"#,
                r#"["\ud83d\udc68\u200d\ud83d\udc69"]"#,
            ),
            ("{\"k\u{e0041}\":1e400}", r#"{"k":1e400}"#),
        ];
        for (raw, expected) in cases {
            assert_eq!(strip_hidden(raw), expected, "{raw}");
        }
    }

    #[test]
    fn invalid_json_is_unchanged() {
        for raw in ["", "\"\u{200b}", "\\u200b", "\"\\", "\u{200b}", "\"\\u20"] {
            assert_eq!(strip_hidden(raw), raw);
        }
    }

    #[test]
    fn a_text_without_hidden_characters_is_not_copied() {
        let raw = r#"{"a":"é\u00e9"}"#;
        assert!(matches!(strip_hidden(raw), Cow::Borrowed(it) if it == raw));
    }
}
