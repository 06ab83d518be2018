//! Headers as they were sent.

use reqwest::header::{HeaderMap, HeaderValue};

/// How a header came. One that came twice is refused where it routes, for two readers could take
/// different copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent<'h> {
    /// Not at all.
    Absent,
    /// Once, with this value.
    Once(&'h str),
    /// Once, with bytes that are no printable ASCII.
    Unreadable,
    /// Several times.
    Repeated,
}

impl<'h> Sent<'h> {
    /// Looks a header up.
    #[must_use]
    pub fn of(headers: &'h HeaderMap, name: &str) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next().map(HeaderValue::to_str), values.next()) {
            (None, _) => Self::Absent,
            (Some(_), Some(_)) => Self::Repeated,
            (Some(Ok(value)), None) => Self::Once(value),
            (Some(Err(_unreadable)), None) => Self::Unreadable,
        }
    }

    /// Whether it came in any form.
    #[must_use]
    pub fn is_there(&self) -> bool {
        *self != Self::Absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_looked_up() {
        let mut headers = HeaderMap::new();
        headers.append("mcp-name", HeaderValue::from_static("a"));
        headers.append("mcp-method", HeaderValue::from_static("a"));
        headers.append("mcp-method", HeaderValue::from_static("a"));
        headers.append("x", HeaderValue::from_bytes(b"\xff").unwrap());
        for (name, sent) in [
            ("Mcp-Name", Sent::Once("a")),
            ("mcp-method", Sent::Repeated),
            ("x", Sent::Unreadable),
            ("y", Sent::Absent),
        ] {
            assert_eq!(Sent::of(&headers, name), sent, "{name}");
        }
    }
}
