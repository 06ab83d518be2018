//! Which words of a text are new.

/// The maximum number of word pairs that are compared; beyond it, everything between the first and the
/// last difference counts as replaced.
const MOST_PAIRS: usize = 250_000;

/// A run of words that both texts or only one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordRun<'t> {
    /// Both texts have it.
    Kept(&'t str),
    /// Only the new text has it.
    Added(&'t str),
    /// Only the old text has it.
    Removed(&'t str),
}

/// The words of a text that were kept, added or removed. Spaces are not words.
#[must_use]
pub fn diff_words<'t>(before: &'t str, after: &'t str) -> Vec<WordRun<'t>> {
    let (old, new) = (spans(before), spans(after));
    let is_same = |(a, b): &(&Span, &Span)| a.of(before) == b.of(after);
    let start = old.iter().zip(&new).take_while(is_same).count();
    let ends = old.iter().skip(start).rev();
    let ends = ends.zip(new.iter().skip(start).rev());
    let end = ends.take_while(is_same).count();
    let middle = |all: &'_ [Span]| -> Vec<Span> {
        let length = all.len().saturating_sub(start + end);
        all.iter().skip(start).take(length).copied().collect()
    };
    let (old_middle, new_middle) = (middle(&old), middle(&new));
    let mut runs = Runs {
        before,
        after,
        found: Vec::new(),
    };
    let kept = |count: usize, skipped: usize| -> Vec<Span> {
        new.iter().skip(skipped).take(count).copied().collect()
    };
    runs.push(WordChange::Kept, &kept(start, 0));
    for (fate, span) in align(before, after, &old_middle, &new_middle) {
        runs.push(fate, &[span]);
    }
    runs.push(WordChange::Kept, &kept(end, new.len() - end));
    runs.finish()
}

/// A word, from its first to after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordChange {
    Kept,
    Added,
    Removed,
}

fn spans(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices() {
        match (c.is_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                spans.push(Span {
                    start: from,
                    end: at,
                });
                start = None;
            }
            _ => {}
        }
    }
    spans.extend(start.map(|start| Span {
        start,
        end: text.len(),
    }));
    spans
}

/// The longest common subsequence of two lists of words, and the rest of each.
fn align(before: &str, after: &str, old: &[Span], new: &[Span]) -> Vec<(WordChange, Span)> {
    let gone = old.iter().map(|span| (WordChange::Removed, *span));
    let come = new.iter().map(|span| (WordChange::Added, *span));
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return gone.chain(come).collect();
    }
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    let read = |longest: &[u32], place: usize| longest.get(place).copied().unwrap_or_default();
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let length = if a.of(before) == b.of(after) {
                read(&longest, at(row + 1, column + 1)) + 1
            } else {
                read(&longest, at(row + 1, column)).max(read(&longest, at(row, column + 1)))
            };
            if let Some(slot) = longest.get_mut(at(row, column)) {
                *slot = length;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut found = Vec::new();
    loop {
        match (old.get(row), new.get(column)) {
            (Some(a), Some(b)) if a.of(before) == b.of(after) => {
                found.push((WordChange::Kept, *b));
                row += 1;
                column += 1;
            }
            (Some(a), other) => {
                let down = read(&longest, at(row + 1, column));
                match other {
                    Some(b) if read(&longest, at(row, column + 1)) > down => {
                        found.push((WordChange::Added, *b));
                        column += 1;
                    }
                    _ => {
                        found.push((WordChange::Removed, *a));
                        row += 1;
                    }
                }
            }
            (None, Some(b)) => {
                found.push((WordChange::Added, *b));
                column += 1;
            }
            (None, None) => return found,
        }
    }
}

struct Runs<'t> {
    before: &'t str,
    after: &'t str,
    found: Vec<(WordChange, Span)>,
}

impl<'t> Runs<'t> {
    fn push(&mut self, fate: WordChange, spans: &[Span]) {
        for span in spans {
            match self.found.last_mut() {
                Some((last, whole)) if *last == fate => whole.end = span.end,
                _ => self.found.push((fate, *span)),
            }
        }
    }

    fn finish(self) -> Vec<WordRun<'t>> {
        let (before, after) = (self.before, self.after);
        let run = |(fate, span): (WordChange, Span)| match fate {
            WordChange::Kept => WordRun::Kept(after.get(span.start..span.end).unwrap_or_default()),
            WordChange::Added => {
                WordRun::Added(after.get(span.start..span.end).unwrap_or_default())
            }
            WordChange::Removed => {
                WordRun::Removed(before.get(span.start..span.end).unwrap_or_default())
            }
        };
        self.found.into_iter().map(run).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_words_are_told_apart() {
        assert_eq!(
            diff_words("Send a message to one user.", "Send a  copy to every user."),
            [
                WordRun::Kept("Send a"),
                WordRun::Removed("message"),
                WordRun::Added("copy"),
                WordRun::Kept("to"),
                WordRun::Removed("one"),
                WordRun::Added("every"),
                WordRun::Kept("user."),
            ]
        );
        assert_eq!(diff_words("", "all new"), [WordRun::Added("all new")]);
        assert_eq!(diff_words("all old", " "), [WordRun::Removed("all old")]);
        assert_eq!(diff_words("a\nb", "a b"), [WordRun::Kept("a b")]);
        assert_eq!(diff_words("", ""), []);
    }

    #[test]
    fn long_texts_are_compared_in_bounded_time() {
        let (old, new) = ("a b ".repeat(3000), "b c ".repeat(3000));
        let runs = diff_words(&old, &new);
        assert!(matches!(
            runs.as_slice(),
            [WordRun::Removed(_), WordRun::Added(_)]
        ));
    }
}
