//! The W3C trace context: the trace a request belongs to, and its parent span.

use std::fmt;

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) sampled: bool,
}

impl TraceContext {
    /// Parses a `traceparent` header; `None` if it is malformed, as the recommendation requires.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
        };
        let whole = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        // Version 00 ends here; later versions may append more.
        if !whole || version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|it| *it != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|it| *it != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self {
            trace,
            span,
            sampled: flags & 1 == 1,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace,
            span,
            sampled,
        } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read_and_written() {
        let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = TraceContext::parse(header).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), header);
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert!(!TraceContext::parse(later).unwrap().sampled);
        for malformed in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(malformed), None, "{malformed}");
        }
    }
}
