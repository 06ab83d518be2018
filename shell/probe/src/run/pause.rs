use std::time::Duration;

use jiff::Timestamp;
use toolwarden_model::reply::Failure;

use crate::exchange::Exchange;

/// The longest pause we choose ourselves.
const LONGEST_CHOSEN: Duration = Duration::from_secs(20);

/// Whether it makes sense to ask again, and what for.
pub(super) fn passing(exchange: &Exchange) -> Option<Failure> {
    match (&exchange.failure, exchange.status) {
        (Some(failure), _) => match failure.failure {
            Failure::Connection | Failure::Truncated => Some(failure.failure),
            _ => None,
        },
        (None, Some(408 | 409 | 429 | 500..=599)) => Some(Failure::Status),
        (None, _) => None,
    }
}

/// How long to wait before asking again: as long as the provider says, else longer each time, with
/// `luck` between 0 and 1 so that many who were refused at once do not come back at once.
pub(super) fn pause(exchange: &Exchange, backoff: Duration, attempt: u32, luck: f64) -> Duration {
    let named = exchange
        .header("retry-after")
        .and_then(|it| retry_after(it, Timestamp::now()));
    named.unwrap_or_else(|| {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let full = backoff.saturating_mul(doubled).min(LONGEST_CHOSEN);
        full.mul_f64(0.5 + luck.clamp(0.0, 1.0) / 2.0)
    })
}

/// A number between 0 and 1.
pub(super) fn luck() -> f64 {
    // Without randomness everybody waits the longest.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

/// What a provider asks for: seconds, or a date.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let left = date.duration_since(now);
    Some(left.try_into().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::SentRequest;
    use serde_json::Value;
    use toolwarden_model::reply::NotMeasured;

    fn exchange(status: Option<u16>, failure: Option<Failure>, after: Option<&str>) -> Exchange {
        Exchange {
            request: SentRequest {
                method: "POST".to_owned(),
                url_path: "/chat/completions".to_owned(),
                headers: Vec::new(),
                body: Value::Null,
            },
            status,
            headers: after
                .map(|it| ("retry-after".to_owned(), it.to_owned()))
                .into_iter()
                .collect(),
            body: Vec::new(),
            headers_ms: None,
            first_event_ms: None,
            total_ms: 1.0,
            failure: failure.map(|failure| NotMeasured {
                failure,
                detail: String::new(),
            }),
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (status, failure, again) in [
            (Some(200), None, None),
            (Some(400), None, None),
            (Some(401), None, None),
            (Some(408), None, Some(Failure::Status)),
            (Some(409), None, Some(Failure::Status)),
            (Some(429), None, Some(Failure::Status)),
            (Some(500), None, Some(Failure::Status)),
            (Some(529), None, Some(Failure::Status)),
            (None, Some(Failure::Connection), Some(Failure::Connection)),
            (
                Some(200),
                Some(Failure::Truncated),
                Some(Failure::Truncated),
            ),
            (Some(302), Some(Failure::Redirect), None),
            (Some(200), Some(Failure::TooLarge), None),
            (None, Some(Failure::Timeout), None),
        ] {
            let found = passing(&exchange(status, failure, None));
            assert_eq!(found, again, "{status:?} {failure:?}");
        }
    }

    #[test]
    fn the_provider_names_the_pause_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("7", Some(7.0)),
            (" 1.5 ", Some(1.5)),
            ("-3", Some(0.0)),
            ("Mon, 16 Nov 2026 10:00:30 GMT", Some(30.0)),
            ("Mon, 16 Nov 2026 09:00:00 GMT", Some(0.0)),
            ("soon", None),
            ("1e300", None),
            ("NaN", Some(0.0)),
        ] {
            let found = retry_after(text, now).map(|it| it.as_secs_f64());
            assert_eq!(found, seconds, "{text}");
        }
    }

    #[test]
    fn chosen_pauses_double_and_are_bounded() {
        let silent = exchange(Some(503), None, None);
        let backoff = Duration::from_millis(500);
        let pauses = [1, 2, 3, 30].map(|it| pause(&silent, backoff, it, 1.0).as_millis());
        assert_eq!(pauses, [500, 1_000, 2_000, 20_000]);
        assert_eq!(pause(&silent, backoff, 1, 0.0).as_millis(), 250);
        let told = exchange(Some(429), None, Some("3"));
        assert_eq!(pause(&told, backoff, 3, 1.0), Duration::from_secs(3));
        assert!((0.0..=1.0).contains(&luck()));
    }
}
