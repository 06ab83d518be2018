use tokio::sync::watch;

/// Says that the gateway is about to end. Clones tell and hear the same.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// One that was not announced yet.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Announces the end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether the end was announced.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the end is announced.
    pub async fn begun(&self) {
        let mut hearing = self.0.subscribe();
        // The sender lives as long as `self`, so that this waits for nothing else.
        drop(hearing.wait_for(|begun| *begun).await);
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}
