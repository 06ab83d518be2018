//! Detects invisible characters that their neighbours do not justify.

mod legitimate_use;
mod payload;

use std::collections::BTreeMap;

use toolwarden_model::json::Pointer;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::bidi;
use super::character::{
    describe, is_blank_glyph, is_noncharacter, is_reserved_invisible, selector, times,
};
use super::finding::{Detector, TextFinding, Weight};
use super::finding_collector::FindingCollector;
use legitimate_use::{Neighbors, flag_length, is_legitimate};

/// Whether a string is prose or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringOrigin {
    /// Written or copied by a person: stray characters slip in.
    Prose,
    /// Chosen deliberately: nothing slips into a name.
    Name,
}

pub(super) fn scan(
    pointer: &Pointer,
    text: &str,
    manner: StringOrigin,
    findings: &mut Vec<TextFinding>,
) {
    let chars: Vec<char> = text.chars().collect();
    let hidden = HiddenCharacters::of(&chars, manner);
    let mut notes = FindingCollector::new(Detector::HiddenUnicode, pointer);
    hidden.note_tags(&mut notes);
    hidden.note_selectors(&mut notes);
    hidden.note_others(&mut notes);
    notes.finish(findings);
}

/// Which characters are unjustified.
pub(super) fn find_hidden(chars: &[char]) -> Vec<bool> {
    let mut found = Vec::with_capacity(chars.len());
    while let Some(c) = chars.get(found.len()) {
        let at = found.len();
        match flag_length(chars, at) {
            0 => found.push(is_hidden(*c) && !is_legitimate(*c, &Neighbors::new(chars, at))),
            flag => found.resize(at + flag, false),
        }
    }
    found
}

/// The unjustified characters of one string, in order.
#[derive(Default)]
struct HiddenCharacters {
    tags: Vec<char>,
    selectors: Vec<char>,
    /// A selector that follows something no selector belongs to.
    selectors_are_odd: bool,
    others: Vec<char>,
    counts: BTreeMap<char, (usize, Weight)>,
}

impl HiddenCharacters {
    fn of(chars: &[char], manner: StringOrigin) -> Self {
        let mut hidden = Self::default();
        let mut at = 0;
        while let Some(c) = chars.get(at) {
            let flag = flag_length(chars, at);
            if flag == 0 {
                hidden.record(*c, &Neighbors::new(chars, at), manner);
            }
            at += flag.max(1);
        }
        hidden
    }

    fn record(&mut self, c: char, around: &Neighbors<'_>, manner: StringOrigin) {
        if !is_hidden(c) || is_legitimate(c, around) {
            return;
        }
        if is_tag(c) {
            self.tags.push(c);
        } else if selector(c).is_some() {
            self.selectors.push(c);
            self.selectors_are_odd |= !around.follows_symbol();
        } else {
            self.others.push(c);
            let weight = match manner {
                StringOrigin::Prose => weight_in_prose(c, around),
                StringOrigin::Name => Weight::High,
            };
            let count = self.counts.entry(c).or_insert((0, weight));
            count.0 += 1;
            count.1 = count.1.max(weight);
        }
    }

    fn note_tags(&self, notes: &mut FindingCollector<'_>) {
        if self.tags.is_empty() {
            return;
        }
        let message = format!(
            "hides text in {} tag characters (U+E0000 to U+E007F)",
            self.tags.len()
        );
        let decoded = payload::decode_tags(&self.tags);
        notes.add(Weight::High, message, Some(decoded));
    }

    /// One or two extra emoji selectors are an accident; they are too few to hide bytes.
    fn note_selectors(&self, notes: &mut FindingCollector<'_>) {
        let Some(first) = self.selectors.first() else {
            return;
        };
        let is_slip = self.selectors.len() <= 2
            && !self.selectors_are_odd
            && self
                .selectors
                .iter()
                .all(|c| matches!(c, '\u{fe0e}' | '\u{fe0f}'));
        if is_slip || self.selectors.len() == 1 {
            let weight = if is_slip {
                Weight::Medium
            } else {
                Weight::High
            };
            let message = format!(
                "has {} {} where no character takes it",
                describe(*first),
                times(self.selectors.len())
            );
            notes.add(weight, message, None);
            return;
        }
        let message = format!(
            "hides bytes in {} variation selectors",
            self.selectors.len()
        );
        let decoded = payload::decode_selectors(&self.selectors);
        notes.add(Weight::High, message, Some(decoded));
    }

    fn note_others(&self, notes: &mut FindingCollector<'_>) {
        if let Some(decoded) = payload::decode_bits(&self.others) {
            let message = format!("hides text in {} zero-width characters", self.others.len());
            notes.add(Weight::High, message, Some(decoded));
            return;
        }
        for (c, (count, weight)) in &self.counts {
            let message = format!(
                "has {} {} where nothing explains it",
                describe(*c),
                times(*count)
            );
            notes.add(*weight, message, None);
        }
    }
}

const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Whether this detector is responsible for the character.
pub(super) fn is_hidden(c: char) -> bool {
    if c.is_ascii() || bidi::is_control(c) {
        return false;
    }
    is_tag(c)
        || selector(c).is_some()
        || is_blank_glyph(c)
        || is_noncharacter(c)
        || is_reserved_invisible(c)
        || matches!(
            c.general_category(),
            GeneralCategory::Format | GeneralCategory::PrivateUse
        )
}

/// Copied text sometimes contains a break opportunity or a byte order mark, and icon fonts use private
/// characters; none of these splits a word.
fn weight_in_prose(c: char, around: &Neighbors<'_>) -> Weight {
    let is_stray = match c {
        '\u{ad}' => !around.touches_hidden(),
        '\u{200b}' | '\u{2060}' | '\u{feff}' => around.is_stray(),
        _ => c.general_category() == GeneralCategory::PrivateUse && !is_noncharacter(c),
    };
    if is_stray {
        Weight::Medium
    } else {
        Weight::High
    }
}

/// Whether a neighbour is itself a character of this detector.
fn is_hidden_neighbour(c: Option<char>) -> bool {
    c.is_some_and(is_hidden)
}
