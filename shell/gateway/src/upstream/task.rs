use tokio::task::JoinHandle;

/// A task that ends with its owner.
#[derive(Debug)]
pub(super) struct OwnedTask(pub(super) JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
