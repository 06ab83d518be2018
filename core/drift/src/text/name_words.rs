//! The words a name is made of.

/// The words of a name: separated by anything but letters and digits, and by capitals.
pub(super) fn segments(name: &str) -> Vec<&str> {
    name.split(|c: char| !is_word(c))
        .flat_map(split_at_capitals)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Marks belong to the letter before them.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && unicode_normalization::char::is_combining_mark(c))
}

/// `getHTTPServer` is `get`, `HTTP` and `Server`.
fn split_at_capitals(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut chars = word.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next_is_small = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
        let ends = before
            .is_some_and(|before| c.is_uppercase() && (!before.is_uppercase() || next_is_small));
        if ends {
            parts.push(word.get(start..at).unwrap_or_default());
            start = at;
        }
        before = Some(c);
    }
    parts.push(word.get(start..).unwrap_or_default());
    parts
}

/// A name as an inattentive reader sees it: without case and separators.
pub(super) fn fold_name(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}
