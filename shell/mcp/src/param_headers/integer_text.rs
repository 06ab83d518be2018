//! Integers of any size, as text.

/// Longer numbers are not compared as integers.
const MAX_DIGITS: usize = 1000;

/// Sign and digits of an integer, in any notation: `42`, `42.0`, `4.2e1`.
pub(super) fn parse_json_integer(text: &str) -> Option<(bool, String)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{before}{after}");
    let shift = exponent.checked_sub(i64::try_from(after.len()).ok()?)?;
    let places = usize::try_from(shift.unsigned_abs()).ok()?;
    if digits.bytes().all(|digit| digit == b'0') {
        return Some((false, String::new()));
    }
    if shift >= 0 {
        if places > MAX_DIGITS {
            return None;
        }
        digits.extend(std::iter::repeat_n('0', places));
    } else {
        let kept = digits.len().checked_sub(places)?;
        if digits.split_off(kept).bytes().any(|digit| digit != b'0') {
            return None;
        }
    }
    let significant = digits.trim_start_matches('0');
    Some((is_negative, significant.to_owned()))
}

/// Whether a text is a number without an exponent.
pub(super) fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((before, after)) => are_digits(before) && are_digits(after),
        None => are_digits(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_write_a_number() {
        for (text, whole) in [
            ("42", Some("42")),
            ("42.0", Some("42")),
            ("4.2e1", Some("42")),
            ("420E-1", Some("42")),
            ("0042", Some("42")),
            ("-42.00", Some("-42")),
            ("-0", Some("")),
            ("0.0e9", Some("")),
            (
                "123456789012345678901234567890",
                Some("123456789012345678901234567890"),
            ),
            ("4.25", None),
            ("1e-1", None),
            ("1e99999", None),
            ("1e99999999999999999999", None),
        ] {
            let read = parse_json_integer(text).map(|(is_negative, digits)| {
                let sign = if is_negative { "-" } else { "" };
                format!("{sign}{digits}")
            });
            assert_eq!(read.as_deref(), whole, "{text}");
        }
        for (text, expected) in [
            ("42", true),
            ("-4.20", true),
            ("4.", false),
            ("1e3", false),
            ("", false),
        ] {
            assert_eq!(is_decimal(text), expected, "{text}");
        }
    }
}
