//! Tests the promises of canon on real definitions.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod agreement;
mod client_behaviour;
mod containers;
mod corpus;
mod dialects;
mod emission;
mod hostile;
mod replies;
mod requests;
mod samples;
mod vectors;
