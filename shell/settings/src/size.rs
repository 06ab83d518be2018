use thiserror::Error;

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a size; write 1048576, 512KiB, 8MiB or 10MB")]
pub struct InvalidSize {
    /// The text.
    pub text: String,
}

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Parses a size above zero: a number of bytes, or a whole number with `KB`, `MB`, `GB`, `KiB`, `MiB` or
/// `GiB`.
pub(super) fn parse_size(text: &str) -> Result<usize, InvalidSize> {
    let invalid = || InvalidSize {
        text: text.to_owned(),
    };
    let word = text.trim();
    let digits = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (number, unit) = word.split_at_checked(digits).ok_or_else(invalid)?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(invalid)?;
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let bytes = number.checked_mul(*factor).ok_or_else(invalid)?;
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_units() {
        let cases = [
            ("1", Some(1)),
            ("8MiB", Some(8 << 20)),
            ("8 mib", Some(8 << 20)),
            ("10MB", Some(10_000_000)),
            ("1GiB", Some(1 << 30)),
            ("512KiB", Some(512 << 10)),
            ("7b", Some(7)),
            ("0", None),
            ("", None),
            ("MiB", None),
            ("1.5MB", None),
            ("-1", None),
            ("1TB", None),
            ("99999999999999999999", None),
            ("18446744073709551615GiB", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text).ok(), bytes, "{text}");
        }
    }
}
