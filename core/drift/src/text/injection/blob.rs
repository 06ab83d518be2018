//! Long runs of base64.

/// A run of base64, and the text that it encodes, if any.
pub(super) struct Blob<'t> {
    pub(super) text: &'t str,
    pub(super) decoded: Option<String>,
}

const SHORTEST: usize = 40;

/// Every long run that encodes text, or that can only be base64.
pub(super) fn blobs(text: &str) -> impl Iterator<Item = Blob<'_>> {
    // Most texts have no run that is long enough.
    let searched = if has_run(text.as_bytes()) { text } else { "" };
    searched
        .split(|c: char| sextet(c).is_none())
        .filter(|run| run.len() >= SHORTEST)
        .filter(|run| !is_hexadecimal(run))
        .filter_map(|run| {
            let decoded = decode(run).and_then(readable);
            (decoded.is_some() || looks_random(run)).then_some(Blob { text: run, decoded })
        })
}

/// Whether so many bytes in a row are digits that base64 is looked for. Every such run has a digit where
/// this looks first, and most other stretches have something else soon before it.
fn has_run(bytes: &[u8]) -> bool {
    let mut start = 0;
    while let Some(window) = bytes.get(start..start + SHORTEST) {
        match window.iter().rposition(|byte| !is_digit(*byte)) {
            Some(at) => start += at + 1,
            None => return true,
        }
    }
    false
}

const fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_')
}

/// The value of a digit, in either alphabet.
fn sextet(c: char) -> Option<u32> {
    let code = u32::from(c);
    match c {
        'A'..='Z' => Some(code - u32::from('A')),
        'a'..='z' => Some(code - u32::from('a') + 26),
        '0'..='9' => Some(code - u32::from('0') + 52),
        '+' | '-' => Some(62),
        '/' | '_' => Some(63),
        _ => None,
    }
}

fn decode(run: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(run.len() / 4 * 3 + 3);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for c in run.chars() {
        bits = (bits << 6 | sextet(c)?) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// The bytes as human-written text: nearly all letters and spaces.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let is_prose = |c: &char| c.is_alphanumeric() || c.is_whitespace();
    let is_written = |c: char| !c.is_control() || c.is_whitespace();
    let letters = text.chars().filter(is_prose).count();
    (text.chars().all(is_written) && letters * 10 >= text.chars().count() * 6).then_some(text)
}

/// Names and paths have separators and digits in few places; base64 mixes everything.
fn looks_random(run: &str) -> bool {
    if run.strip_prefix("0x").is_some_and(is_hexadecimal) {
        return false;
    }
    let least = run.len() / 16;
    let count = |test: fn(char) -> bool| run.chars().filter(|c| test(*c)).count();
    let numbers = run.split(|c: char| !c.is_ascii_digit());
    let separators = count(|c| matches!(c, '-' | '_' | '/'));
    numbers.filter(|number| !number.is_empty()).count() > least
        && count(|c| c.is_ascii_uppercase()) >= least * 2
        && count(|c| c.is_ascii_lowercase()) >= least * 2
        && separators <= least
}

fn is_hexadecimal(run: &str) -> bool {
    run.bytes().all(|byte| byte.is_ascii_hexdigit())
}
