use std::collections::BTreeSet;

use toolwarden_model::json::Pointer;
use unicode_script::Script;
use unicode_security::skeleton;

use super::character::{escape, quote};
use super::finding::{Detector, TextFinding, Weight};
use super::finding_collector::FindingCollector;
use super::name_words::segments;
use super::script::own_script;

/// Scripts that mix with Latin letters in one word without misleading a reader.
const EAST_ASIAN: [Script; 5] = [
    Script::Bopomofo,
    Script::Han,
    Script::Hangul,
    Script::Hiragana,
    Script::Katakana,
];

/// Checks the name of a tool or of a property.
///
/// The unit is the word: `get_документ` mixes scripts and misleads no reader, `pаypal` with one
/// Cyrillic letter does.
pub(super) fn scan(pointer: &Pointer, name: &str, findings: &mut Vec<TextFinding>) {
    let mut notes = FindingCollector::new(Detector::ConfusableName, pointer);
    for word in segments(name) {
        if word.is_ascii() {
            continue;
        }
        let scripts = scripts(word);
        let has_double = word.chars().any(|c| ascii_lookalike(c).is_some());
        if let [first, second, ..] = scripts.as_slice() {
            let message = format!("mixes {first} and {second} letters in {}", quote(word));
            let weight = if has_double {
                Weight::High
            } else {
                Weight::Medium
            };
            notes.add(weight, message, Some(shown_as(name)));
        } else if has_double
            && word
                .chars()
                .all(|c| c.is_ascii() || ascii_lookalike(c).is_some())
        {
            let message = format!(
                "is written with letters that pass for ASCII ones: {} is not `{}`",
                quote(word),
                shown_as(word)
            );
            notes.add(Weight::Medium, message, Some(shown_as(name)));
        }
    }
    notes.finish(findings);
}

/// The scripts of a word, by name, without scripts that are normally used together.
fn scripts(word: &str) -> Vec<&'static str> {
    let scripts: BTreeSet<&str> = word
        .chars()
        .filter_map(own_script)
        .filter(|script| !EAST_ASIAN.contains(script))
        .map(Script::full_name)
        .collect();
    scripts.into_iter().collect()
}

/// The ASCII letter that a character imitates.
pub(super) fn ascii_lookalike(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let mut buffer = [0; 4];
    let mut looks = skeleton(c.encode_utf8(&mut buffer));
    let letter = looks.next().filter(char::is_ascii_alphabetic)?;
    // The standard maps the capital I to a small L.
    let letter = match letter {
        'l' if c.is_uppercase() => 'I',
        letter => letter,
    };
    looks.next().is_none().then_some(letter)
}

/// The text with every letter replaced by the ASCII letter that it imitates.
fn shown_as(text: &str) -> String {
    let ascii: String = text
        .chars()
        .map(|c| ascii_lookalike(c).unwrap_or(c))
        .collect();
    escape(&ascii)
}
