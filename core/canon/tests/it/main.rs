//! What canon promises, shown on real definitions.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod corpus;
