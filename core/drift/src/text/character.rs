//! Characters as shown in messages.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Names of the characters we report, where the code point alone says little.
const NAMES: &[(char, &str)] = &[
    ('\u{0}', "NULL"),
    ('\u{7}', "BELL"),
    ('\u{8}', "BACKSPACE"),
    ('\u{b}', "LINE TABULATION"),
    ('\u{c}', "FORM FEED"),
    ('\u{1b}', "ESCAPE"),
    ('\u{7f}', "DELETE"),
    ('\u{85}', "NEXT LINE"),
    ('\u{9b}', "CONTROL SEQUENCE INTRODUCER"),
    ('\u{9d}', "OPERATING SYSTEM COMMAND"),
    ('\u{ad}', "SOFT HYPHEN"),
    ('\u{34f}', "COMBINING GRAPHEME JOINER"),
    ('\u{61c}', "ARABIC LETTER MARK"),
    ('\u{115f}', "HANGUL CHOSEONG FILLER"),
    ('\u{1160}', "HANGUL JUNGSEONG FILLER"),
    ('\u{17b4}', "KHMER VOWEL INHERENT AQ"),
    ('\u{17b5}', "KHMER VOWEL INHERENT AA"),
    ('\u{180b}', "MONGOLIAN FREE VARIATION SELECTOR ONE"),
    ('\u{180c}', "MONGOLIAN FREE VARIATION SELECTOR TWO"),
    ('\u{180d}', "MONGOLIAN FREE VARIATION SELECTOR THREE"),
    ('\u{180e}', "MONGOLIAN VOWEL SEPARATOR"),
    ('\u{180f}', "MONGOLIAN FREE VARIATION SELECTOR FOUR"),
    ('\u{200b}', "ZERO WIDTH SPACE"),
    ('\u{200c}', "ZERO WIDTH NON-JOINER"),
    ('\u{200d}', "ZERO WIDTH JOINER"),
    ('\u{200e}', "LEFT-TO-RIGHT MARK"),
    ('\u{200f}', "RIGHT-TO-LEFT MARK"),
    ('\u{202a}', "LEFT-TO-RIGHT EMBEDDING"),
    ('\u{202b}', "RIGHT-TO-LEFT EMBEDDING"),
    ('\u{202c}', "POP DIRECTIONAL FORMATTING"),
    ('\u{202d}', "LEFT-TO-RIGHT OVERRIDE"),
    ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE"),
    ('\u{2060}', "WORD JOINER"),
    ('\u{2061}', "FUNCTION APPLICATION"),
    ('\u{2062}', "INVISIBLE TIMES"),
    ('\u{2063}', "INVISIBLE SEPARATOR"),
    ('\u{2064}', "INVISIBLE PLUS"),
    ('\u{2066}', "LEFT-TO-RIGHT ISOLATE"),
    ('\u{2067}', "RIGHT-TO-LEFT ISOLATE"),
    ('\u{2068}', "FIRST STRONG ISOLATE"),
    ('\u{2069}', "POP DIRECTIONAL ISOLATE"),
    ('\u{3164}', "HANGUL FILLER"),
    ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE"),
    ('\u{ffa0}', "HALFWIDTH HANGUL FILLER"),
    ('\u{fff9}', "INTERLINEAR ANNOTATION ANCHOR"),
    ('\u{fffa}', "INTERLINEAR ANNOTATION SEPARATOR"),
    ('\u{fffb}', "INTERLINEAR ANNOTATION TERMINATOR"),
    ('\u{e0001}', "LANGUAGE TAG"),
    ('\u{e007f}', "CANCEL TAG"),
];

/// The number a variation selector stands for, counted from zero.
pub(super) fn selector(c: char) -> Option<u8> {
    let number = match c {
        '\u{fe00}'..='\u{fe0f}' => u32::from(c) - 0xfe00,
        '\u{e0100}'..='\u{e01ef}' => u32::from(c) - 0xe0100 + 16,
        _ => return None,
    };
    u8::try_from(number).ok()
}

pub(super) const fn is_noncharacter(c: char) -> bool {
    let code = c as u32;
    matches!(code, 0xfdd0..=0xfdef) || code & 0xfffe == 0xfffe
}

/// Unassigned code points that the standard asks programs to show as nothing.
pub(super) const fn is_reserved_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{2065}' | '\u{fff0}'..='\u{fff8}' | '\u{e0080}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

/// Characters that show nothing although their category suggests a glyph.
pub(super) const fn is_blank_glyph(c: char) -> bool {
    matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
            ..='\u{180f}' | '\u{3164}' | '\u{ffa0}'
    )
}

/// Whether a character shows nothing, or something that a reader cannot distinguish from another
/// character.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    selector(c).is_some()
        || is_blank_glyph(c)
        || matches!(
            c.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        )
}

/// A character as `U+200B ZERO WIDTH SPACE`.
pub(super) fn describe(c: char) -> String {
    let code = u32::from(c);
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == c) {
        return format!("U+{code:04X} {name}");
    }
    if let Some(number) = selector(c) {
        return format!("U+{code:04X} VARIATION SELECTOR-{}", u16::from(number) + 1);
    }
    let kind = match c.general_category() {
        _ if is_noncharacter(c) => "NONCHARACTER",
        GeneralCategory::Control => "CONTROL",
        GeneralCategory::PrivateUse => "PRIVATE USE",
        GeneralCategory::Unassigned => "UNASSIGNED",
        GeneralCategory::Format => "FORMAT CHARACTER",
        _ => "CHARACTER",
    };
    format!("U+{code:04X} {kind}")
}

/// A text with every non-printing character escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    escape(text)
}

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            _ if !is_unprintable(c) => escaped.push(c),
            _ if code < 0x100 => escaped.push_str(&format!("\\x{code:02x}")),
            _ => escaped.push_str(&format!("\\u{{{code:x}}}")),
        }
    }
    escaped
}

/// How much of a text a message quotes.
const QUOTED: usize = 80;

/// The beginning of a text as a message quotes it.
pub(super) fn quote(text: &str) -> String {
    let mut chars = text.chars();
    let mut start = escape(&chars.by_ref().take(QUOTED).collect::<String>());
    if chars.next().is_some() {
        start.push('…');
    }
    format!("`{start}`")
}

/// `once`, `twice` or how often.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}
