use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};

/// An event stream that is sent one event at a time, as it was recorded.
#[derive(Debug)]
pub(super) struct EventBody {
    rest: Bytes,
}

impl EventBody {
    pub(super) fn new(body: Vec<u8>) -> Self {
        Self { rest: body.into() }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let end = event_end(&self.rest);
        let event = self.rest.split_to(end);
        Poll::Ready(Some(Ok(Frame::data(event))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    /// Unknown, so that the body is sent in chunks.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Where the first event ends: after its empty line.
fn event_end(bytes: &[u8]) -> usize {
    let ends: [&[u8]; 3] = [b"\n\n", b"\r\n\r\n", b"\r\r"];
    let found = |end: &[u8]| {
        let at = bytes.windows(end.len()).position(|it| it == end)?;
        Some(at + end.len())
    };
    ends.into_iter()
        .filter_map(found)
        .min()
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_behind_their_empty_line() {
        for (text, end) in [
            ("data: a\n\ndata: b\n\n", 9),
            ("data: a\r\n\r\ndata: b\n\n", 11),
            ("data: a\r\rdata: b", 9),
            ("data: a\ndata: b", 15),
        ] {
            assert_eq!(event_end(text.as_bytes()), end, "{text:?}");
        }
    }
}
