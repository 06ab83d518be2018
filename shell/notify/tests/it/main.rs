//! The promises of alert delivery, on real stores and servers.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod notify;
