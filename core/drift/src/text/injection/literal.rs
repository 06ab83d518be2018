//! Tags and paths: text that is matched literally.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem;

use super::rule::Pattern;
use super::table::RULES;

/// Matches any literal text of a rule; without it, each literal is searched separately.
static ANY_LITERAL: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let literals = RULES.iter().flat_map(|rule| match rule.pattern {
        Pattern::Literal(literals) => literals,
        _ => &[],
    });
    Searcher::new(literals)
});

/// The maximum length of a pseudo tag.
const LONGEST_TAG: usize = 32;

/// Every tag of these, which are in lower case, or its closing form.
pub(super) fn tags<'t>(
    text: &'t str,
    tags: &'static [&'static str],
) -> impl Iterator<Item = &'t str> {
    // One search for a byte is far faster than one for either.
    let searched = if text.contains('<') || text.contains('[') {
        text
    } else {
        ""
    };
    searched
        .match_indices(['<', '['])
        .filter_map(move |(start, _)| {
            let from = text.get(start..)?;
            let close = if from.starts_with('<') { '>' } else { ']' };
            let mut near = from.char_indices().take(LONGEST_TAG);
            let (end, _) = near.find(|(_, c)| *c == close)?;
            let tag = from.get(..=end)?;
            let opening = tag.replacen('/', "", 1).to_ascii_lowercase();
            tags.contains(&opening.as_str()).then_some(tag)
        })
}

/// Every place where one of these lower-case texts is not part of a longer word.
pub(super) fn literals<'t>(
    text: &'t str,
    lower: &str,
    literals: &'static [&'static str],
) -> impl Iterator<Item = &'t str> {
    // Most texts have none, and one search for all of them is far faster than one for each.
    let any = ANY_LITERAL.as_ref();
    let literals = if any.is_none_or(|any| any.find(lower).is_some()) {
        literals
    } else {
        &[]
    };
    let stands =
        move |literal: &&&str| memmem::find(lower.as_bytes(), literal.as_bytes()).is_some();
    literals.iter().filter(stands).flat_map(move |literal| {
        lower
            .match_indices(literal)
            .map(|(start, found)| (start, start + found.len()))
            .filter(|(start, end)| stands_alone(lower, *start, *end))
            .filter_map(|(start, end)| text.get(start..end))
            .collect::<Vec<_>>()
    })
}

/// Whether no letter or digit continues what starts and ends with one.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    let last = text.get(..end).and_then(|text| text.chars().next_back());
    let is_continued = is_inside(last) && is_inside(after);
    !is_inside(before) && !is_continued
}

/// Programs that execute their input.
const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "python", "python3"];

/// Every download that is piped into a shell.
pub(super) fn pipe_to_shell<'t>(text: &'t str, lower: &str) -> impl Iterator<Item = &'t str> {
    let mut download = None;
    let mut from = 0;
    lower.match_indices('|').filter_map(move |(pipe, _)| {
        let before = lower.get(from..pipe)?;
        if let Some(at) = before.rfind("curl ").max(before.rfind("wget ")) {
            download = Some(from + at);
        }
        from = pipe;
        let after = lower.get(pipe + 1..)?.trim_start();
        let program = after.split(|c: char| !c.is_alphanumeric()).next()?;
        if !SHELLS.contains(&program) {
            return None;
        }
        let end = lower.len() - after.len() + program.len();
        text.get(download.take()?..end)
    })
}

/// The maximum length of an address that is inspected.
const LONGEST_ADDRESS: usize = 256;

/// Every image that a Markdown renderer would load.
pub(super) fn images(text: &str) -> impl Iterator<Item = &str> {
    let mut open = None;
    // Most texts have none.
    let searched = if text.contains('!') && text.contains("](http") {
        text
    } else {
        ""
    };
    searched.char_indices().filter_map(move |(at, c)| {
        let from = text.get(at..)?;
        match c {
            '!' if from.starts_with("![") => open = Some(at),
            '\n' => open = None,
            ']' if from.starts_with("](http") => {
                let start = open.take()?;
                let address = from.get(..from.floor_char_boundary(LONGEST_ADDRESS))?;
                let length = address.find([')', '\n', ' ']).unwrap_or(address.len());
                return text.get(start..at + length);
            }
            _ => {}
        }
        None
    })
}
