//! Dates and times as people write them: a reader that parses one layout fails on another.

use super::string_format::StringFormat;

/// The maximum length of a date with time and zone.
const MAX_LEN: usize = 40;

/// The layout of a date or time; `None` for any other text.
pub(super) fn date_format(bytes: &[u8]) -> Option<StringFormat> {
    if bytes.len() > MAX_LEN {
        return None;
    }
    if is_time(bytes) {
        return Some(StringFormat::Time);
    }
    if let Some((date, rest)) = bytes.split_at_checked(10)
        && matches_layout(date, b"0000-00-00")
    {
        return date_time(rest);
    }
    if let Some(format) = numeric_date(bytes) {
        return Some(format);
    }
    is_named_date(bytes).then_some(StringFormat::DateNamed)
}

/// Whether the bytes are laid out like this, where `0` stands for any digit.
pub(super) fn matches_layout(bytes: &[u8], layout: &[u8]) -> bool {
    bytes.len() == layout.len()
        && bytes.iter().zip(layout).all(|(byte, mark)| match mark {
            b'0' => byte.is_ascii_digit(),
            mark => byte == mark,
        })
}

/// What follows a date as in RFC 3339; fractions and zones are as that allows them.
fn date_time(rest: &[u8]) -> Option<StringFormat> {
    let (mark, rest) = rest.split_first()?;
    let (time, rest) = rest.split_at_checked(8)?;
    if !matches!(mark, b'T' | b't' | b' ') || !matches_layout(time, b"00:00:00") {
        return None;
    }
    let (fraction, zone) = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = digits_of(fraction);
            (true, fraction.get(digits..).filter(|_| digits > 0)?)
        }
        None => (false, rest),
    };
    let utc = matches!(zone, b"Z" | b"z");
    let offset = matches_layout(zone, b"+00:00") || matches_layout(zone, b"-00:00");
    match mark {
        _ if !utc && !offset && !zone.is_empty() => None,
        b' ' => Some(StringFormat::DateTimeSpace),
        _ if offset => Some(StringFormat::DateTimeOffset),
        _ if !utc => Some(StringFormat::DateTimeLocal),
        _ if fraction => Some(StringFormat::DateTimeFraction),
        _ => Some(StringFormat::DateTime),
    }
}

/// Three numbers with the same mark between them, of which the first or the last is a year, and maybe a
/// time.
fn numeric_date(bytes: &[u8]) -> Option<StringFormat> {
    let end = bytes.iter().position(|byte| matches!(byte, b' ' | b','));
    let (date, rest) = bytes.split_at_checked(end.unwrap_or(bytes.len()))?;
    let mark = date.iter().copied().find(|byte| !byte.is_ascii_digit())?;
    let mut parts = date.split(|byte| *byte == mark);
    let (Some(first), Some(middle), Some(last), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let is_number = |part: &[u8], longest: usize| {
        (1..=longest).contains(&part.len()) && digits_of(part) == part.len()
    };
    let ends = (is_number(first, 2) && is_number(last, 4) && last.len() == 4)
        || (is_number(last, 2) && is_number(first, 4) && first.len() == 4);
    if !ends || !is_number(middle, 2) || !follows_date(rest) {
        return None;
    }
    match mark {
        b'/' => Some(StringFormat::DateSlash),
        b'.' => Some(StringFormat::DateDot),
        b'-' => Some(StringFormat::DateDash),
        _ => None,
    }
}

/// Whether a time follows, or nothing.
fn follows_date(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    let time = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
    rest.is_empty() || is_time(time)
}

/// Hours and minutes, maybe seconds with a fraction.
fn is_time(bytes: &[u8]) -> bool {
    let whole = bytes.split(|byte| *byte == b'.').next().unwrap_or_default();
    let fraction = bytes.get(whole.len()..).unwrap_or_default();
    let fraction = match fraction.strip_prefix(b".") {
        Some(digits) => !digits.is_empty() && digits_of(digits) == digits.len(),
        None => fraction.is_empty(),
    };
    let layouts: [&[u8]; 4] = [b"00:00", b"0:00", b"00:00:00", b"0:00:00"];
    fraction && layouts.iter().any(|layout| matches_layout(whole, layout))
}

/// The name of a month between numbers, one of which is a year: `Mon, 16 Nov 2026 05:01:35 GMT`.
fn is_named_date(bytes: &[u8]) -> bool {
    let words = bytes.split(|byte| matches!(byte, b' ' | b',' | b'-' | b'.'));
    let (mut month, mut day, mut year) = (false, false, false);
    for word in words.filter(|word| !word.is_empty()) {
        if digits_of(word) == word.len() {
            year |= word.len() == 4;
            day |= word.len() <= 2;
        } else if is_month(word) {
            month = true;
        } else if !goes_with_date(word) {
            return false;
        }
    }
    month && day && year
}

/// A day of the week, a time or a zone.
fn goes_with_date(word: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun"];
    let start = word.get(..3).unwrap_or(word);
    let is_day = DAYS.iter().any(|day| start.eq_ignore_ascii_case(day));
    let is_zone = word.len() <= 4 && word.iter().all(u8::is_ascii_uppercase);
    let is_offset = matches_layout(word, b"+0000");
    is_day || is_zone || is_offset || is_time(word)
}

fn is_month(word: &[u8]) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    MONTHS.iter().any(|month| {
        let month = month.as_bytes();
        let short = month.get(..3).unwrap_or(month);
        word.eq_ignore_ascii_case(month) || word.eq_ignore_ascii_case(short)
    })
}

fn digits_of(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_dates_are_told_apart() {
        for (text, expected) in [
            ("2026-11-16T05:01:35Z", StringFormat::DateTime),
            ("2026-11-16T05:01:35.123Z", StringFormat::DateTimeFraction),
            (
                "2026-11-16T05:01:35.123+02:00",
                StringFormat::DateTimeOffset,
            ),
            ("2026-11-16T05:01:35", StringFormat::DateTimeLocal),
            ("2026-11-16T05:01:35.5", StringFormat::DateTimeLocal),
            ("2026-11-16 05:01:35", StringFormat::DateTimeSpace),
            ("2026-11-16 05:01:35+00:00", StringFormat::DateTimeSpace),
            ("2026-11-16", StringFormat::Date),
            ("11/16/2026", StringFormat::DateSlash),
            ("1/6/2026, 5:01:35 AM", StringFormat::DateSlash),
            ("2026/11/16", StringFormat::DateSlash),
            ("16.11.2026", StringFormat::DateDot),
            ("16.11.2026 05:01", StringFormat::DateDot),
            ("16-11-2026", StringFormat::DateDash),
            ("16 Nov 2026", StringFormat::DateNamed),
            ("Nov 16, 2026", StringFormat::DateNamed),
            ("Mon, 16 Nov 2026 05:01:35 GMT", StringFormat::DateNamed),
            ("November 16, 2026", StringFormat::DateNamed),
            ("05:01", StringFormat::Time),
            ("05:01:35.250", StringFormat::Time),
            // Versions, fractions, addresses and sentences are not dates.
            ("1.2.3", StringFormat::Word),
            ("16.11.26", StringFormat::Word),
            ("1/2", StringFormat::Word),
            ("10.0.0.1", StringFormat::Ipv4),
            ("20261116", StringFormat::Integer),
            ("2026-11-16T05:01", StringFormat::Word),
            ("2026-11-16T05:01:35+2", StringFormat::Word),
            ("the 3 may appear in 2026 or so", StringFormat::Text),
            ("maybe 3 of 2026", StringFormat::Text),
            ("16/11/2026 was a Monday", StringFormat::Text),
        ] {
            assert_eq!(StringFormat::of(text), expected, "{text}");
        }
    }
}
