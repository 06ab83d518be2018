use std::fmt::Write as _;

use super::{described, json, lines};
use crate::text::{ServerTool, Weight, new_findings, scan, scan_across_tools};
use toolwarden_model::json::Value;

/// Pieces that the detectors care about, in random order, and random characters.
const PIECES: &[&str] = &[
    "\u{1f3f4}",
    "\u{e0067}",
    "\u{e007f}",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{fe0f}",
    "\u{e0100}",
    "👩",
    "\u{1f3fd}",
    "م",
    "क",
    "\u{94d}",
    "\x1b",
    "[",
    "]8;;",
    "\\",
    "\x07",
    "\u{9b}",
    "<",
    "important",
    ">",
    "/",
    "![",
    "](http",
    ")",
    "|",
    "curl ",
    "sh",
    " ",
    ".",
    "do",
    "not",
    "tell",
    "user",
    "~/.ssh",
    "id_rsa",
    "а",
    "Ａ",
    "_",
    "-",
    "QUJD",
    "=",
    "\n",
    "\u{2019}",
    "ß",
    "İ",
    "\u{202e}",
    "\u{10ffff}",
    "\u{f0000}",
    "辻",
    "\u{180b}",
    "\u{115f}",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(24) {
            if self.below(4) == 0 {
                let code = u32::try_from(self.below(0x11_0000)).expect("a code point");
                text.extend(char::from_u32(code));
            } else {
                text.push_str(PIECES[self.below(PIECES.len())]);
            }
        }
        text
    }
}

/// No text breaks a detector, and no message or decoded text carries what it warns of.
#[test]
fn random_text() {
    let mut random = Random(7);
    for _ in 0..20_000 {
        let (name, key, text) = (random.text(), random.text(), random.text());
        let mut definition = described(&text);
        definition["name"] = Value::from(name.as_str());
        definition["inputSchema"]["properties"][&key]["type"] = Value::from("string");
        definition["annotations"]["readOnlyHint"] = Value::from(true);
        let mut findings = scan(&definition);
        assert_eq!(
            new_findings(&findings, &findings),
            Vec::<&crate::text::TextFinding>::new()
        );
        let other = described(&name);
        let tools = [
            ServerTool {
                server: "a",
                name: &name,
                definition: &definition,
            },
            ServerTool {
                server: &key,
                name: &text,
                definition: &other,
            },
        ];
        findings.extend(
            scan_across_tools(&tools, Weight::Low)
                .into_iter()
                .map(|(_, finding)| finding),
        );
        for finding in findings {
            let shown = format!("{}{}", finding.message, finding.decoded.unwrap_or_default());
            let raw = shown
                .chars()
                .find(|c| super::super::character::is_unprintable(*c));
            assert_eq!(raw, None, "{}", shown.escape_unicode());
        }
    }
}

/// A hostile string makes a bounded number of findings, in time that grows with its length only.
#[test]
fn hostile_text_is_bounded() {
    let repeated = [
        "\x1b]",
        "\x1b[",
        "![](http",
        "<",
        "curl | sh ",
        "not tell ",
        "a\u{200b}",
        "\u{202e}a",
        "\u{e0041}",
        "\u{fe01}",
        "| ",
        "id_rsa.env ",
        "IMPORTANT. ",
        "<system>",
        "A1b2",
    ];
    for piece in repeated {
        let found = scan(&described(&piece.repeat(200_000)));
        assert!(found.len() <= 34, "{} of {piece:?}", found.len());
    }
    let mut distinct = String::new();
    for number in 0..100 {
        write!(distinct, "\x1b[{number}m").expect("a string takes all");
    }
    let found = lines(&described(&distinct));
    assert_eq!(found.len(), 17);
    assert_eq!(
        found.last().map(String::as_str),
        Some("terminal-escape high /description 84 more like these in the same text")
    );
}

/// Nesting far beyond what the parser lets through costs no stack.
#[test]
fn deep_nesting() {
    let mut definition = json(r#""a\u202eb""#);
    for _ in 0..5_000 {
        definition = Value::Array(vec![definition]);
    }
    assert_eq!(scan(&definition).len(), 1);
    toolwarden_model::json::drop_iteratively(definition);
}
