//! What targets make of their input, and how they check where an error is.

use toolwarden_model::json::{Parsed, Position, parse};

/// The input as text, for parsers that take text.
pub(crate) fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// The input as JSON, for readers of values.
pub(crate) fn parsed(data: &[u8]) -> Option<Parsed> {
    parse(text(data)?).ok()
}

/// Asserts that a position is in the text, or right after it. Columns are not checked: the JSON parser counts an end at
/// the start of a line as column 0.
pub(crate) fn assert_inside(text: &str, position: Position, what: &dyn std::fmt::Display) {
    let lines = text.split(['\n', '\r']).count();
    assert!(
        (1..=lines + 1).contains(&position.line),
        "{what}: {position:?} is not in a text of {lines} lines"
    );
}
