//! Which phrases and shouts a word can start: of most words none, so that most of a text is passed over.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::phrase::PhraseStep;
use super::rule::Pattern;
use super::table::RULES;

// A rule is a bit.
const _: () = assert!(RULES.len() <= 64);

static STARTS: LazyLock<StartWordIndex> = LazyLock::new(StartWordIndex::of_rules);

struct StartWordIndex {
    /// The rules of what starts with a word.
    by_word: BTreeMap<Cow<'static, str>, u64>,
    /// The marks of these words; few other words share one.
    marks: [u64; MARKS / 64],
    /// The rules whose phrase may start with any word.
    anywhere: u64,
}

/// The bit of the rule at a place of the table.
pub(super) const fn bit(rule: usize) -> u64 {
    1 << rule
}

/// The rules of what may start with a word.
pub(super) fn rules_starting_with(word: &str) -> u64 {
    let starts = &*STARTS;
    let (at, mark) = mark(word);
    if starts.marks.get(at).is_none_or(|marks| marks & mark == 0) {
        return starts.anywhere;
    }
    starts.anywhere | starts.by_word.get(word).copied().unwrap_or_default()
}

/// How many marks there are.
const MARKS: usize = 1024;

/// Where the mark of a word is, made of its length and of its first and last byte.
fn mark(word: &str) -> (usize, u64) {
    let byte = |byte: Option<&u8>| usize::from(byte.copied().unwrap_or_default());
    let (first, last) = (word.as_bytes().first(), word.as_bytes().last());
    let mark = (word.len() + 37 * byte(first) + 331 * byte(last)) % MARKS;
    (mark / 64, 1 << (mark % 64))
}

impl StartWordIndex {
    fn of_rules() -> Self {
        let mut starts = Self {
            by_word: BTreeMap::new(),
            marks: [0; MARKS / 64],
            anywhere: 0,
        };
        for (at, rule) in RULES.iter().enumerate() {
            match &rule.pattern {
                Pattern::Phrase([PhraseStep::Then(words), ..])
                | Pattern::PhraseToAddress([PhraseStep::Then(words), ..]) => {
                    for word in *words {
                        starts.add(Cow::Borrowed(word), bit(at));
                    }
                }
                Pattern::Capitalized(words) => {
                    for word in *words {
                        starts.add(Cow::Owned(word.to_ascii_lowercase()), bit(at));
                    }
                }
                Pattern::Phrase(_) | Pattern::PhraseToAddress(_) => starts.anywhere |= bit(at),
                _ => {}
            }
        }
        starts
    }

    fn add(&mut self, word: Cow<'static, str>, rule: u64) {
        let (at, mark) = mark(&word);
        *self.by_word.entry(word).or_default() |= rule;
        if let Some(marks) = self.marks.get_mut(at) {
            *marks |= mark;
        }
    }
}
