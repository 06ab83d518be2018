//! A signal for the end of a connection.

use tokio::sync::watch;

/// A flag that is set once when a connection closes, and can be awaited.
#[derive(Debug, Default)]
pub(crate) struct CloseSignal {
    sender: watch::Sender<bool>,
}

impl CloseSignal {
    /// Marks the connection ended and wakes all waiting tasks.
    pub(crate) fn set(&self) {
        self.sender.send_replace(true);
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.sender.borrow()
    }

    /// Resolves when the connection has ended, at once if it already has.
    pub(crate) async fn wait(&self) {
        let mut told = self.sender.subscribe();
        // The sender lives as long as this value, so `wait_for` does not fail.
        let _ended = told.wait_for(|ended| *ended).await;
    }
}
