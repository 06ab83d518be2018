//! Long computations on the threads that serve connections.

use tokio::runtime::{Handle, RuntimeFlavor};
use toolwarden_mcp::{InvalidMessage, RpcMessage};
use toolwarden_settings::ListenSettings;

/// From this size on, a text is parsed while another thread serves the connections of this one. Parsing a
/// smaller text takes a millisecond or two, which costs less than moving the connections.
const LARGE_TEXT_BYTES: usize = 128 << 10;

/// Reads the message of an agent, or the messages of a batch that is not too long.
pub(crate) fn read_messages(
    text: &[u8],
    listen: &ListenSettings,
) -> Result<Vec<RpcMessage>, InvalidMessage> {
    let most = usize::try_from(listen.batch.get()).unwrap_or(usize::MAX);
    run_unblocked(text.len(), || RpcMessage::parse_at_most(text, most))
}

/// Runs a computation over a text of this size. If the text is large, the runtime first moves other tasks to
/// another thread, so that none of them waits for it.
pub(crate) fn run_unblocked<T>(bytes: usize, compute: impl FnOnce() -> T) -> T {
    let is_large = bytes >= LARGE_TEXT_BYTES;
    // A runtime with one thread has no other thread to move them to.
    let can_move = || {
        Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if is_large && can_move() {
        tokio::task::block_in_place(compute)
    } else {
        compute()
    }
}
