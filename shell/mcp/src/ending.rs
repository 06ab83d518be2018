//! The end of a connection, for those who wait for it.

use tokio::sync::watch;

/// Whether a connection has ended.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    told: watch::Sender<bool>,
}

impl Ending {
    /// Wakes all who wait.
    pub(crate) fn tell(&self) {
        self.told.send_replace(true);
    }

    pub(crate) fn is_told(&self) -> bool {
        *self.told.borrow()
    }

    /// Resolves when it has ended, at once if it has already.
    pub(crate) async fn wait(&self) {
        let mut told = self.told.subscribe();
        // The sender lives as long as this value, so the wait does not fail.
        let _ended = told.wait_for(|ended| *ended).await;
    }
}
