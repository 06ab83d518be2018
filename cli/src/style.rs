use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use toolwarden_drift::text::is_unprintable;

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const SUCCESS: Style = AnsiColor::Green.on_default().bold();
pub(crate) const LOCATION: Style = AnsiColor::Cyan.on_default();
pub(crate) const TITLE: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// The text with everything escaped that a terminal or a CI runner would act on, or a reader would not see.
pub(crate) fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) {
            // Writing to a string cannot fail.
            write!(shown, "{}", c.escape_unicode()).unwrap_or_default();
        } else {
            shown.push(c);
        }
    }
    crate::ci_escape::escape_text(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_hidden_characters_are_shown() {
        assert_eq!(
            escape_controls("a\u{1b}[31mb\u{202e}c é"),
            "a\\u{1b}[31mb\\u{202e}c é"
        );
        assert_eq!(
            escape_controls("a\u{2028}b\u{2029}\u{fe0f}\u{e0100}"),
            "a\\u{2028}b\\u{2029}\\u{fe0f}\\u{e0100}"
        );
    }
}
