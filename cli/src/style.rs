use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();

/// The text with everything escaped that a terminal would act on or a reader would not see.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let invisible = matches!(c, '\u{ad}' | '\u{61c}' | '\u{3164}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        if c.is_control() || invisible {
            // Writing to a string cannot fail.
            write!(shown, "{}", c.escape_unicode()).unwrap_or_default();
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_hidden_characters_are_shown() {
        assert_eq!(
            visible("a\u{1b}[31mb\u{202e}c é"),
            "a\\u{1b}[31mb\\u{202e}c é"
        );
    }
}
