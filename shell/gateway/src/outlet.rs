//! What reaches an agent before the answer to its request.

use tokio::sync::mpsc;

/// The most messages that wait for an agent to read them.
const WAITING: usize = 256;

/// Where messages for an agent go while it waits for an answer. Each is the text of one JSON-RPC message.
#[derive(Clone, Debug)]
pub struct Outlet(Option<mpsc::Sender<String>>);

impl Outlet {
    /// An outlet and what comes out of it.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(Some(sender)), receiver)
    }

    /// Of an agent that takes nothing but the answer.
    #[must_use]
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Sends a message, unless nobody reads or too many wait. Says whether it was taken.
    pub fn send(&self, message: String) -> bool {
        self.0
            .as_ref()
            .is_some_and(|sender| sender.try_send(message).is_ok())
    }

    /// Whether somebody reads.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}
