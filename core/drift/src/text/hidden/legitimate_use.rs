use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};
use unicode_script::Script;

use super::super::character::selector;
use super::super::script::{is_of, is_pictograph, is_skin_tone, is_spaceless, joins, own_script};
use super::is_hidden_neighbour;

/// The flags of England, Scotland and Wales: the only recommended use of tag characters.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// A black flag, five tags and the cancel tag.
const FLAG_LENGTH: usize = 7;

/// The length of the flag at this place; zero if there is none.
pub(super) fn flag_length(chars: &[char], at: usize) -> usize {
    let Some(['\u{1f3f4}', tags @ .., '\u{e007f}']) = chars.get(at..at + FLAG_LENGTH) else {
        return 0;
    };
    let is_spelled = |flag: &&str| {
        let tag = |letter: char| char::from_u32(0xe0000 + u32::from(letter));
        flag.chars().map(tag).eq(tags.iter().copied().map(Some))
    };
    if FLAGS.iter().any(is_spelled) {
        FLAG_LENGTH
    } else {
        0
    }
}

/// A character's neighbours.
pub(super) struct Neighbors<'t> {
    before: &'t [char],
    after: &'t [char],
}

impl<'t> Neighbors<'t> {
    pub(super) fn new(chars: &'t [char], at: usize) -> Self {
        let (before, from) = chars.split_at_checked(at).unwrap_or((chars, &[]));
        let after = from.split_first().map_or(from, |(_, after)| after);
        Self { before, after }
    }

    fn before(&self) -> Option<char> {
        self.before.last().copied()
    }

    fn after(&self) -> Option<char> {
        self.after.first().copied()
    }

    pub(super) fn touches_hidden(&self) -> bool {
        is_hidden_neighbour(self.before()) || is_hidden_neighbour(self.after())
    }

    /// Whether it is at an edge of a word, or next to one other of its kind that is.
    pub(super) fn is_stray(&self) -> bool {
        let beyond = |c: Option<char>, next: Option<char>| {
            if is_hidden_neighbour(c) { next } else { c }
        };
        let before = beyond(self.before(), self.before.iter().rev().nth(1).copied());
        let after = beyond(self.after(), self.after.get(1).copied());
        if is_hidden_neighbour(before) || is_hidden_neighbour(after) {
            return false;
        }
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        is_edge(before) || is_edge(after)
    }

    /// Whether a symbol, or a selector that itself follows something, stands before.
    pub(super) fn follows_symbol(&self) -> bool {
        self.before().is_some_and(|c| {
            selector(c).is_some()
                || matches!(
                    c.general_category(),
                    GeneralCategory::OtherSymbol
                        | GeneralCategory::MathSymbol
                        | GeneralCategory::EnclosingMark
                )
        })
    }

    /// The emoji before, past what styles it.
    fn pictograph_before(&self) -> Option<char> {
        let styles = |c: &char| *c == '\u{fe0f}' || *c == '\u{20e3}' || is_skin_tone(*c);
        let mut back = self.before.iter().rev().take(4).copied();
        back.find(|c| !styles(c)).filter(|c| is_pictograph(*c))
    }
}

/// Whether the neighbours justify the character.
pub(super) fn is_legitimate(c: char, around: &Neighbors<'_>) -> bool {
    let (before, after) = (around.before(), around.after());
    let is = |c: Option<char>, test: fn(char) -> bool| c.is_some_and(test);
    match c {
        '\u{200b}' => is(before, is_spaceless) && is(after, is_spaceless),
        '\u{200c}' => is(before, joins) && !is_hidden_neighbour(after),
        '\u{200d}' => joins_emoji(around) || joins_letters(around),
        '\u{34f}' => is(before, is_mark) || is(after, is_mark),
        '\u{115f}' | '\u{1160}' => is(before, is_jamo) || is(after, is_jamo),
        '\u{17b4}' | '\u{17b5}' => is(before, |c| is_of(c, &[Script::Khmer])),
        '\u{180b}'..='\u{180f}' => is(before, |c| {
            !is_hidden_neighbour(Some(c)) && is_of(c, &[Script::Mongolian])
        }),
        _ if selector(c).is_some() => {
            let is_last = after.is_none_or(|c| selector(c).is_none());
            is_last && before.is_some_and(|base| takes_selector(base, c))
        }
        _ => is_visible_format(c) || is_format_of_script(c, around),
    }
}

fn joins_emoji(around: &Neighbors<'_>) -> bool {
    around.pictograph_before().is_some() && around.after().is_some_and(is_pictograph)
}

fn joins_letters(around: &Neighbors<'_>) -> bool {
    !around.touches_hidden()
        && (around.before().is_some_and(joins) || around.after().is_some_and(joins))
}

fn is_mark(c: char) -> bool {
    c.general_category() == GeneralCategory::NonspacingMark && !is_hidden_neighbour(Some(c))
}

const fn is_jamo(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115e}' | '\u{1161}'..='\u{11ff}' | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}')
}

/// Whether a standard sequence of this kind exists; the exact pairs are not listed.
fn takes_selector(base: char, selector: char) -> bool {
    let is_ideograph = is_of(base, &[Script::Han]);
    match selector {
        '\u{fe0e}' | '\u{fe0f}' => base.is_emoji_char(),
        '\u{fe00}'..='\u{fe06}' => {
            is_ideograph
                || base == '0'
                || base.general_category() == GeneralCategory::MathSymbol
                || matches!(base, '\u{2018}'..='\u{201d}' | '\u{3001}'..='\u{3002}' | '\u{ff01}'..='\u{ff1f}')
                || is_of(
                    base,
                    &[
                        Script::Egyptian_Hieroglyphs,
                        Script::Manichaean,
                        Script::Myanmar,
                        Script::Phags_Pa,
                    ],
                )
        }
        '\u{e0100}'..='\u{e01ef}' => is_ideograph,
        _ => false,
    }
}

/// Format characters that show: they enclose the digits after them.
const fn is_visible_format(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{605}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{110bd}'
            | '\u{110cd}'
    )
}

/// Format characters of one script beside its letters, as hieroglyphs have them.
fn is_format_of_script(c: char, around: &Neighbors<'_>) -> bool {
    let Some(script) = own_script(c) else {
        return false;
    };
    let of_script = |c: Option<char>| {
        c.is_some_and(|c| own_script(c) == Some(script) && !is_hidden_neighbour(Some(c)))
    };
    c.general_category() == GeneralCategory::Format
        && (of_script(around.before()) || of_script(around.after()))
}
