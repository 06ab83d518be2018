use toolwarden_model::json::Pointer;

use super::character::{describe, escape, quote};
use super::finding::{Detector, TextFinding, Weight};
use super::finding_collector::FindingCollector;

/// The number of bytes checked together.
const CHUNK: usize = 256;

pub(super) fn scan(pointer: &Pointer, text: &str, findings: &mut Vec<TextFinding>) {
    // Bytes of non-ASCII characters may belong to a control character.
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    // The compiler can check a whole chunk with one instruction for many bytes.
    let mut chunks = text.as_bytes().chunks(CHUNK);
    let all_plain = |chunk: &[u8]| chunk.iter().fold(true, |all, byte| all & is_plain(byte));
    if chunks.all(all_plain) || !text.chars().any(is_obeyed) {
        return;
    }
    let mut notes = FindingCollector::new(Detector::TerminalEscape, pointer);
    let mut rest = text;
    while let Some(start) = rest.find(is_obeyed) {
        let from = rest.get(start..).unwrap_or_default();
        let sequence = Sequence::at_start_of(from);
        notes.add(
            Weight::High,
            sequence.message(),
            Some(escape(sequence.text())),
        );
        rest = from.get(sequence.text().len()..).unwrap_or_default();
    }
    notes.finish(findings);
}

/// Control characters without the tab, the line feed and the carriage return.
const fn is_obeyed(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}')
}

/// A unit that a terminal interprets.
enum Sequence<'t> {
    /// A control sequence: colours, hidden text, the cursor.
    Control(&'t str),
    /// A command to the terminal, with its body.
    Command(&'t str, &'t str),
    /// An escape and the character after it.
    Escape(&'t str),
    /// A control character by itself.
    Single(&'t str, char),
}

impl<'t> Sequence<'t> {
    /// `from` starts with a control character; what is returned is never empty.
    fn at_start_of(from: &'t str) -> Self {
        let mut chars = from.chars();
        let first = chars.next().unwrap_or_default();
        let body = chars.as_str();
        let (introducer, body) = match first {
            '\x1b' => match chars.next() {
                Some(second) if second.is_ascii() && !second.is_ascii_control() => {
                    (second, chars.as_str())
                }
                _ => return Self::Single(head(from, body), first),
            },
            '\u{9b}' => ('[', body),
            '\u{9d}' => (']', body),
            _ => return Self::Single(head(from, body), first),
        };
        match introducer {
            '[' => {
                let parameters = |c: char| matches!(c, ' '..='?');
                let after = body.trim_start_matches(parameters);
                let mut end = after.chars();
                match end.next() {
                    Some('@'..='~') => Self::Control(head(from, end.as_str())),
                    _ => Self::Control(head(from, after)),
                }
            }
            ']' => {
                let (inside, after) = command_body(body);
                Self::Command(head(from, after), inside)
            }
            _ => Self::Escape(head(from, body)),
        }
    }

    const fn text(&self) -> &'t str {
        match self {
            Self::Control(text)
            | Self::Command(text, _)
            | Self::Escape(text)
            | Self::Single(text, _) => text,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Control(text) => format!("has the terminal control sequence {}", quote(text)),
            Self::Command(text, body) => match link_target(body) {
                Some(target) => format!("has a terminal link to {}", quote(target)),
                None => format!("has the terminal command {}", quote(text)),
            },
            Self::Escape(text) => format!("has the terminal escape {}", quote(text)),
            Self::Single(_, c) => format!("has the control character {}", describe(*c)),
        }
    }
}

/// The body of a command up to its terminator, and what follows it.
fn command_body(body: &str) -> (&str, &str) {
    let Some(end) = body.find(['\x07', '\u{9c}', '\x1b']) else {
        return (body, "");
    };
    let (inside, from) = body.split_at_checked(end).unwrap_or((body, ""));
    let after = ["\x1b\\", "\x07", "\u{9c}"]
        .iter()
        .find_map(|terminator| from.strip_prefix(terminator));
    (inside, after.unwrap_or(from))
}

/// The address of `8;parameters;address`, unless it closes a link.
fn link_target(body: &str) -> Option<&str> {
    let (_, target) = body.strip_prefix("8;")?.split_once(';')?;
    (!target.is_empty()).then_some(target)
}

/// The part of `whole` before `tail`, which is its end.
fn head<'t>(whole: &'t str, tail: &str) -> &'t str {
    let length = whole.len().saturating_sub(tail.len());
    whole.get(..length).unwrap_or(whole)
}
