//! Text from outside that a CI runner would take for a command of its own: `##[…]` and its relatives
//! anywhere in a line (GitHub, Azure Pipelines, TeamCity), `::…::` where a line may begin (GitHub).

use toolwarden_drift::text::is_unprintable;

/// Where `##` begins a command: it is followed by letters, if any, and an opening bracket.
fn is_command(after_hashes: &str) -> bool {
    after_hashes
        .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        .starts_with('[')
}

/// The text with every marker written with an escape that shows what it was. `escape` writes the second `#`
/// of a `##` that begins a command.
fn without_hash_commands(text: &str, escape: &str) -> Option<String> {
    if !text.contains("##") {
        return None;
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find("##") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        safe.push_str(before);
        safe.push('#');
        if is_command(after) {
            safe.push_str(escape);
            rest = after;
        } else {
            // The second one may begin another pair.
            rest = &rest[at + 1..];
        }
    }
    safe.push_str(rest);
    Some(safe)
}

/// A text for people. Lines may be wrapped anywhere, so that `::` is escaped wherever a word begins with it.
pub(crate) fn in_text(text: String) -> String {
    let mut safe = without_hash_commands(&text, "\\u{23}").unwrap_or(text);
    if !safe.contains("::") {
        return safe;
    }
    let begins = |at: usize| {
        safe[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    };
    let places: Vec<usize> = safe.match_indices("::").map(|(at, _)| at).collect();
    let places: Vec<usize> = places.into_iter().filter(|at| begins(*at)).collect();
    for at in places.into_iter().rev() {
        safe.replace_range(at..=at, "\\u{3a}");
    }
    safe
}

/// A JSON text, also without characters that a reader would not see. Outside of strings it has none of these,
/// and inside an escape means the same.
pub(crate) fn in_json(json: String) -> String {
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
pub(crate) fn in_xml(xml: String) -> String {
    let safe = without_hash_commands(&xml, "&#35;").unwrap_or(xml);
    let lines = safe.split('\n').map(|line| {
        let start = line.len() - line.trim_start().len();
        match line[start..].strip_prefix("::") {
            Some(rest) => format!("{}&#58;:{rest}", &line[..start]),
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
        let text = |it: &str| in_text(it.to_owned());
        assert_eq!(text("a ##[error]b"), "a #\\u{23}[error]b");
        assert_eq!(text("##vso[task]###[x]"), "#\\u{23}vso[task]##\\u{23}[x]");
        assert_eq!(text("## Usage"), "## Usage");
        assert_eq!(
            text("::error::x ::set-output"),
            "\\u{3a}:error::x \\u{3a}:set-output"
        );
        assert_eq!(text("std::fmt"), "std::fmt");
        assert_eq!(text(":::x"), "\\u{3a}::x");
        let json = |it: &str| in_json(it.to_owned());
        assert_eq!(
            json("[\"##[x]\u{2028}é\u{e0100}\"]"),
            "[\"#\\u0023[x]\\u2028é\\udb40\\udd00\"]"
        );
        let xml = |it: &str| in_xml(it.to_owned());
        assert_eq!(
            xml("a\n  ::error::b ##[c]"),
            "a\n  &#58;:error::b #&#35;[c]"
        );
    }
}
