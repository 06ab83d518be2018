//! Words that address the model. Honest descriptions use most of them too, so nearly all count only as
//! a reason on a change.

mod blob;
mod literal;
mod phrase;
mod rule;
mod start_words;
mod table;

use std::borrow::Cow;

use toolwarden_model::json::Pointer;
use unicode_normalization::UnicodeNormalization;

use super::character::{escape, is_unprintable, quote};
use super::confusable::ascii_lookalike;
use super::finding::{Detector, TextFinding, Weight};
use super::finding_collector::FindingCollector;
use phrase::PhraseScanner;
use rule::{ExfiltrationRole, InjectionRule, Pattern};
use table::RULES;

/// Shorter texts cannot hold any of the patterns.
const SHORTEST: usize = 3;

pub(super) fn scan(pointer: &Pointer, text: &str, findings: &mut Vec<TextFinding>) {
    if text.len() < SHORTEST {
        return;
    }
    let text = normalize(text);
    let lower = text.to_ascii_lowercase();
    let words = PhraseScanner::of(&text, &lower);
    let mut notes = FindingCollector::new(Detector::Injection, pointer);
    let (mut order, mut prize) = (None, None);
    for (at, rule) in RULES.iter().enumerate() {
        for found in matches((at, rule), &text, &lower, &words) {
            let message = format!("{} ({}): {}", rule.message, rule.id, quote(found.excerpt));
            notes.add(found.weight, message, found.decoded.as_deref().map(escape));
            match rule.part {
                ExfiltrationRole::Instruction => order = order.or(Some(found.excerpt)),
                ExfiltrationRole::Secret => prize = prize.or(Some(found.excerpt)),
                ExfiltrationRole::Other => {}
            }
        }
    }
    if let Some((blanks, rest)) = text_after_blanks(&text) {
        let message = format!(
            "keeps text out of sight behind {blanks} blanks (blanks): {}",
            quote(rest)
        );
        notes.add(Weight::Medium, message, None);
    }
    if let (Some(order), Some(prize)) = (order, prize) {
        let message = format!(
            "gives an order beside something worth stealing (combination): {} and {}",
            quote(order),
            quote(prize)
        );
        notes.add(Weight::Medium, message, None);
    }
    notes.finish(findings);
}

/// This many blanks in a row move the rest of a text out of sight. Indented lines of real descriptions
/// have at most 65.
const BLANKS: usize = 200;

/// The text behind a run of blanks that is too long to be a layout, and how long the run is.
fn text_after_blanks(text: &str) -> Option<(usize, &str)> {
    let (mut run, mut seen) = (0, false);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            run += 1;
        } else {
            if run >= BLANKS && seen {
                return text.get(at..).map(|rest| (run, rest));
            }
            (run, seen) = (0, true);
        }
    }
    None
}

/// The ids of all rules, for the test that each has a case.
#[cfg(test)]
pub(super) fn rule_ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.id)
}

/// A place where a rule applies.
struct Match<'t> {
    excerpt: &'t str,
    weight: Weight,
    decoded: Option<String>,
}

fn matches<'t>(
    (at, rule): (usize, &InjectionRule),
    text: &'t str,
    lower: &str,
    words: &PhraseScanner<'t>,
) -> Vec<Match<'t>> {
    let plain = |excerpt| Match {
        excerpt,
        weight: rule.weight,
        decoded: None,
    };
    match &rule.pattern {
        Pattern::Phrase(steps) => words.phrases(at, steps).map(plain).collect(),
        Pattern::PhraseToAddress(steps) => words.phrases_to_address(at, steps).map(plain).collect(),
        Pattern::Capitalized(shouted) => words
            .capitalized_sentences(at, shouted)
            .map(plain)
            .collect(),
        Pattern::Tag(tags) => literal::tags(text, tags).map(plain).collect(),
        Pattern::Literal(literals) => literal::literals(text, lower, literals)
            .map(plain)
            .collect(),
        Pattern::PipeToShell => literal::pipe_to_shell(text, lower).map(plain).collect(),
        Pattern::Image => literal::images(text).map(plain).collect(),
        Pattern::Blob => blob::blobs(text)
            .map(|blob| Match {
                excerpt: blob.text,
                weight: match blob.decoded {
                    Some(_) => Weight::Medium,
                    None => rule.weight,
                },
                decoded: blob.decoded,
            })
            .collect(),
    }
}

/// The text as a model may read it: without hidden characters, and with imitating letters replaced by
/// the ones they imitate.
fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let shown = text
        .chars()
        .filter(|c| c.is_ascii() || !is_unprintable(*c))
        .map(|c| if c == '\u{2019}' { '\'' } else { c });
    let compatible: String = shown.nfkc().collect();
    let words = compatible.split_inclusive(|c: char| !c.is_alphanumeric());
    Cow::Owned(words.map(latin).collect())
}

/// A word with some ASCII letters is intended as Latin.
fn latin(word: &str) -> Cow<'_, str> {
    let is_mixed = !word.is_ascii() && word.contains(|c: char| c.is_ascii_alphabetic());
    if is_mixed {
        let letter = |c| ascii_lookalike(c).unwrap_or(c);
        Cow::Owned(word.chars().map(letter).collect())
    } else {
        Cow::Borrowed(word)
    }
}
