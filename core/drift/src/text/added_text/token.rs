use super::super::word_diff::WordRun;

/// A word of the new text.
#[derive(Clone, Debug)]
pub(super) struct WordToken<'t> {
    /// The word as written, without surrounding punctuation.
    pub(super) raw: &'t str,
    /// The word in lower case.
    pub(super) lower: String,
    /// Whether the old text lacks it here.
    pub(super) added: bool,
    /// Whether it ends a sentence.
    pub(super) ends: bool,
}

impl WordToken<'_> {
    /// Whether it is written in capitals.
    pub(super) fn is_uppercase(&self) -> bool {
        let mut letters = self.raw.chars().filter(|c| c.is_alphabetic()).peekable();
        letters.peek().is_some() && letters.all(char::is_uppercase)
    }
}

/// The words of the new text.
pub(super) fn tokenize_new<'t>(runs: &[WordRun<'t>]) -> Vec<WordToken<'t>> {
    let mut words = Vec::new();
    for run in runs {
        let (text, added) = match run {
            WordRun::Kept(text) => (*text, false),
            WordRun::Added(text) => (*text, true),
            WordRun::Removed(_) => continue,
        };
        words.extend(text.split_whitespace().map(|word| token(word, added)));
    }
    words
}

/// The words of a text, none of them new.
pub(super) fn tokenize(text: &str) -> Vec<WordToken<'_>> {
    let words = text.split_whitespace();
    words.map(|word| token(word, false)).collect()
}

fn token(word: &str, added: bool) -> WordToken<'_> {
    let opens = |c: char| !c.is_alphanumeric() && !matches!(c, '~' | '/' | '.' | '$' | '@' | '\\');
    let closes = |c: char| !c.is_alphanumeric() && c != '/';
    let raw = word.trim_start_matches(opens).trim_end_matches(closes);
    let lower: String = raw.chars().flat_map(char::to_lowercase).collect();
    WordToken {
        raw,
        lower: lower.replace('\u{2019}', "'"),
        added,
        ends: word.ends_with(['.', '!', '?', ':', ';', '。']),
    }
}
