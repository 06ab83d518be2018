//! Decides calls: which tools a principal sees, which calls it may make, and what is recorded.
