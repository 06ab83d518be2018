use super::dates;

/// The format of a string value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StringFormat {
    /// No characters but blanks; of plain texts also `null` and its synonyms.
    Empty,
    /// A UUID.
    Uuid,
    /// A date and time as in RFC 3339, in UTC, without a fraction of a second.
    DateTime,
    /// A date as in RFC 3339.
    Date,
    /// A whole number as text.
    Integer,
    /// Any other number as text.
    Number,
    /// An absolute URI.
    Uri,
    /// An e-mail address.
    Email,
    /// An IPv4 address.
    Ipv4,
    /// Sixteen or more hexadecimal digits.
    Hex,
    /// Base64 of 24 or more characters.
    Base64,
    /// A JSON object or array as text, by its brackets.
    Json,
    /// Anything else without white space.
    Word,
    /// Anything else.
    Text,
    /// Plain text of ASCII characters.
    Ascii,
    /// Plain text with characters up to U+024F.
    Latin,
    /// Plain text with other characters.
    Unicode,
    /// Plain text with control characters.
    Control,
    /// A date and time as in RFC 3339, in UTC, with a fraction of a second.
    DateTimeFraction,
    /// A date and time as in RFC 3339, with an offset from UTC.
    DateTimeOffset,
    /// A date and time with `T` between them, without a zone.
    DateTimeLocal,
    /// A date and time with a space between them.
    DateTimeSpace,
    /// A date with slashes, `11/16/2026` or `2026/11/16`.
    DateSlash,
    /// A date with dots, `16.11.2026`.
    DateDot,
    /// A date that ends with the year, `16-11-2026`.
    DateDash,
    /// A date with the name of its month, `16 Nov 2026`.
    DateNamed,
    /// A time of day, `05:01` or `05:01:35`.
    Time,
}

impl StringFormat {
    /// All formats, in the order of their numbers.
    pub(super) const ALL: [Self; 27] = [
        Self::Empty,
        Self::Uuid,
        Self::DateTime,
        Self::Date,
        Self::Integer,
        Self::Number,
        Self::Uri,
        Self::Email,
        Self::Ipv4,
        Self::Hex,
        Self::Base64,
        Self::Json,
        Self::Word,
        Self::Text,
        Self::Ascii,
        Self::Latin,
        Self::Unicode,
        Self::Control,
        Self::DateTimeFraction,
        Self::DateTimeOffset,
        Self::DateTimeLocal,
        Self::DateTimeSpace,
        Self::DateSlash,
        Self::DateDot,
        Self::DateDash,
        Self::DateNamed,
        Self::Time,
    ];

    /// The word used in reports and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Uuid => "uuid",
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Uri => "uri",
            Self::Email => "email",
            Self::Ipv4 => "ipv4",
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Json => "json",
            Self::Word => "word",
            Self::Text => "text",
            Self::Ascii => "ascii",
            Self::Latin => "latin",
            Self::Unicode => "unicode",
            Self::Control => "control",
            Self::DateTimeFraction => "date-time-fraction",
            Self::DateTimeOffset => "date-time-offset",
            Self::DateTimeLocal => "date-time-local",
            Self::DateTimeSpace => "date-time-space",
            Self::DateSlash => "date-slash",
            Self::DateDot => "date-dot",
            Self::DateDash => "date-dash",
            Self::DateNamed => "date-named",
            Self::Time => "time",
        }
    }

    /// The format of a string value.
    pub(super) fn of(text: &str) -> Self {
        let all_bytes = text.as_bytes();
        // Long strings are classified by their beginning, so that a megabyte costs as much as a line.
        let (bytes, whole) = match all_bytes.get(..PREFIX) {
            Some(prefix) => (prefix, all_bytes.len() == PREFIX),
            None => (all_bytes, true),
        };
        let Some(first) = bytes.first() else {
            return Self::Empty;
        };
        let (every, any) = classes(bytes);
        let digits_and_marks = every & (NUMERIC | HEX_OR_DASH) != 0;
        if digits_and_marks
            && whole
            && any & DIGIT != 0
            && let Some(format) = numeric(text, bytes, every)
        {
            return format;
        }
        if any & DIGIT != 0
            && whole
            && let Some(format) = dates::date_format(bytes)
        {
            return format;
        }
        if every & HEX != 0 && bytes.len() >= 16 {
            return Self::Hex;
        }
        if every & BASE64 != 0 && looks_base64(bytes, any, whole) {
            return Self::Base64;
        }
        if matches!(
            (first, all_bytes.last()),
            (b'{', Some(b'}')) | (b'[', Some(b']'))
        ) {
            return Self::Json;
        }
        if any & SPACE != 0 {
            // Blanks are no content.
            let is_blank = text.trim_ascii().is_empty();
            return if is_blank { Self::Empty } else { Self::Text };
        }
        if any & COLON != 0 && is_uri(bytes) {
            return Self::Uri;
        }
        if any & AT != 0 && is_email(bytes) {
            return Self::Email;
        }
        Self::Word
    }

    /// The characters a plain text is made of.
    pub(super) fn of_plain(text: &str) -> Self {
        let no_content = ["", "null", "none", "nil", "undefined"];
        let content = text.trim_ascii();
        if no_content.iter().any(|it| content.eq_ignore_ascii_case(it)) {
            return Self::Empty;
        }
        let control = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
        // The compiler can check a whole chunk with one instruction for many bytes.
        let any_control = |chunk: &[u8]| chunk.iter().fold(false, |any, it| any | control(*it));
        if text.as_bytes().chunks(256).any(any_control) {
            Self::Control
        } else if text.is_ascii() {
            Self::Ascii
        } else if text.chars().all(|letter| letter <= '\u{24f}') {
            Self::Latin
        } else {
            Self::Unicode
        }
    }
}

const PREFIX: usize = 256;

const DIGIT: u8 = 1;
const HEX: u8 = 2;
const HEX_OR_DASH: u8 = 4;
const BASE64: u8 = 8;
const NUMERIC: u8 = 16;
const SPACE: u8 = 32;
const AT: u8 = 64;
const COLON: u8 = 128;

const CLASSES: [u8; 256] = class_table();

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated by the compiler, over all 256 bytes"
)]
const fn class_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let mut class = 0;
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if byte.is_ascii_hexdigit() {
            class |= HEX | HEX_OR_DASH;
        }
        if byte == b'-' {
            class |= HEX_OR_DASH;
        }
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_') {
            class |= BASE64;
        }
        if byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E') {
            class |= NUMERIC;
        }
        if byte.is_ascii_whitespace() {
            class |= SPACE;
        }
        if byte == b'@' {
            class |= AT;
        }
        if byte == b':' {
            class |= COLON;
        }
        table[at] = class;
        at += 1;
    }
    table
}

/// The classes every byte belongs to, and those at least one does.
fn classes(bytes: &[u8]) -> (u8, u8) {
    bytes.iter().fold((u8::MAX, 0), |(every, any), byte| {
        let class = CLASSES.get(usize::from(*byte)).copied().unwrap_or(0);
        (every & class, any | class)
    })
}

/// Formats made of digits and a few marks.
fn numeric(text: &str, bytes: &[u8], every: u8) -> Option<StringFormat> {
    if every & HEX_OR_DASH != 0 && is_uuid(bytes) {
        return Some(StringFormat::Uuid);
    }
    if every & NUMERIC == 0 {
        return None;
    }
    if dates::matches_layout(bytes, b"0000-00-00") {
        return Some(StringFormat::Date);
    }
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        // Forty digits are an identifier, and such a field mostly holds hexadecimal digits.
        return (digits.len() <= 32).then_some(StringFormat::Integer);
    }
    if digits.split(|byte| *byte == b'.').count() == 4 && is_ipv4(digits) {
        return Some(StringFormat::Ipv4);
    }
    let number = bytes.len() <= 40 && text.parse::<f64>().is_ok();
    number.then_some(StringFormat::Number)
}

fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() == 36
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| (*byte == b'-') == matches!(at, 8 | 13 | 18 | 23))
}

fn is_ipv4(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'.').all(|part| {
        let value = part.iter().fold(0_u32, |value, digit| {
            value * 10 + u32::from(digit.wrapping_sub(b'0'))
        });
        (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit) && value < 256
    })
}

/// Distinguishes base64 from a long word by padding, or by a mix of capitals, small letters and digits.
fn looks_base64(bytes: &[u8], any: u8, whole: bool) -> bool {
    let mixed = any & DIGIT != 0
        && bytes.iter().any(u8::is_ascii_uppercase)
        && bytes.iter().any(u8::is_ascii_lowercase);
    let padded = whole && bytes.ends_with(b"=") && bytes.len().is_multiple_of(4);
    bytes.len() >= 24 && (mixed || padded)
}

fn is_uri(bytes: &[u8]) -> bool {
    let scheme = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        .count();
    let named = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    named
        && (bytes.get(scheme..scheme + 3) == Some(b"://")
            || bytes.starts_with(b"mailto:")
            || bytes.starts_with(b"urn:"))
}

fn is_email(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| *byte == b'@');
    let (Some(user), Some(host), None) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    !user.is_empty() && host.contains(&b'.') && !host.starts_with(b".") && !host.ends_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_told_apart() {
        let hex = "0123456789abcdef".repeat(40);
        for (text, format) in [
            ("", StringFormat::Empty),
            ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", StringFormat::Uuid),
            ("2026-11-16T05:01:35Z", StringFormat::DateTime),
            ("2026-11-16T05:01:35.Z", StringFormat::Word),
            ("2026-11-16", StringFormat::Date),
            ("42", StringFormat::Integer),
            ("-7", StringFormat::Integer),
            ("4.2", StringFormat::Number),
            ("1e9", StringFormat::Number),
            ("-", StringFormat::Word),
            ("e", StringFormat::Word),
            ("https://example.org/a?b", StringFormat::Uri),
            ("urn:isbn:1", StringFormat::Uri),
            ("a@b.org", StringFormat::Email),
            ("a@b", StringFormat::Word),
            ("10.0.0.1", StringFormat::Ipv4),
            ("10.0.0.256", StringFormat::Word),
            ("d41d8cd98f00b204e9800998ecf8427e", StringFormat::Hex),
            (hex.as_str(), StringFormat::Hex),
            ("iVBORw0KGgoAAAANSUhEUgAAAAE=", StringFormat::Base64),
            ("{\"a\":1}", StringFormat::Json),
            ("[1]", StringFormat::Json),
            ("active", StringFormat::Word),
            ("a b", StringFormat::Text),
            ("grün", StringFormat::Word),
            ("an_identifier_of_many_letters", StringFormat::Word),
        ] {
            assert_eq!(StringFormat::of(text), format, "{text}");
        }
    }

    #[test]
    fn plain_text_is_told_apart_by_its_characters() {
        for (text, format) in [
            ("", StringFormat::Empty),
            ("a\nb", StringFormat::Ascii),
            ("grün", StringFormat::Latin),
            ("日本", StringFormat::Unicode),
            ("a\u{1b}[0m", StringFormat::Control),
        ] {
            assert_eq!(StringFormat::of_plain(text), format, "{text}");
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        let numbers: Vec<_> = StringFormat::ALL
            .iter()
            .map(|format| *format as usize)
            .collect();
        assert_eq!(numbers, (0..StringFormat::ALL.len()).collect::<Vec<_>>());
    }
}
