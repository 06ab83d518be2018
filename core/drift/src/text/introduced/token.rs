use super::super::words::Run;

/// A word of the new text.
#[derive(Clone, Debug)]
pub(super) struct Token<'t> {
    /// As it is written, without what stands around it.
    pub(super) raw: &'t str,
    /// In lower case.
    pub(super) lower: String,
    /// Whether the old text did not have it here.
    pub(super) added: bool,
    /// Whether it ends a sentence.
    pub(super) ends: bool,
}

impl Token<'_> {
    /// Whether it is written in capitals.
    pub(super) fn is_shouted(&self) -> bool {
        let mut letters = self.raw.chars().filter(|c| c.is_alphabetic()).peekable();
        letters.peek().is_some() && letters.all(char::is_uppercase)
    }
}

/// The words of the new text.
pub(super) fn of_new<'t>(runs: &[Run<'t>]) -> Vec<Token<'t>> {
    let mut words = Vec::new();
    for run in runs {
        let (text, added) = match run {
            Run::Kept(text) => (*text, false),
            Run::Added(text) => (*text, true),
            Run::Removed(_) => continue,
        };
        words.extend(text.split_whitespace().map(|word| token(word, added)));
    }
    words
}

/// The words of a text, none of them new.
pub(super) fn of(text: &str) -> Vec<Token<'_>> {
    let words = text.split_whitespace();
    words.map(|word| token(word, false)).collect()
}

fn token(word: &str, added: bool) -> Token<'_> {
    let opens = |c: char| !c.is_alphanumeric() && !matches!(c, '~' | '/' | '.' | '$' | '@' | '\\');
    let closes = |c: char| !c.is_alphanumeric() && c != '/';
    let raw = word.trim_start_matches(opens).trim_end_matches(closes);
    let lower: String = raw.chars().flat_map(char::to_lowercase).collect();
    Token {
        raw,
        lower: lower.replace('\u{2019}', "'"),
        added,
        ends: word.ends_with(['.', '!', '?', ':', ';', '。']),
    }
}
