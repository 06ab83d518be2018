use std::time::Duration;

use jiff::Timestamp;
use toolwarden_http::retry_after;
use toolwarden_model::reply::TrialFailure;

use crate::exchange::Exchange;

/// The longest backoff, if the provider names no pause.
const MAX_BACKOFF: Duration = Duration::from_secs(20);

/// Whether the failure is transient, and which failure it is.
pub(super) fn retryable_failure(exchange: &Exchange) -> Option<TrialFailure> {
    match (&exchange.failure, exchange.status) {
        (Some(failure), _) => match failure.failure {
            TrialFailure::Connection | TrialFailure::Truncated => Some(failure.failure),
            _ => None,
        },
        (None, Some(408 | 409 | 429 | 500..=599)) => Some(TrialFailure::Status),
        (None, _) => None,
    }
}

/// How long to wait before a retry: as long as the provider says, else jittered exponential
/// backoff. `jitter` is the jitter, between 0 and 1.
pub(super) fn retry_delay(
    exchange: &Exchange,
    backoff: Duration,
    attempt: u32,
    luck: f64,
) -> Duration {
    let named = exchange
        .header("retry-after")
        .and_then(|it| retry_after(it, Timestamp::now()));
    named.unwrap_or_else(|| {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let full = backoff.saturating_mul(doubled).min(MAX_BACKOFF);
        full.mul_f64(0.5 + luck.clamp(0.0, 1.0) / 2.0)
    })
}

/// A random number between 0 and 1.
pub(super) fn jitter() -> f64 {
    // Without randomness every client waits the longest.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::SentRequest;
    use serde_json::Value;
    use toolwarden_model::reply::NotMeasured;

    fn exchange(
        status: Option<u16>,
        failure: Option<TrialFailure>,
        after: Option<&str>,
    ) -> Exchange {
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
    fn only_transient_failures_are_retried() {
        for (status, failure, again) in [
            (Some(200), None, None),
            (Some(400), None, None),
            (Some(401), None, None),
            (Some(408), None, Some(TrialFailure::Status)),
            (Some(409), None, Some(TrialFailure::Status)),
            (Some(429), None, Some(TrialFailure::Status)),
            (Some(500), None, Some(TrialFailure::Status)),
            (Some(529), None, Some(TrialFailure::Status)),
            (
                None,
                Some(TrialFailure::Connection),
                Some(TrialFailure::Connection),
            ),
            (
                Some(200),
                Some(TrialFailure::Truncated),
                Some(TrialFailure::Truncated),
            ),
            (Some(302), Some(TrialFailure::Redirect), None),
            (Some(200), Some(TrialFailure::TooLarge), None),
            (None, Some(TrialFailure::Timeout), None),
        ] {
            let found = retryable_failure(&exchange(status, failure, None));
            assert_eq!(found, again, "{status:?} {failure:?}");
        }
    }

    #[test]
    fn backoff_doubles_and_is_bounded() {
        let silent = exchange(Some(503), None, None);
        let backoff = Duration::from_millis(500);
        let pauses = [1, 2, 3, 30].map(|it| retry_delay(&silent, backoff, it, 1.0).as_millis());
        assert_eq!(pauses, [500, 1_000, 2_000, 20_000]);
        assert_eq!(retry_delay(&silent, backoff, 1, 0.0).as_millis(), 250);
        let told = exchange(Some(429), None, Some("3"));
        assert_eq!(retry_delay(&told, backoff, 3, 1.0), Duration::from_secs(3));
        assert!((0.0..=1.0).contains(&jitter()));
    }
}
