//! Whole words in a row, within one sentence.

use super::starts;

/// The bytes of a usual word and the space after it.
const USUAL_LENGTH: usize = 6;

/// One step of a phrase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The next word is one of these.
    Then(&'static [&'static str]),
    /// The next word may be one of these.
    Maybe(&'static [&'static str]),
    /// One of so many next words is one of these.
    Near(usize, &'static [&'static str]),
}

/// The words of a text with their places.
pub(super) struct Words<'t> {
    text: &'t str,
    words: Vec<Word<'t>>,
    /// The words that can start a phrase, and the rules it is of.
    starts: Vec<(usize, u64)>,
    /// The rules of all of them.
    rules: u64,
}

struct Word<'t> {
    lower: &'t str,
    start: usize,
    end: usize,
    sentence: usize,
    starts_sentence: bool,
}

impl<'t> Words<'t> {
    /// `lower` is `text` in ASCII lower case, byte for byte.
    pub(super) fn of(text: &'t str, lower: &'t str) -> Self {
        let mut words = Vec::with_capacity(lower.len() / USUAL_LENGTH);
        let mut starts = Vec::new();
        let mut sentence = 0;
        let mut starts_sentence = true;
        let mut rest = lower;
        loop {
            let (gap, from) = split(rest, false);
            if from.is_empty() {
                break;
            }
            if ends_sentence(gap) {
                sentence += 1;
                starts_sentence = true;
            }
            let (word, after) = split(from, true);
            let rules = starts::of(word);
            if rules != 0 {
                starts.push((words.len(), rules));
            }
            let start = lower.len() - from.len();
            words.push(Word {
                lower: word,
                start,
                end: start + word.len(),
                sentence,
                starts_sentence,
            });
            starts_sentence = false;
            rest = after;
        }
        Self {
            text,
            words,
            rules: starts.iter().fold(0, |all, (_, rules)| all | rules),
            starts,
        }
    }

    /// Every place where the phrase of a rule, which has a place in the table, stands.
    pub(super) fn phrases(
        &self,
        rule: usize,
        steps: &'static [Step],
    ) -> impl Iterator<Item = &'t str> {
        let can_start = move |rules: u64| rules & starts::bit(rule) != 0;
        let places = if can_start(self.rules) {
            self.starts.as_slice()
        } else {
            &[]
        };
        let places = places.iter().filter(move |(_, rules)| can_start(*rules));
        places.filter_map(move |(at, _)| {
            let last = self.phrase_end(*at, steps)?;
            self.between(*at, last)
        })
    }

    /// Every sentence that starts with one of these words in capitals.
    pub(super) fn shouts(&self, shouted: &'static [&'static str]) -> impl Iterator<Item = &'t str> {
        self.words
            .iter()
            .filter(|word| word.starts_sentence)
            .filter_map(|word| self.text.get(word.start..word.end))
            .filter(move |word| shouted.contains(word))
    }

    /// The last word of the phrase that starts at this one. Takes the first word that fits at
    /// each step and never goes back, so that the time is bounded by the steps.
    fn phrase_end(&self, at: usize, steps: &[Step]) -> Option<usize> {
        let sentence = self.words.get(at)?.sentence;
        let is_one_of = |at: usize, choices: &[&str]| {
            self.words
                .get(at)
                .is_some_and(|word| word.sentence == sentence && choices.contains(&word.lower))
        };
        let mut next = at;
        for step in steps {
            match step {
                Step::Then(choices) if is_one_of(next, choices) => next += 1,
                Step::Then(_) => return None,
                Step::Maybe(choices) => next += usize::from(is_one_of(next, choices)),
                Step::Near(reach, choices) => {
                    next = (next..next + reach).find(|at| is_one_of(*at, choices))? + 1;
                }
            }
        }
        next.checked_sub(1)
    }

    fn between(&self, first: usize, last: usize) -> Option<&'t str> {
        let (first, last) = (self.words.get(first)?, self.words.get(last)?);
        self.text.get(first.start..last.end)
    }
}

/// Splits a text where words begin, or end if it starts with one.
fn split(text: &str, is_in_word: bool) -> (&str, &str) {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'\'';
    let goes_on = |byte: &u8| byte.is_ascii() && is_of_word(*byte) == is_in_word;
    let plain = text.bytes().take_while(goes_on).count();
    let rest = text.get(plain..).unwrap_or_default();
    // Nearly all of most texts is ASCII.
    let length = if rest.bytes().next().is_none_or(|byte| byte.is_ascii()) {
        plain
    } else {
        let more = rest.find(|c| is_word(c) != is_in_word);
        plain + more.unwrap_or(rest.len())
    };
    text.split_at_checked(length).unwrap_or((text, ""))
}

/// An apostrophe is a part of the word, an underscore parts words.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '\''
}

/// A full stop counts before a space only: `a.b` is one thing.
fn ends_sentence(gap: &str) -> bool {
    if gap == " " {
        return false;
    }
    let mut chars = gap.chars().peekable();
    let mut lines = 0;
    while let Some(c) = chars.next() {
        let before_space = chars.peek().is_none_or(|next| !next.is_ascii_graphic());
        match c {
            '.' | '!' | '?' | ':' if before_space && chars.peek().is_some() => return true,
            '。' | '！' | '？' | '<' | '>' | '[' | ']' | '•' => return true,
            '\n' => lines += 1,
            _ => {}
        }
    }
    lines > 1 || (lines == 1 && gap.contains(['-', '*', '#', '`']))
}
