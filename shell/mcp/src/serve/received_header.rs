//! Headers as the client sent them.

use reqwest::header::{HeaderMap, HeaderValue};

/// How often a client sent a header. A routing header that appears twice is refused, because two
/// readers could use different copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedHeader<'h> {
    /// The header is absent.
    Absent,
    /// Once, with this value.
    Once(&'h str),
    /// Once, with bytes that are not printable ASCII.
    Unreadable,
    /// Several times.
    Repeated,
}

impl<'h> ReceivedHeader<'h> {
    /// Looks a header up.
    #[must_use]
    pub fn lookup(headers: &'h HeaderMap, name: &str) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next().map(HeaderValue::to_str), values.next()) {
            (None, _) => Self::Absent,
            (Some(_), Some(_)) => Self::Repeated,
            (Some(Ok(value)), None) => Self::Once(value),
            (Some(Err(_unreadable)), None) => Self::Unreadable,
        }
    }

    /// Whether the header is present in any form.
    #[must_use]
    pub fn is_present(&self) -> bool {
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
            ("Mcp-Name", ReceivedHeader::Once("a")),
            ("mcp-method", ReceivedHeader::Repeated),
            ("x", ReceivedHeader::Unreadable),
            ("y", ReceivedHeader::Absent),
        ] {
            assert_eq!(ReceivedHeader::lookup(&headers, name), sent, "{name}");
        }
    }
}
