//! Layer check.
fn main() {}
