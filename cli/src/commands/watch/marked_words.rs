//! Changes of text with the words marked that came or went.

use toolwarden_drift::text::{WordRun, diff_words};
use toolwarden_drift::{Change, changed_texts};

/// How many words are shown on either side of a change.
const CONTEXT: usize = 5;

/// The text of a change with `{+added+}` and `[-removed-]` words, and a few of those around them; empty
/// for changes of anything else.
pub(super) fn marked_words(change: &Change) -> String {
    let texts = changed_texts(change);
    texts.map_or_else(String::new, |(before, after)| mark_words(&before, &after))
}

/// Two texts as one, with `{+added+}` and `[-removed-]` words, and a few of those around them.
pub(super) fn mark_words(before: &str, after: &str) -> String {
    let runs = diff_words(before, after);
    let last = runs.len().saturating_sub(1);
    let parts = runs.iter().enumerate().map(|(index, run)| match run {
        WordRun::Added(words) => format!("{{+{}+}}", one_line(words)),
        WordRun::Removed(words) => format!("[-{}-]", one_line(words)),
        WordRun::Kept(words) => context_words(words, index > 0, index < last),
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What stands around changes: the words after the one before it, and those before the next.
fn context_words(words: &str, follows: bool, precedes: bool) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let head = if follows { CONTEXT } else { 0 };
    let tail = if precedes { CONTEXT } else { 0 };
    if words.len() <= head + tail + 1 {
        return words.join(" ");
    }
    let mut shown: Vec<&str> = words.iter().take(head).copied().collect();
    shown.push("…");
    shown.extend(words.iter().skip(words.len() - tail));
    shown.join(" ")
}
