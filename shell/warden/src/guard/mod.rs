//! Guarding calls: what the guard decides is recorded here.

pub mod audit;
