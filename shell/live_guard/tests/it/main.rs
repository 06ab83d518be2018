//! The promises of the guard and its audit log, on real stores.
#![expect(
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod audit;
mod guard;
