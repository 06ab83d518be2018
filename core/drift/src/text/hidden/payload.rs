//! Decodes the text that invisible characters spell.

use super::super::character::{escape, selector};

/// Tag characters are ASCII characters shifted to another plane.
pub(super) fn decode_tags(tags: &[char]) -> String {
    let ascii = |tag: &char| char::from_u32(u32::from(*tag) & 0x7f);
    escape(&tags.iter().filter_map(ascii).collect::<String>())
}

/// Variation selectors encode bytes; bytes that are not text are written in hexadecimal.
pub(super) fn decode_selectors(selectors: &[char]) -> String {
    let bytes: Vec<u8> = selectors.iter().copied().filter_map(selector).collect();
    match String::from_utf8(bytes) {
        Ok(text) => escape(&text),
        Err(error) => error
            .as_bytes()
            .iter()
            .map(|byte| format!("\\x{byte:02x}"))
            .collect(),
    }
}

/// The known encodings of bits by two characters: the number of bits per letter.
const WIDTHS: [usize; 2] = [8, 7];

/// The text that two alternating characters spell as bits, if it is text.
pub(super) fn decode_bits(chars: &[char]) -> Option<String> {
    let first = chars.first()?;
    let second = chars.iter().find(|c| *c != first)?;
    if chars.iter().any(|c| c != first && c != second) {
        return None;
    }
    let (low, high) = (first.min(second), first.max(second));
    WIDTHS.iter().find_map(|width| {
        [high, low]
            .iter()
            .find_map(|one| text_of_bits(chars, **one, *width))
    })
}

/// At least two printable letters, and nothing else.
fn text_of_bits(chars: &[char], one: char, width: usize) -> Option<String> {
    let groups = chars.chunks_exact(width);
    if !groups.remainder().is_empty() || groups.len() < 2 {
        return None;
    }
    groups
        .map(|bits| {
            let value = bits
                .iter()
                .fold(0, |value, bit| value << 1 | u8::from(*bit == one));
            let is_text = value == b' ' || value.is_ascii_graphic();
            is_text.then(|| char::from(value))
        })
        .collect()
}
