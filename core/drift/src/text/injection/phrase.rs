//! Whole words in a row, within one sentence.

use std::net::Ipv4Addr;

use super::super::added_text::address;
use super::start_words;

/// One step of a phrase.
#[derive(Clone, Copy, Debug)]
pub(super) enum PhraseStep {
    /// The next word is one of these.
    Then(&'static [&'static str]),
    /// The next word may be one of these.
    Maybe(&'static [&'static str]),
    /// Within this many next words, one is one of these.
    Near(usize, &'static [&'static str]),
}

/// The words of a text that can start a phrase or a shout; the rest is only checked after them.
pub(super) struct PhraseScanner<'t> {
    text: &'t str,
    lower: &'t str,
    starts: Vec<Start>,
    /// The rules of all of them.
    rules: u64,
}

/// A word that can start something.
struct Start {
    word: Word,
    /// Where the word before it ended.
    gap: usize,
    /// The rules it can be of.
    rules: u64,
}

/// Where a word stands.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
}

impl<'t> PhraseScanner<'t> {
    /// `lower` is `text` in ASCII lower case, byte for byte.
    pub(super) fn of(text: &'t str, lower: &'t str) -> Self {
        let mut starts = Vec::new();
        let mut gap = 0;
        while let Some(word) = next_word(lower, gap) {
            let rules = start_words::rules_starting_with(word.of(lower));
            if rules != 0 {
                starts.push(Start { word, gap, rules });
            }
            gap = word.end;
        }
        Self {
            text,
            lower,
            rules: starts.iter().fold(0, |all, it| all | it.rules),
            starts,
        }
    }

    /// Every match of a rule's phrase; the rule is given by its index in the table.
    pub(super) fn phrases(
        &self,
        rule: usize,
        steps: &'static [PhraseStep],
    ) -> impl Iterator<Item = &'t str> {
        self.starts_of(rule).filter_map(move |start| {
            let end = self.phrase_end(start.word, steps)?;
            self.text.get(start.word.start..end)
        })
    }

    /// Every match of a rule's phrase that an address follows, up to the end of the address.
    pub(super) fn phrases_to_address(
        &self,
        rule: usize,
        steps: &'static [PhraseStep],
    ) -> impl Iterator<Item = &'t str> {
        self.starts_of(rule).filter_map(move |start| {
            let end = self.phrase_end(start.word, steps)?;
            let rest = self.text.get(end..)?;
            // `to="user@…"` is an argument in an example, not a destination.
            if !rest.starts_with(|c: char| c.is_whitespace() || c == ':') {
                return None;
            }
            let mut at = end;
            let words = rest.split_whitespace().take(WORDS_BEFORE_ADDRESS);
            for word in words {
                let blanks = self.text.get(at..)?.find(word)?;
                let gap = self.text.get(at..at + blanks)?;
                if gap.matches('\n').count() > 1 {
                    return None;
                }
                at += blanks;
                let plain = word.trim_matches(['(', ')', '`', '"', '\'', '<', '>', ',', '.', ';']);
                if address(plain).is_some_and(|it| !is_local(it)) {
                    let end = at + word.find(plain)? + plain.len();
                    return self.text.get(start.word.start..end);
                }
                // An address in the next sentence is not where the first one sends anything.
                if is_last_of_sentence(word) {
                    return None;
                }
                at += word.len();
            }
            None
        })
    }

    /// Every sentence that starts with one of these words in capitals.
    pub(super) fn capitalized_sentences(
        &self,
        rule: usize,
        shouted: &'static [&'static str],
    ) -> impl Iterator<Item = &'t str> {
        self.starts_of(rule).filter_map(move |start| {
            let Start { word, gap, .. } = start;
            let before = self.lower.get(*gap..word.start)?;
            let starts_sentence = *gap == 0 || ends_sentence(before);
            let word = word.of(self.text);
            (starts_sentence && shouted.contains(&word)).then_some(word)
        })
    }

    fn starts_of(&self, rule: usize) -> impl Iterator<Item = &Start> {
        let can_start = move |rules: u64| rules & start_words::bit(rule) != 0;
        let starts = if can_start(self.rules) {
            self.starts.as_slice()
        } else {
            &[]
        };
        starts.iter().filter(move |it| can_start(it.rules))
    }

    /// The end of the phrase that starts at a word. Takes the first matching word at each step and
    /// never backtracks, so the number of steps bounds the time.
    fn phrase_end(&self, first: Word, steps: &[PhraseStep]) -> Option<usize> {
        // The next word, and the end of the one before it.
        let mut next = Some(first);
        let mut end = first.start;
        for step in steps {
            let is_one_of = |word: Option<Word>, choices: &[&str]| {
                word.is_some_and(|word| choices.contains(&word.of(self.lower)))
            };
            match step {
                PhraseStep::Then(choices) if is_one_of(next, choices) => {}
                PhraseStep::Then(_) => return None,
                PhraseStep::Maybe(choices) if is_one_of(next, choices) => {}
                PhraseStep::Maybe(_) => continue,
                PhraseStep::Near(reach, choices) => {
                    for _ in 1..*reach {
                        if is_one_of(next, choices) {
                            break;
                        }
                        next = self.after(next?);
                    }
                    if !is_one_of(next, choices) {
                        return None;
                    }
                }
            }
            end = next?.end;
            next = self.after(next?);
        }
        Some(end)
    }

    /// The next word of the same sentence.
    fn after(&self, word: Word) -> Option<Word> {
        let next = next_word(self.lower, word.end)?;
        let gap = self.lower.get(word.end..next.start)?;
        (!ends_sentence(gap)).then_some(next)
    }
}

/// How many words may stand between a phrase and its address: `to our server at https://…`.
const WORDS_BEFORE_ADDRESS: usize = 4;

/// Whether a word with its punctuation ends a sentence; an abbreviation such as `e.g.` does not.
fn is_last_of_sentence(word: &str) -> bool {
    let word = word.trim_end_matches([')', ']', '"', '\'', '`']);
    let stem = word.trim_end_matches(['.', '!', '?', '。', '！', '？']);
    stem.len() < word.len() && !stem.contains('.')
}

/// Whether an address is of the machine itself. Only the whole host counts: anyone can own a host such as
/// `localhost.evil.example`, or put `localhost@` before another host.
fn is_local(address: &str) -> bool {
    // Clients disagree on whether a backslash ends the host.
    if address.contains('\\') {
        return false;
    }
    let address = address.to_ascii_lowercase();
    let rest = address
        .split_once("://")
        .map_or(&*address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if let Some(host) = host.strip_prefix('[') {
        // The bracket at the end of an address may be gone as punctuation.
        let (host, port) = host.split_once(']').unwrap_or((host, ""));
        return host == "::1" && (port.is_empty() || port.starts_with(':'));
    }
    if host == "::1" {
        return true;
    }
    let host = host.split(':').next().unwrap_or_default();
    let is_own = |it: Ipv4Addr| it.is_loopback() || it.is_unspecified();
    host == "localhost" || host.parse().is_ok_and(is_own)
}

impl Word {
    fn of<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// The first word at a place or after it.
fn next_word(text: &str, from: usize) -> Option<Word> {
    let rest = text.get(from..)?;
    let start = from + run(rest, false);
    let word = text.get(start..).filter(|it| !it.is_empty())?;
    let end = start + run(word, true);
    Some(Word { start, end })
}

/// How many bytes from the start are of words, or are not.
fn run(text: &str, of_word: bool) -> usize {
    let wanted = if of_word {
        Class::InWord
    } else {
        Class::Between
    };
    let goes_on = |byte: &&u8| class(**byte) == wanted;
    let plain = text.as_bytes().iter().take_while(goes_on).count();
    // Nearly all of most texts is ASCII.
    match text.as_bytes().get(plain) {
        Some(byte) if !byte.is_ascii() => {
            let rest = text.get(plain..).unwrap_or_default();
            let more = rest.find(|c| is_word(c) != of_word);
            plain + more.unwrap_or(rest.len())
        }
        _ => plain,
    }
}

/// What a byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Between,
    InWord,
    BeyondAscii,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' => Class::InWord,
        0x80.. => Class::BeyondAscii,
        _ => Class::Between,
    }
}

/// An apostrophe is part of the word; an underscore separates words.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '\''
}

/// A full stop counts only before a space: `a.b` is one word.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_host_makes_an_address_local() {
        for local in [
            "http://localhost",
            "http://LOCALHOST:8080/x",
            "https://user:key@localhost/x",
            "localhost:3000",
            "http://localhost?to=a@b.example",
            "http://127.0.0.1:80/x",
            "http://127.8.9.10#x",
            "0.0.0.0:80",
            "http://[::1]:80/x",
            "http://[::1",
            "::1",
        ] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "https://localhost.evil.example/x",
            "https://localhost@evil.example/x",
            "https://localhost:80@evil.example/x",
            "https://evil.example\\@localhost/x",
            "https://evil.example/@localhost",
            "http://127.evil.example",
            "127.evil.example/x",
            "http://127.0.0.1.evil.example",
            "http://0.0.0.0.evil.example",
            "http://[::1].evil.example",
            "http://[::2]/",
            "http://128.0.0.1",
            "https:///evil.example",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
