//! Characters as HTML escapes them: `&amp;`, `&#47;`, `&#x2F;`.

/// The longest escape that is read, with leading zeros.
const MAX_LENGTH: usize = 12;

/// The names of the characters that keys and templates use.
const NAMES: [(&[u8], u8); 13] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"sol", b'/'),
    (b"plus", b'+'),
    (b"equals", b'='),
    (b"lowbar", b'_'),
    (b"period", b'.'),
    (b"colon", b':'),
    (b"hyphen", b'-'),
    (b"dash", b'-'),
];

/// The length of an escape of the byte at the start.
pub(super) fn html_escape(bytes: &[u8], wanted: u8) -> Option<usize> {
    let inside = bytes.strip_prefix(b"&")?;
    let head = inside.get(..MAX_LENGTH).unwrap_or(inside);
    let end = head.iter().position(|it| *it == b';')?;
    let name = head.get(..end)?;
    let code = match name.strip_prefix(b"#") {
        Some(digits) => number(digits)?,
        None => {
            let found = NAMES.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
            u32::from(found?.1)
        }
    };
    let is_wanted = u8::try_from(code).is_ok_and(|it| it.eq_ignore_ascii_case(&wanted));
    is_wanted.then_some(end + 2)
}

fn number(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    match text.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
