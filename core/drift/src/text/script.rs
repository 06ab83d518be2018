//! Which scripts justify characters that show nothing.

use unicode_properties::UnicodeEmoji;
use unicode_script::{Script, UnicodeScript};

/// Scripts whose letters change shape, so that joiners between them are spelling.
const JOINING: &[Script] = &[
    Script::Adlam,
    Script::Arabic,
    Script::Balinese,
    Script::Bengali,
    Script::Brahmi,
    Script::Chakma,
    Script::Devanagari,
    Script::Grantha,
    Script::Gujarati,
    Script::Gurmukhi,
    Script::Hanifi_Rohingya,
    Script::Javanese,
    Script::Kaithi,
    Script::Kannada,
    Script::Khmer,
    Script::Limbu,
    Script::Malayalam,
    Script::Mandaic,
    Script::Manichaean,
    Script::Meetei_Mayek,
    Script::Modi,
    Script::Mongolian,
    Script::Myanmar,
    Script::Newa,
    Script::Nko,
    Script::Oriya,
    Script::Phags_Pa,
    Script::Saurashtra,
    Script::Sharada,
    Script::Sinhala,
    Script::Sogdian,
    Script::Sundanese,
    Script::Syriac,
    Script::Tai_Tham,
    Script::Tamil,
    Script::Telugu,
    Script::Tibetan,
    Script::Tirhuta,
];

/// Scripts written without spaces, where a zero-width space separates words.
const SPACELESS: &[Script] = &[
    Script::Khmer,
    Script::Lao,
    Script::Myanmar,
    Script::Tai_Le,
    Script::Tai_Tham,
    Script::Thai,
    Script::Tibetan,
];

const RIGHT_TO_LEFT: &[Script] = &[
    Script::Adlam,
    Script::Arabic,
    Script::Hanifi_Rohingya,
    Script::Hebrew,
    Script::Mandaic,
    Script::Nko,
    Script::Samaritan,
    Script::Syriac,
    Script::Thaana,
];

pub(super) fn joins(c: char) -> bool {
    is_of(c, JOINING)
}

pub(super) fn is_spaceless(c: char) -> bool {
    is_of(c, SPACELESS)
}

pub(super) fn is_right_to_left(c: char) -> bool {
    is_of(c, RIGHT_TO_LEFT)
}

pub(super) fn is_of(c: char, scripts: &[Script]) -> bool {
    if c.is_ascii() {
        return false;
    }
    let used_in = c.script_extension();
    !used_in.is_common()
        && !used_in.is_inherited()
        && scripts
            .iter()
            .any(|script| used_in.contains_script(*script))
}

/// Whether a character has a script of its own, unlike digits, punctuation and most marks.
pub(super) fn own_script(c: char) -> Option<Script> {
    match c.script() {
        Script::Common | Script::Inherited | Script::Unknown => None,
        script => Some(script),
    }
}

/// An emoji that can be a part of a joined one.
pub(super) fn is_pictograph(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char()
}

pub(super) const fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}
