//! JSON with comments and trailing commas, as VS Code writes it.

/// The same text as JSON: comments and trailing commas become blanks, so that all positions stay the same.
pub(super) fn to_json(text: &str) -> String {
    without_trailing_commas(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                out.push(c);
                copy_string(&mut chars, &mut out);
            }
            ('/', Some('/')) => {
                out.push(' ');
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    out.push(blank(c));
                }
            }
            ('/', Some('*')) => {
                // The star that begins the comment does not end it.
                chars.next();
                out.push_str("  ");
                let mut before = ' ';
                for c in chars.by_ref() {
                    out.push(blank(c));
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            _ => out.push(c),
        }
    }
    out
}

fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' {
            let next = chars.clone().find(|c| !c.is_whitespace());
            let trails = matches!(next, Some('}' | ']'));
            out.push(if trails { ' ' } else { ',' });
            continue;
        }
        out.push(c);
        if c == '"' {
            copy_string(&mut chars, &mut out);
        }
    }
    out
}

/// Copies a string up to its closing quote.
fn copy_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '"' => return,
            _ => {}
        }
    }
}

const fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_trailing_commas_become_blanks() {
        let cases = [
            ("{\"a\": 1} // x", "{\"a\": 1}     "),
            ("// x\n{}", "    \n{}"),
            (
                "{/* \"b\",\n */\"a\": [1, 2,],}",
                "{       \n   \"a\": [1, 2 ] }",
            ),
            ("{\"a\": \"// /* ,}\",}", "{\"a\": \"// /* ,}\" }"),
            (r#"{"a\"//": 1}"#, r#"{"a\"//": 1}"#),
            ("[1, // x\n]", "[1      \n]"),
            ("/*/ 1 */2", "        2"),
            ("/* 1 **/2", "        2"),
            ("/* a/*/2", "       2"),
            ("1 / 2", "1 / 2"),
            ("\"open", "\"open"),
            ("/* open", "       "),
        ];
        for (text, expected) in cases {
            assert_eq!(to_json(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is(text in ".{0,40}", number in any::<i64>()) {
            let json = serde_json::json!({"a": [text, number], "b": {}}).to_string();
            prop_assert_eq!(to_json(&json), json);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[/*\"\\\\,}\\]\n é]{0,20}") {
            prop_assert_eq!(to_json(&text).chars().count(), text.chars().count());
        }
    }
}
