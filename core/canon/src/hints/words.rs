//! Words as numbers: sixteen letters fit into one, and numbers are quick to look up.

/// A word in lower case, its letters left-aligned and padded with zeros, so that words sort as
/// their letters do. A word that does not fit becomes zero, which equals no known word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word(u128);

/// How many letters fit.
const LONGEST: usize = 16;

impl Word {
    pub(super) const fn of(text: &str) -> Self {
        Self::of_letters(text.as_bytes())
    }

    /// Small and capital letters differ in one bit, which digits and small letters have set.
    #[expect(
        clippy::indexing_slicing,
        reason = "the length has been compared just before"
    )]
    pub(super) const fn of_letters(letters: &[u8]) -> Self {
        let mut padded = [0; LONGEST];
        if letters.len() > LONGEST {
            return Self(0);
        }
        let mut at = 0;
        while at < letters.len() {
            padded[at] = letters[at] | 0x20;
            at += 1;
        }
        Self(u128::from_be_bytes(padded))
    }

    pub(super) const fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }

    /// The word with its suffix replaced, if it has that suffix.
    pub(super) fn replace_suffix(self, suffix: &str, other: &str) -> Option<Self> {
        let bytes = self.0.to_be_bytes();
        let letters = std::str::from_utf8(&bytes).ok()?.trim_end_matches('\0');
        Some(Self::of(&format!(
            "{}{other}",
            letters.strip_suffix(suffix)?
        )))
    }
}

/// The role of a byte in a word.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Between,
    Small,
    Capital,
}

#[expect(
    clippy::indexing_slicing,
    reason = "the compiler evaluates it and would refuse"
)]
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Small; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'A'..=b'Z' => Class::Capital,
            b'a'..=b'z' | b'0'..=b'9' => Class::Small,
            _ => Class::Between,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES
        .get(usize::from(byte))
        .copied()
        .unwrap_or(Class::Between)
}

/// Calls `see` with each word of a text as it is written, at most `limit` times.
///
/// A word ends at anything that is not a letter or digit, where a small letter meets a capital, and
/// before the last capital of a run (`HTTPServer` is `http`, `server`).
pub(super) fn for_each_word(text: &str, limit: usize, mut see: impl FnMut(&[u8])) {
    let mut rest = text.as_bytes();
    for _ in 0..limit {
        let Some(start) = rest.iter().position(|byte| class(*byte) != Class::Between) else {
            return;
        };
        let (_, from) = rest.split_at(start);
        let (word, after) = from.split_at(word_length(from));
        see(word);
        rest = after;
    }
}

/// How long the word at the start is.
fn word_length(from: &[u8]) -> usize {
    let mut before = Class::Capital;
    for (at, byte) in from.iter().enumerate() {
        let here = class(*byte);
        let ends = match (before, here) {
            (Class::Small, Class::Small) => continue,
            (_, Class::Between) | (Class::Small, Class::Capital) => true,
            (Class::Capital, Class::Capital) => {
                at > 0
                    && from
                        .get(at + 1)
                        .is_some_and(|next| class(*next) == Class::Small)
            }
            _ => false,
        };
        if ends {
            return at;
        }
        before = here;
    }
    from.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut words = Vec::new();
        for_each_word(text, usize::MAX, |word| words.push(Word::of_letters(word)));
        assert_eq!(
            words,
            expected
                .iter()
                .map(|word| Word::of(word))
                .collect::<Vec<_>>(),
            "{text}"
        );
    }

    #[test]
    fn boundaries() {
        check("getHTTPServer2Go", &["get", "http", "server2", "go"]);
        check("a_b-c.d/e f", &["a", "b", "c", "d", "e", "f"]);
        check("récupérer", &["récupérer"]);
        check("pneumonoultramicroscopic get", &["", "get"]);
        check("__--  ", &[]);
        check("DELETE", &["delete"]);
    }

    #[test]
    fn words_sort_as_their_letters() {
        assert!(Word::of("read") < Word::of("reading"));
        assert!(Word::of("reading") < Word::of("set"));
        assert_eq!(
            Word::of("searches").replace_suffix("es", ""),
            Some(Word::of("search"))
        );
        assert_eq!(
            Word::of("modifies").replace_suffix("ies", "y"),
            Some(Word::of("modify"))
        );
    }
}
