use tokio::sync::watch;

/// Signals that the gateway is shutting down. Clones share the same signal.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// A signal that has not been given yet.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Begins the shutdown.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether the shutdown has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the shutdown begins.
    pub async fn begun(&self) {
        let mut hearing = self.0.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(hearing.wait_for(|begun| *begun).await);
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}
