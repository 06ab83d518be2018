use toolwarden_model::json::Pointer;

use super::character::{describe, times};
use super::finding::{Detector, TextFinding, Weight};
use super::finding_collector::FindingCollector;
use super::script::is_right_to_left;

/// Controls that reorder what is shown, and marks that stand beside right-to-left letters.
const CONTROLS: [char; 12] = [
    '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
    '\u{2069}', '\u{200e}', '\u{200f}', '\u{61c}',
];

/// Whether this detector is responsible for the character.
pub(super) fn is_control(c: char) -> bool {
    CONTROLS.contains(&c)
}

/// Whether it belongs next to right-to-left letters and reorders nothing else.
pub(super) const fn is_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

pub(super) fn scan(pointer: &Pointer, text: &str, findings: &mut Vec<TextFinding>) {
    if !text.chars().any(is_control) {
        return;
    }
    let has_right_to_left = text.chars().any(is_right_to_left);
    let mut notes = FindingCollector::new(Detector::BidiControl, pointer);
    for control in CONTROLS {
        let count = text.chars().filter(|c| *c == control).count();
        if count == 0 || (is_mark(control) && has_right_to_left) {
            continue;
        }
        let (what, often) = (describe(control), times(count));
        if is_mark(control) {
            let message = format!("has {what} {often} in a text without right-to-left letters");
            notes.add(Weight::Low, message, None);
        } else {
            let message = format!(
                "has {what} {often}, which shows the text in another order than it is read"
            );
            notes.add(Weight::High, message, None);
        }
    }
    notes.finish(findings);
}
