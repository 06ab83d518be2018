use std::fmt;

use serde_json::Number;

use super::string_format::StringFormat;

/// The type of a value.
///
/// A number without a fraction is an integer however it is written, 22 as well as 22.0. So 22.5 after
/// many integers is not a new type, but the first number with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A number with a fraction, which is counted as a number too.
    Fraction,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl ValueType {
    /// All types, in the order of their numbers.
    pub(super) const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Number,
        Self::Fraction,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Fraction => "fraction",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// The letter used in files.
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Null => "z",
            Self::Boolean => "b",
            Self::Number => "n",
            Self::Fraction => "d",
            Self::String => "s",
            Self::Array => "a",
            Self::Object => "o",
        }
    }
}

/// The kind of a counter of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CounterKind {
    /// How many items an array has.
    Items,
    /// The format of a string.
    Format,
    /// How many bytes a string has.
    Length,
    /// The magnitude of a number.
    Magnitude,
    /// How many lines a plain text has.
    Lines,
    /// Whether a boolean is true.
    Boolean,
    /// Whether a text reads like an error; other texts are not counted.
    ErrorText,
}

impl CounterKind {
    pub(super) const ALL: [Self; 7] = [
        Self::Items,
        Self::Format,
        Self::Length,
        Self::Magnitude,
        Self::Lines,
        Self::Boolean,
        Self::ErrorText,
    ];

    /// The letter used in files.
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Items => "a",
            Self::Format => "f",
            Self::Length => "l",
            Self::Magnitude => "m",
            Self::Lines => "r",
            Self::Boolean => "b",
            Self::ErrorText => "e",
        }
    }
}

/// One counter of a [`CounterKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeCounter {
    pub(super) kind: CounterKind,
    bucket: i16,
}

const MAX_SIZE_BUCKET: i16 = 32;
const MIN_EXPONENT: i16 = -32;
const MAX_EXPONENT: i16 = 64;
/// Keeps the buckets of positive numbers above zero, whatever their exponent.
const EXPONENT_OFFSET: i16 = 100;

impl ShapeCounter {
    /// An array without items.
    pub(super) const NO_ITEMS: Self = Self {
        kind: CounterKind::Items,
        bucket: 0,
    };
    /// A text that reads like an error.
    pub(super) const ERROR_TEXT: Self = Self {
        kind: CounterKind::ErrorText,
        bucket: 0,
    };

    pub(super) const fn boolean(value: bool) -> Self {
        Self {
            kind: CounterKind::Boolean,
            bucket: value as i16,
        }
    }

    pub(super) const fn format(format: StringFormat) -> Self {
        Self {
            kind: CounterKind::Format,
            bucket: format as i16,
        }
    }

    /// Bucket 0 for zero, then one bucket per power of two.
    pub(super) fn size(kind: CounterKind, size: usize) -> Self {
        let bits = usize::BITS - size.leading_zeros();
        let bucket = i16::try_from(bits)
            .unwrap_or(MAX_SIZE_BUCKET)
            .min(MAX_SIZE_BUCKET);
        Self { kind, bucket }
    }

    /// One bucket per sign and power of two; a number too large for a float is in the last one.
    pub(super) fn magnitude(value: f64) -> Self {
        let exponent = match value.abs() {
            0.0 => {
                return Self {
                    kind: CounterKind::Magnitude,
                    bucket: 0,
                };
            }
            size => exponent(size).clamp(MIN_EXPONENT, MAX_EXPONENT),
        };
        let bucket = exponent + EXPONENT_OFFSET;
        Self {
            kind: CounterKind::Magnitude,
            bucket: if value < 0.0 { -bucket } else { bucket },
        }
    }

    /// The format, if the counter counts formats.
    pub(super) fn as_format(self) -> Option<StringFormat> {
        let format = StringFormat::ALL.get(usize::try_from(self.bucket).ok()?)?;
        (self.kind == CounterKind::Format).then_some(*format)
    }

    /// How many bytes the name takes in a file.
    pub(super) fn name_len(self) -> usize {
        match self.kind {
            CounterKind::Format => self.as_format().map_or(0, |format| format.as_str().len()),
            // The longest names are `-2^-32` and `2147483648`.
            CounterKind::Magnitude => 6,
            CounterKind::Items | CounterKind::Length | CounterKind::Lines => 10,
            CounterKind::Boolean | CounterKind::ErrorText => 5,
        }
    }

    pub(super) fn parse(facet: CounterKind, name: &str) -> Option<Self> {
        let buckets = match facet {
            CounterKind::Format => 0..=i16::try_from(StringFormat::ALL.len()).ok()? - 1,
            CounterKind::Magnitude => {
                -(MAX_EXPONENT + EXPONENT_OFFSET)..=MAX_EXPONENT + EXPONENT_OFFSET
            }
            CounterKind::Items | CounterKind::Length | CounterKind::Lines => 0..=MAX_SIZE_BUCKET,
            CounterKind::Boolean => 0..=1,
            CounterKind::ErrorText => 0..=0,
        };
        buckets
            .map(|bucket| Self {
                kind: facet,
                bucket,
            })
            .filter(|cell| cell.is_reachable())
            .find(|cell| cell.to_string() == name)
    }

    const fn is_reachable(self) -> bool {
        let exponent = self.bucket.abs() - EXPONENT_OFFSET;
        match self.kind {
            CounterKind::Magnitude => {
                self.bucket == 0 || exponent >= MIN_EXPONENT && exponent <= MAX_EXPONENT
            }
            CounterKind::Format
            | CounterKind::Items
            | CounterKind::Length
            | CounterKind::Lines
            | CounterKind::Boolean
            | CounterKind::ErrorText => true,
        }
    }
}

impl fmt::Display for ShapeCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CounterKind::Format => f.write_str(self.as_format().map_or("", StringFormat::as_str)),
            CounterKind::Magnitude if self.bucket == 0 => f.write_str("0"),
            CounterKind::Magnitude => {
                let sign = if self.bucket < 0 { "-" } else { "" };
                write!(f, "{sign}2^{}", self.bucket.abs() - EXPONENT_OFFSET)
            }
            CounterKind::Boolean => write!(f, "{}", self.bucket > 0),
            CounterKind::ErrorText => f.write_str("error"),
            CounterKind::Items | CounterKind::Length | CounterKind::Lines if self.bucket <= 0 => {
                f.write_str("0")
            }
            CounterKind::Items | CounterKind::Length | CounterKind::Lines => {
                write!(f, "{}", 1_u64 << (self.bucket - 1))
            }
        }
    }
}

/// The largest power of two that does not exceed a positive number, read from its bits.
fn exponent(size: f64) -> i16 {
    let biased = (size.to_bits() >> 52) & 0x7ff;
    i16::try_from(biased).unwrap_or(i16::MAX) - 1023
}

/// How a number is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberFacts {
    pub(super) value: f64,
    /// The number itself where it is whole and small enough to be a code.
    pub(super) code: Option<i32>,
    pub(super) whole: bool,
}

const MAX_CODE: f64 = 9999.0;

impl NumberFacts {
    pub(super) fn of(number: &Number) -> Self {
        let text = number.as_str();
        let value = match short_integer(text) {
            Some(value) => value,
            None => text.parse().unwrap_or(f64::INFINITY),
        };
        // From 2^53 on every float is whole, so the text decides there.
        let whole = if value.abs() < 9e15 {
            value.fract() == 0.0 && (value != 0.0 || is_zero(text))
        } else {
            is_whole(text)
        };
        #[expect(clippy::cast_possible_truncation, reason = "whole and at most 9999")]
        let code = (whole && value.abs() <= MAX_CODE).then_some(value as i32);
        Self { value, code, whole }
    }
}

/// Most numbers of results are short integers, which need no float parser.
fn short_integer(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text),
    };
    if digits.len() > 9 || digits.is_empty() {
        return None;
    }
    let mut value = 0_u32;
    for byte in digits.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some(sign * f64::from(value))
}

/// Whether a number that a float rounds to zero is zero.
fn is_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    mantissa
        .bytes()
        .all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}

/// Whether the text of a number beyond the floats' exact integers has no fraction.
fn is_whole(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let fraction = mantissa
        .split_once('.')
        .map_or("", |(_, fraction)| fraction);
    let places = fraction.trim_end_matches('0').len();
    // An exponent too long for an integer shifts any fraction away, as the value is large.
    exponent.parse().map_or(true, |shift: i64| {
        i64::try_from(places).is_ok_and(|places| shift >= places)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_read_as_written() {
        let sizes = [0, 1, 2, 3, 4, 1000, usize::MAX]
            .map(|size| ShapeCounter::size(CounterKind::Length, size));
        let numbers =
            [0.0, 1.0, -1.0, 0.3, -1e300, 1e-300, f64::INFINITY].map(ShapeCounter::magnitude);
        let formats = StringFormat::ALL.map(ShapeCounter::format);
        let classes = [
            ShapeCounter::boolean(true),
            ShapeCounter::boolean(false),
            ShapeCounter::ERROR_TEXT,
            ShapeCounter::NO_ITEMS,
        ];
        let cells = sizes.into_iter().chain(numbers).chain(formats);
        for cell in cells.chain(classes) {
            let name = cell.to_string();
            assert_eq!(ShapeCounter::parse(cell.kind, &name), Some(cell));
            assert!(name.len() <= cell.name_len(), "{name}");
        }
        assert_eq!(ShapeCounter::parse(CounterKind::Length, "3"), None);
        assert_eq!(ShapeCounter::size(CounterKind::Length, 5).to_string(), "4");
        assert_eq!(ShapeCounter::magnitude(-5.0).to_string(), "-2^2");
    }

    #[test]
    fn integers_are_told_by_their_value() {
        for (text, whole, code) in [
            ("22", true, Some(22)),
            ("22.0", true, Some(22)),
            ("-0", true, Some(0)),
            ("22.5", false, None),
            ("1e3", true, Some(1000)),
            ("1E400", true, None),
            ("1e-400", false, None),
            ("0e-400", true, Some(0)),
            ("12345678901234567890123", true, None),
            ("12345678901234567890.5", false, None),
            ("1.5e17", true, None),
            ("10000", true, None),
        ] {
            let number: Number = serde_json::from_str(text).unwrap();
            let numeral = NumberFacts::of(&number);
            assert_eq!((numeral.whole, numeral.code), (whole, code), "{text}");
        }
    }
}
