use std::time::Duration;

use thiserror::Error;

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a duration; write 90, 30s, 5m, 1.5h, 7d or 2w")]
pub struct InvalidDuration {
    /// The text.
    pub text: String,
}

/// Reads a duration: a number of seconds, or a number with `ms`, `s`, `m`, `h`, `d` or `w`.
///
/// # Errors
/// The text is not a duration, or the duration is too long.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration {
        text: text.to_owned(),
    };
    let word = text.trim();
    let digits = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    let (number, unit) = word.split_at_checked(digits).ok_or_else(invalid)?;
    let unit = match unit.trim_start() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(invalid()),
    };
    let number: f64 = number.parse().map_err(|_| invalid())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_units() {
        let cases = [
            ("30m", 1800.0),
            ("2h", 7200.0),
            ("3600s", 3600.0),
            ("90", 90.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("7d", 604_800.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "h",
            "-1s",
            "1y",
            "1e400",
            "..",
            "1 2",
            "99999999999999999999d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
