//! The end of a program's error output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How much is kept: enough for a stack trace.
const MAX_TAIL_BYTES: usize = 8 * 1024;

/// The longest word that may be a cut secret.
const LONGEST_WORD: usize = 1_024;

/// A ring buffer that keeps the end of what is written to it.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail {
    buffer: Arc<Mutex<TailBuffer>>,
}

#[derive(Debug, Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    /// Whether the start was cut off.
    is_cut: bool,
}

impl StderrTail {
    /// Reads to the end so that the program never blocks on its error output. Copies it to this
    /// process's error output if `shows` is set.
    pub(super) async fn drain<R: AsyncRead + Unpin>(self, mut from: R, shows: bool) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let (read, _rest) = buffer.split_at(count);
            if shows {
                // If it cannot be shown, it is still kept.
                let _shown = tokio::io::stderr().write_all(read).await;
            }
            let mut kept = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            kept.bytes.extend(read);
            let excess = kept.bytes.len().saturating_sub(MAX_TAIL_BYTES);
            kept.is_cut |= excess > 0;
            kept.bytes.drain(..excess);
        }
    }

    /// The kept output as text. It begins with a whole word, because part of a secret would not be
    /// masked.
    pub(super) fn text(&self) -> String {
        let kept = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = kept.bytes.as_slices();
        let bytes = [first, second].concat();
        let cut = match kept.is_cut {
            true => {
                let start = bytes.get(..LONGEST_WORD).unwrap_or(&bytes);
                let end = start.iter().position(u8::is_ascii_whitespace);
                end.map_or(start.len(), |end| end + 1)
            }
            false => 0,
        };
        String::from_utf8_lossy(bytes.get(cut..).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_cut_off_leaves_no_part_of_a_word() {
        let tail = StderrTail::default();
        let written = format!("key=s3cret-value {}", "x ".repeat(MAX_TAIL_BYTES / 2 - 3));
        tail.clone().drain(written.as_bytes(), false).await;
        let text = tail.text();
        assert!(text.starts_with("x x") && !text.contains("value"), "{text}");
        let whole = StderrTail::default();
        whole.clone().drain(&b"all of it"[..], false).await;
        assert_eq!(whole.text(), "all of it");
    }
}
