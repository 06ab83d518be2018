//! Makes untrusted text safe for messages: nothing hidden, no markup, not too long.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The mark at the end of a shortened text.
const ELLIPSIS: &str = "…";

/// Escapes one character.
pub(super) type EscapeFn = fn(char, &mut LineContext) -> Cow<'static, str>;

/// The context of an escape: the line so far.
#[derive(Debug)]
pub(super) struct LineContext {
    /// The line has only digits and blanks so far.
    pub(super) at_line_start: bool,
    /// The line so far ends with a digit, after only digits and blanks.
    pub(super) after_number: bool,
}

/// Text of several lines, with a maximum length in bytes.
pub(super) fn sanitize_lines(text: &str, most: usize, escape: EscapeFn) -> String {
    sanitize(&text.replace("\r\n", "\n"), most, escape, true)
}

/// Text of one line, with a maximum length in bytes. Line breaks are shown as escapes.
pub(super) fn sanitize_line(text: &str, most: usize, escape: EscapeFn) -> String {
    sanitize(text, most, escape, false)
}

/// For plain text, which needs no escapes.
pub(super) fn plain(c: char, _: &mut LineContext) -> Cow<'static, str> {
    Cow::Owned(c.to_string())
}

/// For Slack, which interprets three characters in every text.
pub(super) fn slack(c: char, _: &mut LineContext) -> Cow<'static, str> {
    match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        _ => c.to_string().into(),
    }
}

/// For Markdown. It escapes every character that could be markup, so that parsers which ignore escapes find
/// no pair of brackets or stars either.
pub(super) fn markdown(c: char, around: &mut LineContext) -> Cow<'static, str> {
    match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~' => {
            format!("\\{c}").into()
        }
        '-' | '+' | '=' if around.at_line_start => format!("\\{c}").into(),
        '.' if around.after_number => "\\.".into(),
        _ => c.to_string().into(),
    }
}

fn sanitize(text: &str, most: usize, escape: EscapeFn, breaks: bool) -> String {
    let mut written = String::new();
    let mut around = LineContext {
        at_line_start: true,
        after_number: false,
    };
    // Where to cut so that the mark fits.
    let mut room = 0;
    for c in text.chars() {
        if breaks && c == '\n' {
            written.push('\n');
            around.at_line_start = true;
            around.after_number = false;
        } else if is_invisible(c) {
            for c in c.escape_unicode() {
                written.push_str(&escape(c, &mut around));
            }
            around.at_line_start = false;
        } else {
            written.push_str(&escape(c, &mut around));
            around.after_number = around.at_line_start && c.is_ascii_digit();
            around.at_line_start &= c == ' ' || c.is_ascii_digit();
        }
        if written.len() > most {
            written.truncate(room);
            written.push_str(ELLIPSIS);
            return written;
        }
        if written.len() + ELLIPSIS.len() <= most {
            room = written.len();
        }
    }
    written
}

/// Whether a character is invisible to a reader, or a program would act on it.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A header value that shows an id: visible ASCII unchanged, all other characters by their number.
pub(super) fn header_value(id: &str) -> String {
    let mut shown = String::with_capacity(id.len());
    for c in id.chars().take(200) {
        if c.is_ascii_graphic() {
            shown.push(c);
        } else {
            // Writing to a string cannot fail.
            write!(shown, "{}", c.escape_unicode()).unwrap_or_default();
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_that_mean_something_are_escaped() {
        let cases: &[(EscapeFn, &str, &str)] = &[
            (plain, "a\u{1b}[31m\tb", "a\\u{1b}[31m\\u{9}b"),
            (
                plain,
                "gpj\u{202e}.exe\u{e0041}",
                "gpj\\u{202e}.exe\\u{e0041}",
            ),
            (plain, "one\r\ntwo\rthree", "one\ntwo\\u{d}three"),
            (slack, "<!channel> & co", "&lt;!channel&gt; &amp; co"),
            (markdown, "[x](http://e.com)", r"\[x\]\(http://e.com\)"),
            (markdown, "**a** _b_ `c`", r"\*\*a\*\* \_b\_ \`c\`"),
            (markdown, "<@all><font>", "&lt;@all&gt;&lt;font&gt;"),
            (
                markdown,
                "# a\n> b\n- c\n+ d\n12. e\n1.5",
                "\\# a\n&gt; b\n\\- c\n\\+ d\n12\\. e\n1\\.5",
            ),
            (markdown, "a-b 3.5 c=d\n===", "a-b 3.5 c=d\n\\==="),
            (markdown, "![i](x)|~~s~~ \\", r"\!\[i\]\(x\)\|\~\~s\~\~ \\"),
            (markdown, "\u{200b}", r"\\u{200b}"),
        ];
        for (escape, text, expected) in cases {
            assert_eq!(sanitize_lines(text, 10_000, *escape), *expected, "{text:?}");
        }
        assert_eq!(sanitize_line("a\nb", 100, plain), "a\\u{a}b");
        assert_eq!(
            header_value("a b\r\nX: é"),
            "a\\u{20}b\\u{d}\\u{a}X:\\u{20}\\u{e9}"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        for (text, most, expected) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abc…"),
            ("ééé", 5, "é…"),
            ("a&b&c&d", 12, "a&amp;b…"),
        ] {
            assert_eq!(sanitize_line(text, most, slack), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_allowed(text in ".{0,80}", most in 4_usize..60) {
            for escape in [plain as EscapeFn, slack, markdown] {
                prop_assert!(sanitize_line(&text, most, escape).len() <= most);
                prop_assert!(sanitize_lines(&text, most, escape).len() <= most);
            }
        }
    }
}
