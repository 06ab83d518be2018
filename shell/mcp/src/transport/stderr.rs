//! The last part of a program's error output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How much is kept: enough for a stack trace.
const KEPT_BYTES: usize = 8 * 1024;

/// A ring that keeps the end of what is written to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
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
            let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend(read);
            let excess = bytes.len().saturating_sub(KEPT_BYTES);
            bytes.drain(..excess);
        }
    }

    /// What is kept, as text.
    pub(super) fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = bytes.as_slices();
        String::from_utf8_lossy(&[first, second].concat()).into_owned()
    }
}
