/// The longest beginning of a text that is read.
const MAX_PREFIX: usize = 160;

/// How texts begin that report a failure, or that there is nothing to report.
const PHRASES: [&str; 62] = [
    "error",
    "errors occurred",
    "exception",
    "traceback",
    "fatal",
    "failed",
    "failure",
    "unauthorized",
    "unauthorised",
    "unauthenticated",
    "not authorized",
    "not authenticated",
    "authentication failed",
    "authentication required",
    "authorization failed",
    "authorization required",
    "forbidden",
    "access denied",
    "permission denied",
    "denied",
    "invalid api key",
    "invalid credentials",
    "invalid request",
    "invalid token",
    "token expired",
    "session expired",
    "login required",
    "client error",
    "server error",
    "internal error",
    "internal server error",
    "bad gateway",
    "bad request",
    "gateway timeout",
    "service unavailable",
    "unavailable",
    "too many requests",
    "rate limit",
    "rate limited",
    "quota exceeded",
    "timeout",
    "timed out",
    "request failed",
    "request timed out",
    "connection refused",
    "connection reset",
    "connection timed out",
    "not found",
    "not available",
    "not implemented",
    "no data",
    "no matches",
    "no results",
    "no such",
    "unknown error",
    "unexpected error",
    "an error",
    "an unexpected error",
    "an internal error",
    "something went wrong",
    "unable to",
    "sorry",
];

/// Whether a text begins like an error message. Only the beginning decides: a page about errors is
/// not an error.
///
/// Every string of every result is asked, so nothing is allocated.
pub(super) fn reads_like_error(text: &str) -> bool {
    let end = text.floor_char_boundary(MAX_PREFIX);
    begins_like_error(text.get(..end).unwrap_or_default())
}

fn begins_like_error(text: &str) -> bool {
    // Messages are often set in marks: `[ERROR]`, `**Error**`, `<error>`.
    let text = text.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let Some(first) = text.bytes().next().map(|it| it.to_ascii_lowercase()) else {
        return false;
    };
    let may_start = |phrase: &&&str| phrase.as_bytes().first() == Some(&first);
    let starts = |phrase: &&str| {
        let rest = strip_prefix(text, phrase);
        rest.is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
    };
    PHRASES.iter().filter(may_start).any(starts) || is_exception(text) || is_http_status(text)
}

/// The rest of a text after a beginning in letters of any case.
fn strip_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `ValueError: …`, `java.io.IOException: …`
fn is_exception(text: &str) -> bool {
    let in_name = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_');
    let end = text.bytes().take_while(|it| in_name(it)).count();
    let Some((name, rest)) = text.split_at_checked(end) else {
        return false;
    };
    let ends_with = |suffix: &str| {
        let at = name.len().checked_sub(suffix.len());
        let tail = at.and_then(|at| name.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
    };
    let is_end = rest.is_empty() || rest.starts_with([':', '(']);
    is_end && (ends_with("error") || ends_with("exception"))
}

/// `HTTP 503`, `status code 401`, `404 Not Found`
fn is_http_status(text: &str) -> bool {
    let named = ["http/1.1 ", "http/2 ", "http ", "status code ", "status "];
    let marked = named.iter().find_map(|name| strip_prefix(text, name));
    let status = marked.unwrap_or(text);
    let digits = status.bytes().take_while(u8::is_ascii_digit).count();
    let is_failure = digits == 3 && status.starts_with(['4', '5']);
    let rest = status.get(digits..).unwrap_or_default();
    is_failure && (marked.is_some() || begins_like_error(rest))
}

#[cfg(test)]
mod tests {
    use super::reads_like_error;

    #[test]
    fn only_the_beginning_of_a_message_decides() {
        for text in [
            "Error: unauthorized",
            "ERROR",
            "[error] backend gone",
            "**Error**: no",
            "❌ Failed to fetch",
            "Traceback (most recent call last):",
            "ValueError: invalid literal",
            "java.io.IOException: broken pipe",
            "401 Unauthorized",
            "HTTP 503",
            "status code 429",
            "Access denied.",
            "Rate limit exceeded",
            "An error occurred",
            "No results found",
            "Sorry, something is wrong",
            "failed",
        ] {
            assert!(reads_like_error(text), "{text}");
        }
        for text in [
            "",
            "   ",
            "fine",
            "errorless",
            "Errors: 0",
            "terror in the night",
            "The error was fixed",
            "404 items",
            "failed_jobs",
            "4 results",
            "not foundation",
        ] {
            assert!(!reads_like_error(text), "{text}");
        }
    }
}
