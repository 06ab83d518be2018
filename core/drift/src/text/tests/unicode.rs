use super::{check_text, json, lines};

/// What looks suspicious to a list of ranges and is ordinary writing.
#[test]
fn ordinary_writing_is_silent() {
    let texts = [
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Scotland",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} England",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f} Wales",
        "👨‍👩‍👧‍👦 family",
        "👩🏽‍🤝‍👨🏿 couple",
        "👩🏽‍⚕️ 🏳️‍🌈 🏴‍☠️ ❤️‍🔥 👁️‍🗨️",
        "1️⃣ #️⃣ keycaps",
        "❤️ ⚠️ ℹ️ ©️ ☎︎",
        "می‌خواهم کتاب‌ها را بخوانم",
        "ه‍ . هجری",
        "क्‍ष और क्‌ष",
        "ශ්‍රී ලංකා",
        "ᠮᠣᠩᠭᠣᠯ ᠪᠣᠯ\u{180e}ᠠ ᠭ\u{180b}",
        "ภาษา\u{200b}ไทย",
        "辻\u{e0100}さんと葛\u{e0101}飾区",
        "日本語のテキスト、中文說明。",
        "العَرَبِيَّة مُشَكَّلَة",
        "שָׁלוֹם עֲלֵיכֶם",
        "\u{200f}שלום\u{200e} abc",
        "naïve café, Zürich, “quotes”, em—dash, 100 µs, Δt",
        "tab\tline\r\nend",
    ];
    for text in texts {
        check_text(text, &[]);
    }
}

#[test]
fn tags_outside_the_three_flags_are_read() {
    let hidden =
        "\u{e0049}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}\u{e0020}\u{e006d}\u{e0065}";
    check_text(
        &format!("Adds numbers{hidden}"),
        &["hidden-unicode high hides text in 9 tag characters (U+E0000 to U+E007F) = Ignore me"],
    );
    // Not a real flag: the payload takes the place of the region.
    check_text(
        &format!("\u{1f3f4}{hidden}\u{e007f}"),
        &[
            "hidden-unicode high hides text in 10 tag characters (U+E0000 to U+E007F) = Ignore me\\x7f",
        ],
    );
    check_text(
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}\u{e0041}",
        &["hidden-unicode high hides text in 1 tag characters (U+E0000 to U+E007F) = A"],
    );
}

#[test]
fn zero_width_characters_need_a_reason() {
    check_text(
        "ig\u{200b}no\u{200b}re",
        &["hidden-unicode high has U+200B ZERO WIDTH SPACE twice where nothing explains it"],
    );
    check_text(
        "How \u{200b}\u{200b}to do",
        &["hidden-unicode medium has U+200B ZERO WIDTH SPACE twice where nothing explains it"],
    );
    check_text(
        "\u{feff}text",
        &[
            "hidden-unicode medium has U+FEFF ZERO WIDTH NO-BREAK SPACE once where nothing explains it",
        ],
    );
    check_text(
        "co\u{ad}operate",
        &["hidden-unicode medium has U+00AD SOFT HYPHEN once where nothing explains it"],
    );
    check_text(
        "a\u{200d}b\u{200c}c",
        &[
            "hidden-unicode high has U+200C ZERO WIDTH NON-JOINER once where nothing explains it",
            "hidden-unicode high has U+200D ZERO WIDTH JOINER once where nothing explains it",
        ],
    );
    check_text(
        "a\u{3164}b\u{2063}c\u{34f}d\u{180e}e\u{115f}f",
        &[
            "hidden-unicode high has U+034F COMBINING GRAPHEME JOINER once where nothing explains it",
            "hidden-unicode high has U+115F HANGUL CHOSEONG FILLER once where nothing explains it",
            "hidden-unicode high has U+180E MONGOLIAN VOWEL SEPARATOR once where nothing explains it",
            "hidden-unicode high has U+2063 INVISIBLE SEPARATOR once where nothing explains it",
            "hidden-unicode high has U+3164 HANGUL FILLER once where nothing explains it",
        ],
    );
    // Two joiners between Persian letters are one too many.
    check_text(
        "می\u{200c}\u{200c}خواهم",
        &["hidden-unicode high has U+200C ZERO WIDTH NON-JOINER twice where nothing explains it"],
    );
    check_text(
        "icon \u{e0b0} and \u{fdd0}",
        &[
            "hidden-unicode medium has U+E0B0 PRIVATE USE once where nothing explains it",
            "hidden-unicode high has U+FDD0 NONCHARACTER once where nothing explains it",
        ],
    );
}

#[test]
fn bits_in_zero_width_characters_are_read() {
    let bits: String = "Hi"
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
        .map(|one| if one { '\u{200c}' } else { '\u{200b}' })
        .collect();
    check_text(
        &format!("ok{bits}ok"),
        &["hidden-unicode high hides text in 16 zero-width characters = Hi"],
    );
}

#[test]
fn bytes_in_variation_selectors_are_read() {
    let smuggled: String = "run rm"
        .bytes()
        .filter_map(|byte| char::from_u32(0xe0100 + u32::from(byte) - 16))
        .collect();
    check_text(
        &format!("😀{smuggled}"),
        &["hidden-unicode high hides bytes in 6 variation selectors = run rm"],
    );
    check_text(
        "a\u{fe01}\u{fe0f}\u{e01ef}",
        &["hidden-unicode high hides bytes in 3 variation selectors = \\x01\\x0f\\xff"],
    );
    check_text(
        "⚠\u{fe0f}\u{fe0f}",
        &[
            "hidden-unicode medium has U+FE0F VARIATION SELECTOR-16 twice where no character takes it",
        ],
    );
    check_text(
        "a\u{fe0f}",
        &["hidden-unicode high has U+FE0F VARIATION SELECTOR-16 once where no character takes it"],
    );
}

#[test]
fn bidi_controls() {
    check_text(
        "a\u{202e}b\u{202c} \u{2066}c\u{2069}",
        &[
            "bidi-control high has U+202C POP DIRECTIONAL FORMATTING once, which shows the text in another order than it is read",
            "bidi-control high has U+202E RIGHT-TO-LEFT OVERRIDE once, which shows the text in another order than it is read",
            "bidi-control high has U+2066 LEFT-TO-RIGHT ISOLATE once, which shows the text in another order than it is read",
            "bidi-control high has U+2069 POP DIRECTIONAL ISOLATE once, which shows the text in another order than it is read",
        ],
    );
    check_text(
        "abc\u{200e}def",
        &[
            "bidi-control low has U+200E LEFT-TO-RIGHT MARK once in a text without right-to-left letters",
        ],
    );
}

#[test]
fn terminal_escapes() {
    check_text(
        "a\x1b[8mhidden\x1b[0m",
        &[
            "terminal-escape high has the terminal control sequence `\\x1b[8m` = \\x1b[8m",
            "terminal-escape high has the terminal control sequence `\\x1b[0m` = \\x1b[0m",
        ],
    );
    check_text(
        "\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x07",
        &[
            "terminal-escape high has a terminal link to `https://evil.example/` = \\x1b]8;;https://evil.example/\\x1b\\",
            "terminal-escape high has the terminal command `\\x1b]8;;\\x07` = \\x1b]8;;\\x07",
        ],
    );
    check_text(
        "\u{9b}2J \x08 \x7f \x1b \x1bc \x1b]0;title",
        &[
            "terminal-escape high has the terminal control sequence `\\x9b2J` = \\x9b2J",
            "terminal-escape high has the control character U+0008 BACKSPACE = \\x08",
            "terminal-escape high has the control character U+007F DELETE = \\x7f",
            "terminal-escape high has the terminal escape `\\x1b ` = \\x1b ",
            "terminal-escape high has the terminal escape `\\x1bc` = \\x1bc",
            "terminal-escape high has the terminal command `\\x1b]0;title` = \\x1b]0;title",
        ],
    );
    check_text("the text \\x1b[8m written out", &[]);
}

/// Names, values in lists and unknown members are text like any other.
#[test]
fn every_string_is_scanned() {
    let definition = json(
        r#"{"name": "x", "inputSchema": {"properties": {"a\u001b[8m": {"enum": ["\u202e"]}}},
            "_meta": {"x-\u200by": ["a\ufeffb"]}}"#,
    );
    assert_eq!(
        lines(&definition),
        [
            "terminal-escape high /inputSchema/properties/a\u{1b}[8m has the terminal control sequence `\\x1b[8m` = \\x1b[8m",
            "bidi-control high /inputSchema/properties/a\u{1b}[8m/enum/0 has U+202E RIGHT-TO-LEFT OVERRIDE once, which shows the text in another order than it is read",
            "hidden-unicode high /_meta/x-\u{200b}y has U+200B ZERO WIDTH SPACE once where nothing explains it",
            "hidden-unicode high /_meta/x-\u{200b}y/0 has U+FEFF ZERO WIDTH NO-BREAK SPACE once where nothing explains it",
        ]
    );
}
