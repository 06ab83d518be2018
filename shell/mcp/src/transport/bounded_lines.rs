//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One step of reading lines.
#[derive(Debug)]
pub(super) enum LineRead {
    /// A line without its end.
    Text(Vec<u8>),
    /// The line is longer than the limit; the rest is not read.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads up to the next line feed, holding at most `limit` bytes.
pub(super) async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    limit: usize,
) -> io::Result<LineRead> {
    let mut line = Vec::new();
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(if line.is_empty() {
                LineRead::End
            } else {
                LineRead::Text(line)
            });
        }
        let end = memchr::memchr(b'\n', available);
        let (part, _rest) = available.split_at(end.unwrap_or(available.len()));
        if line.len() + part.len() > limit {
            return Ok(LineRead::TooLong);
        }
        line.extend_from_slice(part);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(LineRead::Text(line));
        }
    }
}
