//! Text from outside that a CI runner would take for a command of its own: `##[…]` and its relatives
//! anywhere in a line (GitHub, Azure Pipelines, TeamCity), `::…::` where a line may begin (GitHub).

use toolwarden_drift::text::is_unprintable;

/// Where `##` begins a command: it is followed by letters, if any, and an opening bracket.
fn is_command(after_hashes: &str) -> bool {
    after_hashes
        .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        .starts_with('[')
}

/// The text with the second `#` of every `##` that begins a command written as `escape`; none if
/// there is no such command.
fn without_hash_commands(text: &str, escape: &str) -> Option<String> {
    if !text.contains("##") {
        return None;
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut after_hash = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '#' && after_hash && is_command(rest.as_str()) {
            safe.push_str(escape);
            after_hash = false;
        } else {
            safe.push(c);
            after_hash = c == '#';
        }
    }
    Some(safe)
}

/// A text for people. Lines may be wrapped anywhere, so that `::` is escaped wherever a word begins with it.
pub(crate) fn escape_text(text: String) -> String {
    let text = without_hash_commands(&text, "\\u{23}").unwrap_or(text);
    if !text.contains("::") {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut begins_word = true;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ':' if begins_word && rest.as_str().starts_with(':') => safe.push_str("\\u{3a}"),
            c => safe.push(c),
        }
        begins_word = c.is_whitespace();
    }
    safe
}

/// A JSON text, also without characters that a reader would not see. Outside of strings it has none of these,
/// and inside an escape means the same.
pub(crate) fn escape_json(json: String) -> String {
    let safe = without_hash_commands(&json, "\\u0023").unwrap_or(json);
    let is_hidden = |c: char| !c.is_ascii() && is_unprintable(c);
    if safe.is_ascii() || !safe.contains(is_hidden) {
        return safe;
    }
    let mut shown = String::with_capacity(safe.len() + 16);
    for c in safe.chars() {
        if is_hidden(c) {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// An XML text without markup of its own, in which lines may begin anywhere.
pub(crate) fn escape_xml(xml: String) -> String {
    let safe = without_hash_commands(&xml, "&#35;").unwrap_or(xml);
    let lines = safe.split('\n').map(|line| {
        let begin = line.trim_start();
        match begin.strip_prefix("::") {
            Some(rest) => {
                let indent = line.strip_suffix(begin).unwrap_or_default();
                format!("{indent}&#58;:{rest}")
            }
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_runners_are_escaped() {
        let text = |it: &str| escape_text(it.to_owned());
        assert_eq!(text("a ##[error]b"), "a #\\u{23}[error]b");
        assert_eq!(text("##vso[task]###[x]"), "#\\u{23}vso[task]##\\u{23}[x]");
        assert_eq!(text("## Usage"), "## Usage");
        assert_eq!(
            text("::error::x ::set-output"),
            "\\u{3a}:error::x \\u{3a}:set-output"
        );
        assert_eq!(text("std::fmt"), "std::fmt");
        assert_eq!(text(":::x"), "\\u{3a}::x");
        let json = |it: &str| escape_json(it.to_owned());
        assert_eq!(
            json("[\"##[x]\u{2028}é\u{e0100}\"]"),
            "[\"#\\u0023[x]\\u2028é\\udb40\\udd00\"]"
        );
        let xml = |it: &str| escape_xml(it.to_owned());
        assert_eq!(
            xml("a\n  ::error::b ##[c]"),
            "a\n  &#58;:error::b #&#35;[c]"
        );
    }
}
