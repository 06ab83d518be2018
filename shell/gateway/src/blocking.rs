//! Long computations on the threads that serve connections.

use tokio::runtime::{Handle, RuntimeFlavor};
use toolwarden_mcp::{InvalidMessage, Message};
use toolwarden_warden::settings::Listen;

/// Texts from this size on are read while another thread serves the connections of this one. Reading less
/// takes a millisecond or two, which costs less than the change of threads.
const LARGE: usize = 128 << 10;

/// Reads the message of an agent, or the messages of a batch that is not too long.
pub(crate) fn read_messages(text: &[u8], listen: &Listen) -> Result<Vec<Message>, InvalidMessage> {
    let most = usize::try_from(listen.batch.get()).unwrap_or(usize::MAX);
    run_unblocked(text.len(), || Message::parse_at_most(text, most))
}

/// Computes something from a text of this size. Where the text is large, the runtime moves other tasks to
/// another thread first, so that none of them waits for it.
pub(crate) fn run_unblocked<T>(bytes: usize, compute: impl FnOnce() -> T) -> T {
    let is_large = bytes >= LARGE;
    // A runtime with one thread has no other to move them to.
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
