//! The last part of a program's error output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How much is kept: enough for a stack trace.
const KEPT_BYTES: usize = 8 * 1024;

/// The longest word of which a part may be a secret.
const LONGEST_WORD: usize = 1_024;

/// A ring that keeps the end of what is written to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether something was cut off at the front.
    is_cut: bool,
}

impl Tail {
    /// Reads until the end so that the program never blocks on its error output, and shows it where that
    /// is wanted.
    pub(super) async fn drain<R: AsyncRead + Unpin>(self, mut from: R, shows: bool) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let (read, _rest) = buffer.split_at(count);
            if shows {
                // Where nobody sees it, it is still kept.
                let _shown = tokio::io::stderr().write_all(read).await;
            }
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.bytes.extend(read);
            let excess = kept.bytes.len().saturating_sub(KEPT_BYTES);
            kept.is_cut |= excess > 0;
            kept.bytes.drain(..excess);
        }
    }

    /// What is kept, as text. It begins with a whole word: a part of a secret would not be masked.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
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
        let tail = Tail::default();
        let written = format!("key=s3cret-value {}", "x ".repeat(KEPT_BYTES / 2 - 3));
        tail.clone().drain(written.as_bytes(), false).await;
        let text = tail.text();
        assert!(text.starts_with("x x") && !text.contains("value"), "{text}");
        let whole = Tail::default();
        whole.clone().drain(&b"all of it"[..], false).await;
        assert_eq!(whole.text(), "all of it");
    }
}
