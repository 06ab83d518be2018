//! The header `Retry-After`.

use std::time::Duration;

use jiff::Timestamp;

/// How long a server asks to wait, in the value of the header `Retry-After`: seconds, with decimals as some servers
/// write them, or a date. A date that has passed means not to wait; `None` means that the value says nothing.
#[must_use]
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seconds_or_a_date() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("7", Some(7.0)),
            (" 0 ", Some(0.0)),
            (" 1.5 ", Some(1.5)),
            ("Mon, 16 Nov 2026 10:00:30 GMT", Some(30.0)),
            ("Mon, 16 Nov 2026 09:00:00 GMT", Some(0.0)),
            ("-3", None),
            ("soon", None),
            ("1e300", None),
            ("NaN", None),
        ] {
            let found = retry_after(text, now).map(|it| it.as_secs_f64());
            assert_eq!(found, seconds, "{text}");
        }
    }
}
